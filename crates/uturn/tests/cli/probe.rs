//! `uturn probe`, where no cluster is asked. (The cluster in a box has the calls.)

#![cfg(feature = "live")]

use super::common::uturn;

const FLOW: [&str; 4] = ["--from", "pod/shop/web-0", "--to", "http://10.0.0.100/"];

/// What it prints on stderr, and its exit status.
fn refused(words: &[&str]) -> (String, Option<i32>) {
    let output = uturn(&[&["probe"], words].concat()).output().unwrap();
    assert!(output.stdout.is_empty());
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

#[test]
fn without_a_terminal_it_does_not_begin() {
    let (why, status) = refused(&FLOW);
    assert!(why.contains("there is no terminal to ask on: pass --yes"), "{why}");
    assert_eq!(status, Some(2));
}

#[test]
fn only_pods_make_calls() {
    for (client, part) in [
        ("node/n1", "name one with hostNetwork that runs on node n1"),
        ("outside", "a client outside the cluster has none"),
    ] {
        let (why, status) = refused(&["--from", client, "--to", "svc/shop/front", "--yes"]);
        assert!(why.contains("calls are made in pods") && why.contains(part), "{why}");
        assert_eq!(status, Some(2));
    }
}

#[test]
fn a_bundle_is_no_running_cluster() {
    let (why, status) = refused(&[&FLOW[..], &["--yes", "--bundle", "examples/shop"]].concat());
    assert!(why.contains("makes calls in a running cluster"), "{why}");
    assert_eq!(status, Some(2));
}

#[test]
fn the_number_of_calls_is_limited() {
    for number in ["0", "1001", "-1", "many"] {
        let (why, status) = refused(&[&FLOW[..], &["--yes", "-n", number]].concat());
        assert!(status == Some(2), "{number}: {why}");
    }
}
