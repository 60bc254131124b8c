//! The published schema: the actions of each service, and the members of every request and answer
//! with their types. It gives the parameters of a GET their types ([`query`]), and requests are
//! checked against it before an action sees them.
//!
//! The files in `schema/` hold only names, types and the required members of requests.
//! `cargo xtask clients` compares them with the published description.

mod check;
pub mod query;
mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// A service of the cloud, in one version of its API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The short name, such as `clb`.
    pub name: String,
    /// The version of the API, such as `2018-03-17`.
    pub version: String,
    /// The names of the actions.
    pub actions: BTreeSet<String>,
    /// The objects that its requests and answers are made of, by name. The request of an action
    /// is the object with the action's name and `Request` behind it, its answer the one with
    /// `Response`.
    pub objects: BTreeMap<String, Object>,
}

/// An object: its members in the order in which they are published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// The members.
    pub members: Vec<Member>,
}

impl Object {
    /// Returns the member with this name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: MemberKind,
    /// Whether the member is required in a request that contains the object.
    pub required: bool,
}

/// The type of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// A text.
    String,
    /// A whole number that may be negative.
    Integer,
    /// A whole number that may not be negative.
    Unsigned,
    /// A truth value.
    Boolean,
    /// A number.
    Float,
    /// The object with this name.
    Object(String),
    /// A list.
    List(Box<MemberKind>),
}

/// Returns the services whose actions this server knows, load balancers first.
pub fn services() -> &'static [Service] {
    static SERVICES: LazyLock<Vec<Service>> = LazyLock::new(|| {
        FILES
            .iter()
            .map(|(name, text)| match read::service(text) {
                Ok(service) => service,
                Err(error) => panic!("the schema of {name} is part of the program: {error}"),
            })
            .collect()
    });
    &SERVICES
}

/// The schema files of [`services`], by the names of the services.
pub const FILES: &[(&str, &str)] = &[
    ("clb", include_str!("../schema/clb.json")),
    ("cvm", include_str!("../schema/cvm.json")),
    ("vpc", include_str!("../schema/vpc.json")),
    ("tag", include_str!("../schema/tag.json")),
    ("cam", include_str!("../schema/cam.json")),
    ("ssl", include_str!("../schema/ssl.json")),
    ("sts", include_str!("../schema/sts.json")),
];

impl Service {
    /// Returns the name of the object of an action's request.
    pub fn request(&self, action: &str) -> Option<&str> {
        self.object_of(action, "Request")
    }

    /// Returns the name of the object of an action's answer.
    pub fn response(&self, action: &str) -> Option<&str> {
        self.object_of(action, "Response")
    }

    fn object_of(&self, action: &str, suffix: &str) -> Option<&str> {
        let known = self.actions.contains(action);
        let object = known.then(|| self.objects.get_key_value(&format!("{action}{suffix}")))?;
        object.map(|(name, _)| name.as_str())
    }
}
