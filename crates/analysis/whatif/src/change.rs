//! The language of changes: what can be changed of a cluster, and how it is typed.
//!
//! Each flag of `uturn whatif` is a function that makes a [`Change`] of its text; one file has the
//! flags of one family. What a change does to a cluster is in [`mod@crate::apply`].

pub mod data_plane;
pub mod kind;
pub mod life;
pub mod object;
pub mod patch;
pub mod path;

use std::fmt;

use uturn_document::edit::{At, Tree};
use uturn_model::ObjectRef;

pub use data_plane::DataPlane;
pub use life::LifeChange;
pub use patch::{Operation, PatchTarget, Written};

/// A change of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The change as it was typed: `--set svc/shop/front:spec.type=NodePort`. Messages begin with it.
    pub typed: String,
    /// What is changed.
    pub what: What,
}

/// What a change changes.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// An object of a file, which replaces the object of its name, is added to it, or is new.
    Put(Box<Written>),
    /// Operations on an object of the cluster.
    Operate {
        /// The objects.
        target: PatchTarget,
        /// The operations, in order.
        operations: Vec<Operation>,
    },
    /// An object goes.
    Delete(ObjectRef),
    /// A value in an object.
    Set {
        /// The object.
        object: ObjectRef,
        /// The place in the object.
        path: Vec<At>,
        /// The value; `None` removes it.
        value: Option<Tree>,
    },
    /// How Services are served.
    DataPlane(DataPlane),
    /// What lives: nodes, pods.
    Life(LifeChange),
}

impl Change {
    /// Makes a change that is typed as a flag with a value.
    pub fn new(flag: &str, value: &str, what: What) -> Self {
        Self { typed: format!("{flag} {value}"), what }
    }

    /// Returns the object that the change deletes.
    pub fn deletes(&self) -> Option<&ObjectRef> {
        match &self.what {
            What::Delete(object) => Some(object),
            _ => None,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}
