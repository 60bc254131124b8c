//! The manifests agree with the code.

use std::collections::BTreeSet;

use uturn_kube::kinds::WATCHED;
use uturn_kube::manifests::{CONFIG_DEFINITION, RIGHTS};

use crate::processes::is_allowed;

#[test]
fn what_is_watched_may_be_watched() {
    for kind in WATCHED {
        for verb in ["list", "watch"] {
            assert!(is_allowed(verb, kind.group, kind.plural), "{verb} {}", kind.plural);
        }
        assert!(!is_allowed("delete", kind.group, kind.plural));
    }
    assert!(is_allowed("get", "", "secrets") && !is_allowed("list", "", "secrets"));
    assert!(!RIGHTS.contains('*'), "no right is for everything");
}

/// The fields that the decoder of TkeServiceConfigs reads are those that its schema has.
#[test]
fn the_schema_has_the_fields_that_are_read() {
    let decoder = include_str!("../../../../analysis/snapshot/src/decode/listener_overrides.rs");
    let code = decoder.split("\nfn ").skip(1).collect::<Vec<_>>().join("\n");
    let is_field = |word: &&str| {
        word.starts_with(|letter: char| letter.is_ascii_lowercase())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let quoted = code.split('"').skip(1).step_by(2);
    let read: BTreeSet<&str> = quoted.filter(is_field).collect();
    let (_, schema) = CONFIG_DEFINITION.split_once("loadBalancer:").unwrap();
    let stated: BTreeSet<&str> = schema
        .lines()
        .filter_map(|line| line.trim().split_once(':'))
        .filter(|(_, value)| value.trim().starts_with("{type") || value.trim().is_empty())
        .map(|(key, _)| key)
        .filter(is_field)
        .filter(|key| !["items", "properties"].contains(key))
        .collect();
    let lists = ["internetMaxBandwidthOut", "l4Listeners", "l7Listeners"];
    let expected: BTreeSet<&str> = read.into_iter().chain(lists).collect();
    assert_eq!(stated, expected);
}
