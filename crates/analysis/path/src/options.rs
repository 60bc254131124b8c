//! The options of a walk.

/// The options of a walk: how much detail it records, and what it knows of load balancers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether ways that end alike are reported separately.
    pub every_way: bool,
    /// The routes that are recorded hop by hop.
    pub detail: Detail,
    /// Whether load balancers that pick by a hash of the client's address use uturn's own hash, as
    /// in the lab. How a cloud computes its hash is not known.
    pub knows_hash: bool,
}

/// The routes that are recorded hop by hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// All routes.
    #[default]
    Full,
    /// Of a load balancer's many ways, only the likeliest failing ones.
    Worst,
    /// No routes: only how each way ends.
    Brief,
}

impl Options {
    pub(crate) fn is_brief(self) -> bool {
        self.detail == Detail::Brief
    }
}
