//! The requests and answers of the actions as types, a module for each service.
//!
//! The modules are generated from the schema. Required members of a request are plain, all others
//! are `Option`s.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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

    /// Returns the parameters of the request, without members that are `null`, which clients do not
    /// send.
    ///
    /// # Errors
    /// When a member cannot be written as JSON.
    fn parameters(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self).map(without_nulls)
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let stated = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(stated.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
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
