//! Ends of a load balancer's ways that its object leaves to others: what its annotations do not ask the
//! controller for, and what somebody else may have done or not.

use super::Remedy;

/// The end of a way that may be closed, as an object and its controller leave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEnd {
    /// What stops packets if the end is closed.
    pub by: ClosedBy,
    /// What leaves it open, as objects show it.
    pub because: String,
    /// The condition under which it is closed.
    pub condition: &'static str,
    /// The status with which the load balancer answers then, and after how many seconds. `None` for a
    /// load balancer of layer 4: calls hang.
    pub answer: Option<(u16, u64)>,
    /// The annotation that opens it, or what is to be done elsewhere.
    pub opening: Opening,
}

/// What stops the packets of a load balancer to its targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedBy {
    /// A security group of the targets.
    Group,
    /// No route leads to the targets.
    Route,
}

/// A page for which health checks ask because nothing says another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedPage {
    /// The path of the page.
    pub path: &'static str,
    /// What asks, and why.
    pub because: String,
    /// The kind of the objects that name another page.
    pub kind: &'static str,
    /// The status of calls if no target has the page.
    pub status: u16,
}

/// What opens an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// An annotation of the object.
    Annotation(Remedy),
    /// A route of the network to the pods of every node: what it is, and what is to be typed.
    PodRoutes(&'static str, &'static str),
}

/// A property that a load balancer has because its object does not ask for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByDefault {
    /// The property and its reason.
    pub because: String,
    /// The annotation that asks for another.
    pub remedy: Remedy,
}
