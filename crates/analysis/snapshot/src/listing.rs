//! The objects that an API server returned: which kinds in full, and which objects it did not
//! return.

use std::collections::HashSet;

use uturn_document::Fault;
use uturn_model::cluster::{ReadTime, Unread};
use uturn_model::{Extent, NamespacedName, Origin, Text};

/// The extent of the objects that an API server returned.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The kinds that the API server returned in full. `None` if no API server was asked.
    pub extent: Option<Extent>,
    /// The objects that the API server did not return, and the reasons.
    pub unread: Vec<Unread>,
    /// When the API server was asked.
    pub read_at: Option<ReadTime>,
    /// Whether a Service that is not given does not exist, whatever else is known.
    pub(crate) has_all_services: bool,
    /// The Services that have no endpoints if none are given, and that nothing selects for elsewhere.
    pub(crate) without_endpoints: HashSet<NamespacedName>,
    /// The sources that hold the API server's objects. Places in them are versions of objects.
    pub(crate) live: HashSet<Text>,
    /// The files of a bundle that hold the API server's objects.
    pub(crate) saved: HashSet<Text>,
}

impl Listing {
    /// Creates the listing of what an API server returned.
    pub fn new(extent: Extent, unread: Vec<Unread>, read_at: ReadTime) -> Self {
        let (extent, read_at) = (Some(extent), Some(read_at));
        Self { extent, unread, read_at, ..Self::default() }
    }

    /// Merges two listings. A kind is given in full if both listings give it in full.
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
        // With two readings, it is not known at which of the two times an object did not exist.
        self.read_at = self.read_at.xor(other.read_at);
        self.live.extend(other.live);
        self.saved.extend(other.saved);
        self
    }
}

/// Divides faults: an object that an API server returned is read as far as it is understood, and
/// the rest of the object becomes [`Unread`]. All other faults remain for the user to correct.
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
