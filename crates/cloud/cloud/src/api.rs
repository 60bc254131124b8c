//! The requests and answers of the actions as types, a module for each service.
//!
//! The modules are generated from the schema. Required members of a request are plain, all others
//! are `Option`s.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request, which names its action and the type of its answer.
pub trait Action: Serialize + DeserializeOwned + Send + Sync {
    /// The service.
    const SERVICE: &'static str;
    /// The version of the service's API.
    const VERSION: &'static str;
    /// The name of the action.
    const NAME: &'static str;
    /// The type of the answer.
    type Response: Serialize + DeserializeOwned + Send;
}

macro_rules! modules {
    ($($name:ident: $doc:literal,)*) => {
        $(
            #[doc = $doc]
            #[expect(missing_docs, reason = "the published schema documents its members")]
            pub mod $name;
        )*
    };
}

modules! {
    cam: "Cloud access management: who the caller is.",
    clb: "Load balancers.",
    cvm: "Instances.",
    ssl: "Certificates.",
    sts: "The security token service: whose credential signed.",
    tag: "Tags of resources.",
    vpc: "Networks, addresses and security groups.",
}
