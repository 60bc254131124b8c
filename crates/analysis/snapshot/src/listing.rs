//! What an API server gave of a cluster: which kinds in full, and what it did not give.

use std::collections::HashSet;

use uturn_model::cluster::{ReadTime, Unread};
use uturn_model::{Extent, Origin, Text};

use crate::fault::Fault;

/// What an API server gave of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// What it gave in full. `None` where no API server was asked.
    pub extent: Option<Extent>,
    /// What it did not give, and why.
    pub unread: Vec<Unread>,
    /// When it was asked.
    pub read_at: Option<ReadTime>,
    /// The sources that are its objects. Places in them are versions of objects.
    pub(crate) live: HashSet<Text>,
    /// The files of a bundle that have its objects.
    pub(crate) saved: HashSet<Text>,
}

impl Listing {
    /// What an API server gave.
    pub fn new(extent: Extent, unread: Vec<Unread>, read_at: ReadTime) -> Self {
        let (extent, read_at) = (Some(extent), Some(read_at));
        Self { extent, unread, read_at, ..Self::default() }
    }

    /// Both: in full is what both gave in full.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.extent = match (self.extent, other.extent) {
            (Some(first), Some(second)) => Some(Extent {
                pods: first.pods && second.pods,
                services: first.services && second.services,
                endpoints: first.endpoints && second.endpoints,
                listeners: first.listeners && second.listeners,
            }),
            (first, second) => first.or(second),
        };
        self.unread.extend(other.unread);
        // Of two readings, what is not in one of them may be of either time.
        self.read_at = self.read_at.xor(other.read_at);
        self.live.extend(other.live);
        self.saved.extend(other.saved);
        self
    }
}

/// Divides faults: an object that an API server gave is read as far as it is understood, and the
/// rest of it is not known; all other faults are the user's to cure.
pub(crate) fn unread(faults: Vec<Fault>, listing: &Listing) -> (Vec<Unread>, Vec<Fault>) {
    let is_given = |fault: &Fault| match &fault.origin {
        Origin::Live { .. } => true,
        Origin::File { path, .. } => fault.object.is_some() && listing.saved.contains(path),
        _ => false,
    };
    let (given, faults): (Vec<_>, Vec<_>) = faults.into_iter().partition(is_given);
    let unread = given.into_iter().map(|fault| {
        let unnamed = || format!("an object ({})", fault.origin).into();
        let object = fault.object.unwrap_or_else(unnamed);
        let what = match fault.field {
            Some(field) => format!("{field} of {object}").into(),
            None => object.to_string().into(),
        };
        Unread { what, known: "the rest of the object".into(), why: fault.message.into() }
    });
    (unread.collect(), faults)
}
