//! Events for failed calls, with the documented codes.

use uturn_cloud_api::client::CallError;
use uturn_model::{ObjectKind, ObjectRef};

use crate::event::Event;
use crate::run::RunError;

/// The code for failures without a documented code of their own: the load balancers' API refused a
/// call.
const OTHER: &str = "E5003";

/// Returns the event for a failure that concerns an object.
pub fn event(object: &ObjectRef, error: &RunError) -> Event {
    let is_ingress = object.kind == ObjectKind::Ingress;
    let (service, ingress, words) = explained(error);
    let code = if is_ingress { ingress } else { service };
    let message = match words {
        "" => error.lasting(),
        words => format!("{words}: {}", error.lasting()),
    };
    Event::new(object, code, message)
}

/// Returns the code for a Service, the code for an Ingress, and the description of a failure.
fn explained(error: &RunError) -> (&'static str, &'static str, &'static str) {
    let (call, code) = match error {
        RunError::Call { call, error: CallError::Api { code, .. } } => (call, code.as_str()),
        RunError::Call { error: CallError::Network(_), .. }
        | RunError::Observe(CallError::Network(_)) => {
            return ("E6006", "E6006", "the cloud's API cannot be reached");
        }
        RunError::Partial { .. } => return ("E5009", "E5009", "a part of a batch failed"),
        _ => return (OTHER, OTHER, ""),
    };
    let action = call.split(' ').next().unwrap_or_default();
    let kind = code.split('.').next().unwrap_or_default();
    match (action, kind) {
        _ if code == "AuthFailure.SignatureExpire" => {
            ("E4001", "E4008", "the clock of this machine differs from the cloud's")
        }
        (_, "AuthFailure" | "UnauthorizedOperation") if action.ends_with("SnatIps") => {
            ("E4001", "E4060", "the account may not use SNAT addresses")
        }
        (_, "AuthFailure" | "UnauthorizedOperation") => {
            ("E4001", "E4008", "the credential lacks rights")
        }
        (_, "RequestLimitExceeded") => (OTHER, "E4000", "too many calls"),
        ("CreateLoadBalancer", "LimitExceeded") => {
            ("E4004", "E4003", "the account's quota of load balancers is used up")
        }
        ("CreateListener", "LimitExceeded") => {
            (OTHER, "E4004", "the load balancer's quota of listeners is used up")
        }
        ("CreateRule", "LimitExceeded") => {
            (OTHER, "E4005", "the listener's quota of rules is used up")
        }
        ("BatchRegisterTargets", "LimitExceeded") => {
            (OTHER, "E4054", "the quota of targets is used up")
        }
        ("CreateLoadBalancer", "ResourceInsufficient") if call.contains(" subnet-") => {
            ("E4008", "E4091", "the subnet has no address left")
        }
        ("CreateLoadBalancer", "ResourceInsufficient") => {
            (OTHER, "E4025", "load balancers are sold out")
        }
        (
            "CreateLoadBalancer",
            "InvalidParameter" | "InvalidParameterValue" | "MissingParameter",
        ) => ("E4005", "E4024", "a load balancer with these parameters cannot be created"),
        ("BatchRegisterTargets", "InvalidParameterValue") if code.ends_with(".Duplicate") => {
            ("E4036", OTHER, "another listener has the same target")
        }
        _ => (OTHER, OTHER, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: ObjectKind, call: &str, code: &str) -> String {
        let object = ObjectRef::namespaced(kind, &"shop/web".parse().unwrap());
        let error = CallError::Api {
            code: code.to_owned(),
            message: "why".to_owned(),
            request_id: "1".to_owned(),
        };
        let event = event(&object, &RunError::Call { call: call.to_owned(), error });
        format!("{} {}", event.code, event.message)
    }

    #[test]
    fn failures_have_the_documented_codes() {
        let created = "CreateLoadBalancer web OPEN";
        for (kind, call, code, expected) in [
            (ObjectKind::Service, created, "LimitExceeded", "E4004 the account's quota"),
            (ObjectKind::Ingress, created, "LimitExceeded", "E4003 the account's quota"),
            (ObjectKind::Ingress, "CreateRule 80/TCP: a", "LimitExceeded", "E4005 the listener's"),
            (ObjectKind::Service, created, "UnauthorizedOperation.X", "E4001 the credential"),
            (
                ObjectKind::Ingress,
                created,
                "AuthFailure.SignatureExpire",
                "E4008 the clock of this",
            ),
            (ObjectKind::Ingress, created, "AuthFailure.SecretIdNotFound", "E4008 the credential"),
            (
                ObjectKind::Service,
                "CreateLoadBalancer web INTERNAL subnet-1",
                "ResourceInsufficient",
                "E4008 the subnet",
            ),
            (ObjectKind::Service, "ModifyRule a", "InternalError", "E5003 ModifyRule a"),
        ] {
            let told = told(kind, call, code);
            assert!(told.starts_with(expected), "{told}");
            assert!(told.ends_with("why"), "{told}");
        }
    }
}
