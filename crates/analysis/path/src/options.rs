//! How much detail a walk records.

/// How much detail a walk records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether ways that end alike stay apart.
    pub every_way: bool,
    /// Which routes are recorded hop by hop.
    pub detail: Detail,
    /// Whether load balancers that pick by a hash of the client's address have uturn's own hash, as in
    /// the lab. How a cloud computes its hash is not known.
    pub knows_hash: bool,
}

/// Which routes are recorded hop by hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// All.
    #[default]
    Full,
    /// Of a load balancer's many ways, only the likeliest that fail.
    Worst,
    /// None: only how each way ends.
    Brief,
}

impl Options {
    pub(crate) fn is_brief(self) -> bool {
        self.detail == Detail::Brief
    }
}
