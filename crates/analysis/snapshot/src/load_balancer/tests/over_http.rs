//! Tests configurations that come to the admin address of a running load balancer: the targets that
//! they may name, and the settings that they leave as they are.

use uturn_document::{Fault, Source};
use uturn_lb::config::Config;

use super::super::{RunningBalancer, read_lb_change, read_lb_config_of_client};
use super::read;

/// Returns the served configuration, which is that of the file.
fn served(admin: &str) -> Config {
    read(&format!(
        "apiVersion: uturn.dev/v1alpha1\nkind: DataPlane\nspec:\n  admin: {admin}\n  \
         accessLog: logs/access.json\n---\n{}",
        document("10.0.0.101", "10.0.0.11:80", false)
    ))
    .unwrap()
}

fn document(vip: &str, target: &str, derived: bool) -> String {
    format!(
        "apiVersion: uturn.dev/v1alpha1\nkind: LoadBalancer\nmetadata: {{name: lb-{vip}}}\nspec:\n  \
         vip: {vip}\n  derived: {derived}\n  listeners:\n  - port: 80\n    protocol: HTTP\n    \
         healthCheck: none\n    source: {}\n    targets: ['{target}']\n",
        if target.starts_with('[') { "fd00::/64" } else { "10.0.0.0/24" }
    )
}

/// Returns the faults of a body, read as a whole configuration and as a change.
fn faults(body: &str, served: &Config) -> [Vec<String>; 2] {
    let source = Source { name: "body".into(), text: body.to_owned() };
    let addresses = ["10.0.0.5".parse().unwrap(), "127.0.0.1".parse().unwrap()];
    let running = RunningBalancer { served, addresses: &addresses };
    let shown = |faults: Vec<Fault>| faults.iter().map(ToString::to_string).collect();
    let change = read_lb_change(&source, &running).err().map_or_else(Vec::new, shown);
    let whole = read_lb_config_of_client(source, &running).err().map_or_else(Vec::new, shown);
    [whole, change]
}

#[test]
fn targets_are_of_other_machines() {
    let usual = served("{address: '10.0.0.5:9900', tokenFile: t}");
    let wide = served("{address: '0.0.0.0:9900', tokenFile: t}");
    let open = served("{address: '10.0.0.5:9900', tokenFile: t, localTargets: true}");
    for (target, refused) in [
        ("10.0.0.12:80", None),
        ("10.0.0.5:80", None),
        ("127.0.0.1:80", Some("a loopback address")),
        ("127.9.9.9:9900", Some("a loopback address")),
        ("169.254.169.254:80", Some("a link-local address")),
        ("224.0.0.1:80", Some("a multicast address")),
        ("0.0.0.0:9900", Some("an unspecified address")),
        ("255.255.255.255:80", Some("a reserved address")),
        ("[::1]:80", Some("a loopback address")),
        ("[::ffff:127.0.0.1]:80", Some("a loopback address")),
        ("[64:ff9b::127.0.0.1]:80", Some("a loopback address")),
        ("[2002:7f00:1::1]:80", Some("a loopback address")),
        ("[fe80::1]:80", Some("a link-local address")),
        ("[::ffff:10.0.0.5]:9900", Some("the admin address")),
        ("10.0.0.5:9900", Some("the admin address")),
        ("10.0.0.100:22", Some("a VIP of this load balancer")),
        ("[64:ff9b::10.0.0.100]:22", Some("a VIP of this load balancer")),
    ] {
        // Derived documents have few checks, but this is one of them.
        let body = document("10.0.0.100", target, true);
        for served in [&usual, &wide] {
            for found in faults(&body, served) {
                let Some(what) = refused else {
                    assert_eq!(found, [""; 0], "{target}");
                    continue;
                };
                let [fault] = &found[..] else { panic!("{target}: {found:?}") };
                assert!(fault.starts_with("body:12:15: "), "{fault}");
                assert!(
                    fault.contains("expected the address of a") && fault.contains(what),
                    "{fault}"
                );
                let may_be_allowed = fault.contains("another machine")
                    && fault.contains("spec.admin.localTargets: true");
                let is_nobodys =
                    ["multicast", "unspecified", "reserved"].iter().any(|word| what.contains(word));
                assert_ne!(may_be_allowed, is_nobodys, "{fault}");
                let expected = usize::from(is_nobodys);
                assert_eq!(
                    faults(&body, &open).map(|found| found.len()),
                    [expected; 2],
                    "{target}"
                );
            }
        }
    }
    // In a change, VIPs of load balancers that it leaves as they are must not be targets.
    let [whole, change] = faults(&document("10.0.0.100", "10.0.0.101:22", false), &usual);
    assert_eq!((whole.len(), change.len()), (0, 1), "{change:?}");
}

#[test]
fn targets_of_a_file_are_of_machines() {
    for (target, what) in [
        ("224.0.0.1:80", "a multicast address"),
        ("0.0.0.0:80", "an unspecified address"),
        ("255.255.255.255:80", "a reserved address"),
        ("[::]:80", "an unspecified address"),
        ("[ff02::1]:80", "a multicast address"),
    ] {
        let fault = read(&document("10.0.0.100", target, false)).unwrap_err();
        assert!(fault.contains("expected the address of a machine"), "{target}: {fault}");
        assert!(fault.contains(what), "{target}: {fault}");
    }
    for target in ["127.0.0.1:80", "169.254.1.1:80", "10.0.0.100:81"] {
        read(&document("10.0.0.100", target, false)).unwrap();
    }
    for (admin, target) in [
        ("127.0.0.1:9900", "127.0.0.1:9900"),
        ("10.0.0.5:9900", "10.0.0.5:9900"),
        ("0.0.0.0:9900", "127.0.0.2:9900"),
    ] {
        let plane = format!(
            "apiVersion: uturn.dev/v1alpha1\nkind: DataPlane\nspec: {{admin: '{admin}'}}\n---\n"
        );
        let fault = read(&(plane + &document("10.0.0.100", target, false))).unwrap_err();
        let expected = format!("lb.yaml:3:15: spec.admin: {admin} is a target of lb-10.0.0.100\n");
        assert_eq!(fault, expected);
    }
}

#[test]
fn the_admin_address_and_the_access_log_are_the_files() {
    let served = served("{address: '10.0.0.5:9900', tokenFile: t, hosts: [a.example]}");
    let plane =
        |spec: &str| format!("apiVersion: uturn.dev/v1alpha1\nkind: DataPlane\nspec: {{{spec}}}\n");
    let read = |body: &str| {
        let source = Source { name: "body".into(), text: body.to_owned() };
        let running = RunningBalancer { served: &served, addresses: &[] };
        read_lb_config_of_client(source, &running).map_err(|faults| faults[0].to_string())
    };
    let same = "admin: {address: '10.0.0.5:9900', tokenFile: t, hosts: [a.example]}, \
                accessLog: logs/access.json, workers: 3";
    for body in [document("10.0.0.100", "10.0.0.11:80", false), plane("drain: 1s"), plane(same)] {
        let process = read(&body).unwrap().process;
        assert_eq!(process.admin, served.process.admin, "{body}");
        assert_eq!(process.admin_token, served.process.admin_token, "{body}");
        assert_eq!(process.admin_hosts, served.process.admin_hosts, "{body}");
        assert_eq!(process.access_log, served.process.access_log, "{body}");
    }
    for (spec, field) in [
        ("admin: 10.0.0.6:9900", "spec.admin"),
        ("admin: {address: '10.0.0.5:9900', tokenFile: other, hosts: [a.example]}", "spec.admin"),
        ("admin: {address: '10.0.0.5:9900', tokenFile: t}", "spec.admin"),
        (
            "admin: {address: '10.0.0.5:9900', tokenFile: t, hosts: [a.example, b.example]}",
            "spec.admin",
        ),
        (
            "admin: {address: '10.0.0.5:9900', tokenFile: t, hosts: [a.example], localTargets: true}",
            "spec.admin",
        ),
        ("accessLog: off", "spec.accessLog"),
        ("accessLog: stdout", "spec.accessLog"),
        ("accessLog: /etc/passwd", "spec.accessLog"),
    ] {
        let fault = read(&plane(spec)).unwrap_err();
        let expected = format!("{field}: it can be changed in the file of `uturn lb run` only");
        assert!(fault.starts_with("body:3:") && fault.contains(&expected), "{spec}: {fault}");
    }
    assert!(read("").unwrap_err().contains("no LoadBalancer document"));
    let at_admin = document("10.0.0.5", "10.0.0.11:80", false).replace("port: 80", "port: 9900");
    assert!(read(&at_admin).unwrap_err().ends_with("10.0.0.5:9900 is the admin address"));
}
