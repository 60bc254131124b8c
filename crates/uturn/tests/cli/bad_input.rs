//! Bad input: a clear message for each, exit status 2, never a panic.

use std::fs;
use std::io::Write;

use super::common::{Folder, root, run, uturn};
use insta::assert_snapshot;

trait Scan {
    /// Scans a path inside the folder, which is where the command runs.
    fn scan(&self, path: &str) -> String;
}

impl Scan for Folder {
    fn scan(&self, path: &str) -> String {
        self.run(&["scan", "-f", path])
    }
}

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec:
  ports: [{port: 80}]
";

#[test]
fn a_file_cut_in_half() {
    let folder = Folder::new("cut");
    let whole = fs::read_to_string(root().join("examples/shop/front.yaml")).unwrap();
    let half = &whole[..whole.find("ingress: [{ip: 10.0").unwrap() + 12];
    assert_snapshot!(folder.file("half.yaml", half).scan("half.yaml"));
}

#[test]
fn json_cut_in_half() {
    let folder = Folder::new("cut-json");
    let text = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "fro"#;
    assert_snapshot!(folder.file("half.json", text).scan("half.json"));
}

#[test]
fn tabs() {
    let folder = Folder::new("tabs");
    let text = SERVICE.replace("  ports", "\tports");
    assert_snapshot!(folder.file("tabs.yaml", &text).scan("tabs.yaml"));
}

#[test]
fn an_unknown_api_version() {
    let folder = Folder::new("version");
    let text = "apiVersion: networking.k8s.io/v9\nkind: Ingress\nmetadata: {name: front}\n";
    assert_snapshot!(folder.file("ingress.yaml", text).scan("ingress.yaml"));
}

#[test]
fn a_service_without_ports() {
    let folder = Folder::new("ports");
    let text = SERVICE.replace("ports: [{port: 80}]", "type: ClusterIP");
    assert_snapshot!(folder.file("service.yaml", &text).scan("service.yaml"));
}

#[test]
fn a_path_that_does_not_exist() {
    assert_snapshot!(Folder::new("missing").scan("nowhere.yaml"));
}

#[test]
fn two_objects_of_one_name() {
    let folder = Folder::new("twice");
    folder.file("a.yaml", SERVICE).file("b.yaml", SERVICE);
    assert_snapshot!(folder.scan("."));
}

#[test]
fn one_bad_file_hides_no_other() {
    let folder = Folder::new("many");
    folder
        .file("a.yaml", &SERVICE.replace("  ports", "\tports"))
        .file("b.yaml", &SERVICE.replace("port: 80", "port: 70000"))
        .file("c.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: Front}\nspec: {type: Ingress, ports: [{port: x}]}\n")
        .file("d.json", "{\"apiVersion\": 1}");
    assert_snapshot!(folder.scan("."));
}

#[test]
fn something_that_is_no_manifest() {
    let folder = Folder::new("other");
    fs::write(folder.0.join("noise.yaml"), [0u8, 159, 146, 150]).unwrap();
    folder.file("words.yaml", "just some words\n");
    assert_snapshot!(folder.scan("."));
}

#[test]
fn a_hundred_megabytes() {
    let folder = Folder::new("large");
    let line = [b'a'; 1 << 16];
    let mut file = fs::File::create(folder.0.join("large.yaml")).unwrap();
    for _ in 0..(100 << 20) / line.len() {
        file.write_all(&line).unwrap();
    }
    drop(file);
    assert_snapshot!(folder.scan("large.yaml"));
}

#[test]
fn nothing_at_all() {
    let folder = Folder::new("nothing");
    folder.file("empty.yaml", "");
    assert_snapshot!(folder.scan("empty.yaml"));
}

/// What is not there is said with what is.
#[test]
fn a_word_beside_what_there_is() {
    let last_line = |from: &str, to: &str| {
        let printed = run(&["trace", "-f", "examples/shop", "--from", from, "--to", to]);
        assert!(printed.starts_with("exit 2\n"), "{printed}");
        printed.lines().last().unwrap().to_owned()
    };
    assert_eq!(
        last_line("pod/shop/web-7", "svc/shop/front"),
        "error: there is no pod/shop/web-7 in this cluster; there are pod/shop/web-0, \
         pod/shop/web-1, pod/shop/web-2 and 4 more"
    );
    assert_eq!(
        last_line("deploy/shop/wbe", "svc/shop/front"),
        "error: there is no deploy/shop/wbe in this cluster; there are deploy/shop/web, \
         deploy/shop/api and deploy/shop/front"
    );
    assert_eq!(
        last_line("node/n9", "svc/shop/front"),
        "error: there is no node/n9 in this cluster; there are node/n1, node/n2 and node/n3"
    );
    assert_eq!(
        last_line("pod/shop/web-0", "ingress/shop/frnt"),
        "error: there is no ingress/shop/frnt in this cluster; there is ingress/shop/front"
    );
    let bare = run(&["check", "service", "front", "-f", "examples/shop"]);
    assert!(bare.contains("expected NAMESPACE/NAME, such as default/front"), "{bare}");
}

/// Each Scenario is a cluster of its own.
#[test]
fn several_scenarios() {
    let zones = "scenarios/zones.yaml";
    let several = run(&["scan", "-f", zones, "-f", "scenarios/wrong-port.yaml"]);
    let why = "each is a cluster of its own; give the file of one with -f, and nothing else";
    assert_eq!(several, format!("exit 2\n--- stderr\nerror: Scenario zones and 1 more: {why}\n"));
    let beside = run(&["scan", "-f", zones, "-f", "examples/shop"]);
    assert!(beside.contains(&format!("left out: Scenario zones: {why}\n")), "{beside}");
    assert!(run(&["scan", "-f", zones]).starts_with("exit 1\n--- stdout\n"));
}

/// A full disk, or what else keeps a result from being written, is no success.
#[test]
#[cfg(target_os = "linux")]
fn the_result_cannot_be_written() {
    for args in [&["explain", "UT101"][..], &["scan", "-f", "examples/shop", "-o", "json"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = uturn(args).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        assert!(said.contains("error: the result could not be written: No space left"), "{said}");
    }
}

/// A call of this is refused, and why.
fn assert_no_target(to: &str, why: &str) {
    let printed = run(&["trace", "-f", "examples/shop", "--from", "pod/shop/web-0", "--to", to]);
    assert!(printed.starts_with("exit 2\n"), "{printed}");
    assert!(printed.contains(&format!("{to:?} is not a target: {why}")), "{printed}");
}

/// No name ends in a number.
#[test]
fn what_looks_like_an_address() {
    for (to, host) in [
        ("http://10.0.0.300/", "10.0.0.300"),
        ("https://1.2.3:8443/", "1.2.3"),
        ("10.0.0.300:80", "10.0.0.300"),
    ] {
        assert_no_target(to, &format!("{host} is neither an IPv4 address nor a name"));
    }
}

/// A scheme of another protocol stands for a connection.
#[test]
fn schemes_that_are_not_spoken() {
    for (to, why) in [
        ("tcp://10.0.0.100:80", "to call tcp, name the connection: 10.0.0.100:80"),
        ("grpc://shop.example.com/", "to call grpc, name the connection: shop.example.com:PORT"),
    ] {
        assert_no_target(to, &format!("expected the scheme http or https; {why}"));
    }
}

/// What one types first.
#[test]
fn a_path_without_its_option() {
    let folder = Folder::new("no-option");
    let printed = folder.file("a.yaml", SERVICE).run(&["scan", "a.yaml"]);
    let tip = "tip: to read manifests, use '-f a.yaml'";
    assert!(printed.starts_with("exit 2\n") && printed.contains(tip), "{printed}");
    // A command that reads none, and what is no path.
    for arguments in [&["walk", "a.yaml"] as &[&str], &["scan", "b.yaml"]] {
        assert!(!folder.run(arguments).contains(tip), "{arguments:?}");
    }
}

/// What is wrong with an address of IPv6 is said, and not that of a port.
#[test]
fn addresses_of_ipv6_that_are_written_otherwise() {
    for (to, why) in [
        ("2001:db8::1:80", "an IPv6 address is written in brackets: [ADDRESS]:PORT"),
        ("http://fd00::1:80/", "an IPv6 address is written in brackets: [ADDRESS]:PORT"),
        ("[fd00::1]", "a port is missing: [fd00::1]:80"),
        ("[fe80::1%eth0]:80", "zones such as that of fe80::1%eth0 are not supported"),
        ("[10.96.1.1]:80", "brackets are for IPv6 addresses: 10.96.1.1:80"),
    ] {
        assert_no_target(to, why);
    }
}
