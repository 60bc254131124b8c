//! Chains without a name, which stand in the rule that leads to them, and rules that look
//! like remarks.

use uturn_model::{SourceName, Text};

use super::lex::{Lexer, Token};
use super::{Chain, TableFamily, Verdict};

/// Chains within rules within chains, at most: the kernel follows no more jumps.
const DEEPEST: u8 = 16;

/// Where rules stand, and the chains without a name that they hold.
pub(super) struct Around<'s> {
    pub(super) source: &'s SourceName,
    pub(super) family: TableFamily,
    /// `jump { … }` is a jump to a chain that no other rule can name.
    pub(super) unnamed: Vec<Chain>,
    depth: u8,
}

impl<'s> Around<'s> {
    pub(super) fn new(source: &'s SourceName, family: TableFamily) -> Self {
        Self { source, family, unnamed: Vec::new(), depth: 0 }
    }

    pub(super) fn may_go_deeper(&self) -> bool {
        self.depth < DEEPEST
    }
}

impl Lexer<'_> {
    /// To the next rule, or the end of the chain. A rule whose first condition nft could not
    /// print begins like a remark.
    pub(super) fn skip_to_rule(&mut self) {
        loop {
            match self.token() {
                Token::Newline | Token::Mark(b';') => {}
                Token::Remark(remark) if !is_rule(remark) => {}
                _ => return,
            }
            self.advance();
        }
    }

    /// Whether `jump {` or `goto {` stands here, and which.
    pub(super) fn leads_to_unnamed(&self) -> Option<fn(Text) -> Verdict> {
        let leads = match self.word() {
            "jump" => Verdict::Jump,
            "goto" => Verdict::Goto,
            _ => return None,
        };
        let mut next = *self;
        next.advance();
        next.at_mark(b'{').then_some(leads)
    }

    /// A chain that a rule holds, and the name that it is given.
    pub(super) fn unnamed(&mut self, around: &mut Around<'_>) -> Text {
        let origin = self.origin(around.source);
        self.advance();
        let (place, line) = (self.place(), origin.line());
        self.advance();
        let name: Text = format!("__chain{line}.{}", self.column(place)).into();
        let mut chain =
            Chain { name: name.clone(), base: None, comment: None, rules: Vec::new(), origin };
        around.depth += 1;
        loop {
            self.skip_to_rule();
            // A text that ends here ends within the chain around it too, which says so.
            if self.token() == Token::End || self.take_mark(b'}') {
                break;
            }
            if matches!(self.word(), "type" | "policy" | "comment" | "flags") {
                self.no_rule();
            }
            let before = self.place();
            chain.rules.push(self.rule(around));
            if self.place() == before {
                self.advance();
            }
        }
        around.depth -= 1;
        around.unnamed.push(chain);
        name
    }
}

/// Whether a remark is a rule of `iptables-nft` that nft could not print whole:
/// `# xt_addrtype counter packets 0 bytes 0 jump X`, `# match-set X dst counter …`. Such
/// rules count.
fn is_rule(remark: &str) -> bool {
    let said = remark.trim_start_matches('#').trim_start();
    let names_it = ["xt_", "match-set "].iter().any(|start| said.starts_with(start));
    names_it || said.contains(" counter packets ")
}
