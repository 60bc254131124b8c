//! Health checks of `uturn lb run` while its configuration changes.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::net::TcpListener;

use crate::site::{Site, free_address};

/// A probe that is under way goes on. If every change began it anew, a target that hangs would
/// count as alive for as long as changes come often.
#[test]
fn probes_go_on_through_changes_that_do_not_concern_them() {
    let site = Site::new("lb-probes");
    // A server that takes connections and answers nothing.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let asks = "healthCheck: {interval: 5m, timeout: 1m, rise: 1, fall: 1, probe: {exchange: {expect: hi}}}";
    let text = site
        .text(0)
        .replace("healthCheck: none", asks)
        .replace(&site.targets[0].to_string(), &mute.local_addr().unwrap().to_string());
    site.folder.file("lb.yaml", &text);
    let mut running = site.start(&[]);
    let (mut probe, _) = mute.accept().unwrap();

    // Another listener comes, before this one.
    let other = free_address();
    let both = text.replace(
        "  listeners:\n",
        &format!(
            "  listeners:\n  - port: {}\n    protocol: HTTP\n    source: 127.0.0.1/32\n    \
             healthCheck: none\n    targets: ['{}']\n",
            other.port(),
            site.targets[1]
        ),
    );
    let (status, answer) = site.allowed("PUT", "/config", &both);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(running.reloaded(), "admin");
    probe.write_all(b"hi").unwrap();
    let event = running.event();
    assert_eq!((&event["event"], &event["alive"]), (&"health".into(), &true.into()), "{event}");
    assert_eq!(event["listener"], site.listener.to_string());

    // Another question begins anew, and the target stays as it was decided until then.
    let other_question = both.replace("expect: hi", "expect: ho");
    assert_eq!(site.allowed("PUT", "/config", &other_question).0, 200);
    assert_eq!(running.reloaded(), "admin");
    let (mut probe, _) = mute.accept().unwrap();
    let (_, targets) = site.admin("GET", "/targets", "", "");
    assert!(targets.contains("\"decided\": true"), "{targets}");
    probe.write_all(b"hi").unwrap();
    let event = running.event();
    assert_eq!((&event["event"], &event["alive"]), (&"health".into(), &false.into()), "{event}");
}
