//! Bounds the work that the commands of one text may cause.

/// The work that one text may still cause.
pub(super) struct Allowance {
    steps: usize,
    expanded: usize,
    is_spent: bool,
}

impl Allowance {
    /// Rules that commands may move, compare or count. A text of 1 MiB has room for 100,000
    /// commands, and a chain for as many rules.
    const STEPS: usize = 10_000_000;
    /// Rules that lists of addresses may stand for: a line can have two lists, and stands for
    /// their product.
    const EXPANDED: usize = 10_000;

    /// Pays for a command that may move or compare that many rules.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), String> {
        let Some(left) = self.steps.checked_sub(steps) else {
            self.is_spent = true;
            return Err(format!(
                "the commands of this text move or compare more than {} rules: \
                 nothing from here on was read, write the rules in their final order with -A",
                Self::STEPS
            ));
        };
        self.steps = left;
        Ok(())
    }

    /// Pays for a rule with a list of `count` addresses.
    pub(super) fn expand(&mut self, count: usize) -> Result<(), String> {
        let Some(left) = self.expanded.checked_sub(count) else {
            self.is_spent = true;
            return Err(format!(
                "lists of addresses stand for more than {} rules in this text: \
                 nothing from here on was read, use a network or an ipset",
                Self::EXPANDED
            ));
        };
        self.expanded = left;
        Ok(())
    }

    /// Whether there was too much work, so that the rest of the text is not read.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self { steps: Self::STEPS, expanded: Self::EXPANDED, is_spent: false }
    }
}
