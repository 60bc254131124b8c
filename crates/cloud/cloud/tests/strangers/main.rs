//! Requests that may not: unsigned, signed by nobody known, too old, or signed by the owner of
//! another account. They change nothing and learn nothing, whatever the action.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod addresses;
mod cloud;
mod requests;

use std::collections::BTreeSet;

use serde_json::Value;
use uturn_cloud::actions::PERFORMED;

use self::cloud::{Served, Signer, failed};
use self::requests::{Made, owners_requests};

#[test]
fn every_action_is_tried() {
    let served = Served::new();
    let made = Made::new(&served);
    let tried: BTreeSet<(&str, &str)> = owners_requests(&made)
        .into_iter()
        .map(|request| (request.service, request.action))
        .collect();
    for action in PERFORMED {
        assert!(tried.contains(action), "{action:?} is missing from the table");
    }
}

#[test]
fn what_the_owner_may_do_no_one_else_may() {
    let served = Served::new();
    let made = Made::new(&served);
    for request in owners_requests(&made) {
        let before = served.stored();
        for (signer, expected) in [
            (Signer::None, "AuthFailure.InvalidAuthorization"),
            (Signer::Unknown, "AuthFailure.SecretIdNotFound"),
            (Signer::WrongKey, "AuthFailure.SignatureFailure"),
            (Signer::Expired, "AuthFailure.SignatureExpire"),
            (Signer::Early, "AuthFailure.SignatureExpire"),
            (Signer::OtherBody, "AuthFailure.SignatureFailure"),
        ] {
            let answer = served.send(signer, &request);
            assert_eq!(failed(&answer), Some(expected), "{signer:?} {}", request.action);
            assert_eq!(served.stored(), before, "{signer:?} {}", request.action);
        }
        // The other account has nothing: it sees nothing of the owner's and changes nothing.
        let answer = served.send(Signer::Other, &request);
        assert_eq!(served.stored_of("owner"), before["owner"], "{} {answer}", request.action);
        assert!(!answer.to_string().contains("secret-"), "{}: {answer}", request.action);
        if failed(&answer).is_none() {
            assert!(request.may_succeed_elsewhere, "{} of another: {answer}", request.action);
        }
    }
}

#[test]
fn the_owner_may() {
    for position in 0.. {
        let served = Served::new();
        let made = Made::new(&served);
        let requests = owners_requests(&made);
        let Some(request) = requests.get(position) else { break };
        let before = served.stored_of("owner");
        let answer = served.send(Signer::Owner, request);
        assert_eq!(failed(&answer), None, "{}: {answer}", request.action);
        let reads = ["Describe", "Get"].iter().any(|verb| request.action.starts_with(verb));
        let changed = served.stored_of("owner") != before;
        assert_eq!(changed, !reads, "{} changes something", request.action);
        let sees = request.sees.is_none_or(|part| answer.to_string().contains(part));
        assert!(sees, "{} shows {:?}: {answer}", request.action, request.sees);
    }
}

/// What a described object has, where only its owner may see it.
#[test]
fn names_are_seen_by_their_owner() {
    let served = Served::new();
    let made = Made::new(&served);
    let seen = owners_requests(&made)
        .iter()
        .map(|request| served.send(Signer::Owner, request))
        .filter(|answer: &Value| answer.to_string().contains("secret-"))
        .count();
    assert!(seen >= 4, "the texts that others must not see are in {seen} answers");
}
