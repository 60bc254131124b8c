//! `PATCH /config` of `uturn lb run`: changes of what it serves, listener by listener.
#![cfg(target_os = "linux")]

use std::net::{SocketAddr, TcpStream};

use crate::site::{Site, TOKEN, free_address};

/// A document of the site's load balancer with a listener at this address alone.
fn document(site: &Site, listener: SocketAddr, target: usize) -> String {
    let text = site.text(target);
    let (_, document) = text.split_once("---\n").unwrap();
    document
        .replace(&format!("port: {}", site.listener.port()), &format!("port: {}", listener.port()))
}

fn removal(site: &Site, listener: SocketAddr) -> String {
    format!(
        "{{apiVersion: uturn.dev/v1alpha1, kind: Removal, spec: {{listeners: [{{loadBalancer: web, \
         vip: {}, port: {}, protocol: HTTP}}]}}}}\n",
        site.listener.ip(),
        listener.port()
    )
}

fn patch(site: &Site, version: &str, body: &str) -> (u16, String) {
    let headers = format!("Authorization: Bearer {TOKEN}\r\nIf-Match: {version}\r\n");
    site.admin("PATCH", "/config", &headers, body)
}

fn version(answer: &str) -> String {
    answer.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned()
}

#[test]
fn listeners_are_changed_one_by_one() {
    let site = Site::new("lb-patch");
    let mut running = site.start(&[]);
    let other = SocketAddr::new(site.listener.ip(), free_address().port());
    let first = version(&site.allowed("GET", "/config", "").1);

    let (status, answer) = patch(&site, &first, &document(&site, other, 1));
    assert_eq!(status, 200, "{answer}");
    let event = running.event();
    assert_eq!((&event["event"], &event["changed"]), (&"reloaded".into(), &1.into()), "{event}");
    assert_eq!((site.ask_at(site.listener), site.ask_at(other)), ("first".into(), "second".into()));
    let second = version(&answer);
    assert_ne!(first, second);
    assert_eq!(version(&site.allowed("GET", "/config", "").1), second);

    // A change of another version is none of this one.
    let (status, _) = patch(&site, &first, &removal(&site, other));
    assert_eq!(status, 412);
    let (status, answer) = site.allowed("PATCH", "/config", &removal(&site, other));
    assert_eq!(status, 428, "{answer}");

    // When it is acknowledged, the sockets of what is gone are closed.
    let (status, answer) = patch(&site, &second, &removal(&site, other));
    assert_eq!(status, 200, "{answer}");
    assert!(TcpStream::connect(other).is_err());
    assert_eq!(running.event()["changed"], 1);
    assert_eq!(version(&answer), first, "the version is of what it says");
    assert_eq!(site.ask_at(site.listener), "first");
}

#[test]
fn a_change_that_is_wrong_changes_nothing() {
    let site = Site::new("lb-patch-wrong");
    let _running = site.start(&[]);
    let tag = version(&site.allowed("GET", "/config", "").1);
    let other = SocketAddr::new(site.listener.ip(), free_address().port());
    let good = document(&site, other, 1);
    let wrong = |body: &str, expected: &str| {
        let (status, answer) = patch(&site, &tag, body);
        assert_eq!(status, 400, "{answer}");
        let (_, message) = answer.split_once("\r\n\r\n").unwrap();
        assert!(message.starts_with(expected), "{message}");
    };
    wrong(
        &good.replace("protocol: HTTP", "protocol: HTP"),
        "body:8:15: spec.listeners[0].protocol",
    );
    wrong(&format!("{good}---\n{}", removal(&site, other)), "body: TCP:");
    wrong(&site.text(0), "body:1:1: expected uturn.dev/v1alpha1 LoadBalancer or Removal");
    let at_admin = good
        .replace(&format!("vip: {}", other.ip()), &format!("vip: {}", site.admin.ip()))
        .replace(&format!("port: {}", other.port()), &format!("port: {}", site.admin.port()));
    wrong(&at_admin, &format!("body: TCP {} of web is taken by the admin address", site.admin));
    let twice = good
        .replace("name: web", "name: other")
        .replace(&format!("port: {}", other.port()), &format!("port: {}", site.listener.port()));
    wrong(&twice, &format!("body: TCP {} of other is taken by web", site.listener));
    assert_eq!(version(&site.allowed("GET", "/config", "").1), tag);
    assert!(TcpStream::connect(other).is_err());
    assert_eq!(site.ask_at(site.listener), "first");
}

#[test]
fn what_comes_over_http_names_targets_of_other_machines_and_leaves_the_admin_address() {
    let site = Site::new("lb-strangers");
    site.folder.file("lb.yaml", &site.text(0).replace(", localTargets: true", ""));
    let _running = site.start(&[]);
    let tag = version(&site.allowed("GET", "/config", "").1);
    let other = SocketAddr::new(site.listener.ip(), free_address().port());
    let (status, answer) = patch(&site, &tag, &document(&site, other, 1));
    assert_eq!(status, 400, "{answer}");
    let expected =
        "body:12:15: spec.listeners[0].targets[0]: expected the address of another machine";
    assert!(answer.contains(expected), "{answer}");
    let own =
        document(&site, other, 1).replace(&site.targets[1].to_string(), &site.admin.to_string());
    assert_eq!(site.allowed("PUT", "/config", &own).0, 400);
    let elsewhere = |target: &str| {
        let text = site.text(1).replace(", localTargets: true", "");
        text.replace(&site.targets[1].to_string(), target)
    };
    let (status, answer) = site.allowed("PUT", "/config", &elsewhere("192.0.2.1:80"));
    assert_eq!(status, 200, "{answer}");
    // Without a DataPlane document, and with another one.
    let whole = elsewhere("192.0.2.2:80");
    let (plane, balancer) = whole.split_once("---\n").unwrap();
    assert_eq!(site.allowed("PUT", "/config", balancer).0, 200);
    assert_eq!(site.admin("GET", "/metrics", "", "").0, 200);
    let moved = plane.replace(&site.admin.to_string(), &free_address().to_string());
    let log = format!("{plane}  accessLog: stdout\n");
    for (plane, field) in [(&*moved, "spec.admin"), (&*log, "spec.accessLog")] {
        let (status, answer) = site.allowed("PUT", "/config", &format!("{plane}---\n{balancer}"));
        assert_eq!(status, 400, "{answer}");
        assert!(answer.contains(&format!("{field}: it can be changed in the file")), "{answer}");
    }
    assert_eq!(site.admin("GET", "/metrics", "", "").0, 200);
}
