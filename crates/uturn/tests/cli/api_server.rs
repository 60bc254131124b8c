//! Commands that read a running cluster, of a server that gives nothing, or refuses.

#![cfg(feature = "live")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use serde_json::{Value, json};

use super::common::{Folder, transcript, uturn};

/// What a server answers a path with: status and body.
type Answer = fn(&str) -> (u16, String);

/// A server on this machine, as long as the test runs. Returns its URL.
fn serve(answer: Answer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || respond(stream, answer));
        }
    });
    url
}

/// Answers one request. One that went away wants no answer.
fn respond(mut stream: TcpStream, answer: Answer) {
    let mut bytes = vec![0; 8192];
    let count = stream.read(&mut bytes).unwrap_or(0);
    let request = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let (code, body) = answer(request.split(' ').nth(1).unwrap_or_default());
    let length = body.len();
    let head = format!("HTTP/1.1 {code} x\r\ncontent-length: {length}\r\nconnection: close\r\n");
    let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
}

fn status(code: u16, message: &str) -> (u16, String) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                        "reason": "x", "message": message});
    (code, status.to_string())
}

/// A cluster with one node, and nothing else.
fn one_node(path: &str) -> (u16, String) {
    if path.contains("watch=") {
        return (200, String::new());
    }
    let list =
        |items| json!({"kind": "NodeList", "metadata": {"resourceVersion": "1"}, "items": items});
    let body = match path.split('?').next().unwrap_or_default() {
        "/version" => json!({"gitVersion": "v1.34.4"}),
        "/api/v1/nodes" => list(json!([{
            "metadata": {"name": "n1"},
            "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}]},
        }])),
        path if path.contains("/configmaps/") => return status(404, "not found"),
        _ => list(json!([])),
    };
    (200, body.to_string())
}

fn forbidden(path: &str) -> (u16, String) {
    status(403, &format!("{path} is forbidden: User \"me\" may not"))
}

fn broken(_: &str) -> (u16, String) {
    status(500, "etcdserver: request timed out")
}

/// Writes a kubeconfig of a server, and runs a command with it.
fn run(folder: &Folder, server: &str, words: &[&str]) -> String {
    run_with(folder, &json!({"server": server}), words)
}

/// The same with all that a kubeconfig may say of a cluster.
fn run_with(folder: &Folder, cluster: &Value, words: &[&str]) -> String {
    let config = json!({
        "kind": "Config", "current-context": "live",
        "clusters": [{"name": "there", "cluster": cluster}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "contexts": [{"name": "live", "context": {"cluster": "there", "user": "me"}}],
    });
    folder.file("config", &config.to_string());
    let mut command = uturn(words);
    command.current_dir(&folder.0).env("KUBECONFIG", "config");
    transcript(&command.output().unwrap())
}

#[test]
fn a_cluster_that_cannot_be_read_is_no_empty_one() {
    let folder = Folder::new("api-unread");
    let (forbidding, failing) = (serve(forbidden), serve(broken));
    let rights = "\n  uturn collect --rbac prints the rights";
    for words in [
        &["scan", "-q"][..],
        &["check", "nodes", "-q"],
        &["scan", "--watch", "-q"],
        &["collect", "-q", "-o", "bundle"],
    ] {
        let said = run(&folder, &forbidding, words);
        let expected =
            "exit 3\n--- stderr\nerror: nothing could be read: Nodes, Pods, Services and ";
        assert!(said.starts_with(expected), "{words:?}: {said}");
        assert!(said.contains("is forbidden: User \"me\" may not"), "{said}");
        assert!(said.contains(rights) && said.contains("-n NAMESPACE"), "{said}");
        let said = run(&folder, &forbidding, &[words, &["-n", "shop"]].concat());
        assert!(said.contains(rights) && !said.contains("-n NAMESPACE"), "{said}");
        // Rights do not help where the server fails.
        let said = run(&folder, &failing, words);
        assert!(said.starts_with(expected), "{words:?}: {said}");
        assert!(said.contains("etcdserver: request timed out"), "{said}");
        assert!(!said.contains("--rbac"), "{said}");
    }
    assert!(!folder.0.join("bundle").exists());
}

#[test]
fn nodes_that_were_asked_for_and_are_not_captured_are_a_failure() {
    let folder = Folder::new("api-nodes");
    let server = serve(one_node);
    let said = run(&folder, &server, &["collect", "-o", "objects"]);
    assert!(said.starts_with("exit 0\n") && said.contains("objects: 1 objects;"), "{said}");
    let said = run(&folder, &server, &["collect", "--node", "n1", "-o", "bundle"]);
    assert!(said.starts_with("exit 3\n"), "{said}");
    assert!(said.contains("bundle: 1 objects, 0 of 1 nodes captured"), "{said}");
    assert!(said.contains("warning: node n1 is not captured: no pod of kube-proxy"), "{said}");
    assert!(folder.0.join("bundle/bundle.json").exists());
}

#[test]
fn credentials_that_are_not_sent_are_named() {
    let folder = Folder::new("api-plain");
    let server = serve(one_node);
    let said = run(&folder, &server, &["collect", "-o", "bundle"]);
    let expected = format!(
        "the credentials of user \"me\" of context \"live\" are not sent: {server} has no TLS"
    );
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn a_server_without_a_scheme_is_an_error_of_the_kubeconfig() {
    let folder = Folder::new("api-scheme");
    for server in ["127.0.0.1:6443", "example.com"] {
        let said = run(&folder, server, &["scan"]);
        let expected = format!("config: cluster \"there\": server {server:?} does not begin with");
        assert!(said.starts_with(&format!("exit 2\n--- stderr\nerror: {expected}")), "{said}");
    }
}

/// The proxy may be what does not answer. Its credentials are not shown.
#[test]
fn a_proxy_before_a_server_is_named() {
    let folder = Folder::new("api-proxy");
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = format!("http://me:secret@{gone}");
    let cluster = json!({"server": "https://10.1.2.3:6443", "proxy-url": proxy});
    let said = run_with(&folder, &cluster, &["scan"]);
    let begin = "exit 3\n--- stderr\nerror: https://10.1.2.3:6443 cannot be reached: ";
    assert!(said.starts_with(begin), "{said}");
    assert!(said.contains(&format!("(through the proxy http://{gone})")), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

/// As kubectl has it: an empty text names nothing.
#[test]
fn an_empty_option_is_not_given() {
    let folder = Folder::new("api-empty");
    let server = serve(one_node);
    let words = ["scan", "--kubeconfig", "", "--context", "", "-o", "json"];
    let said = run(&folder, &server, &words);
    assert!(said.starts_with("exit 0\n"), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_watch_that_cannot_be_written_ends() {
    let folder = Folder::new("api-full");
    run(&folder, &serve(one_node), &["scan"]);
    let full = std::fs::File::options().write(true).open(Path::new("/dev/full")).unwrap();
    let mut command = uturn(&["scan", "--watch", "-o", "json"]);
    command.current_dir(&folder.0).env("KUBECONFIG", "config").stdout(full);
    let said = transcript(&command.output().unwrap());
    assert!(said.starts_with("exit 3\n"), "{said}");
    assert!(said.contains("error: the result could not be written: No space left"), "{said}");
}

#[test]
fn a_kubeconfig_has_a_size() {
    let folder = Folder::new("api-large");
    let file = std::fs::File::create(folder.0.join("large")).unwrap();
    file.set_len(17 << 20).unwrap();
    let said = folder.run(&["scan", "--kubeconfig", "large"]);
    assert!(said.starts_with("exit 2\n") || said.starts_with("exit 3\n"), "{said}");
    assert!(said.contains("large: larger than 16 MiB"), "{said}");
}

#[test]
fn a_bundle_is_a_folder_or_an_archive_of_its_own_form() {
    let folder = Folder::new("api-forms");
    folder.file("there", "");
    // Nothing is read: the server is not even asked.
    let server = "https://127.0.0.1:1";
    for path in ["-", "x.zip", "x.tar", "x.tar.xz", "x.TAR"] {
        let said = run(&folder, server, &["collect", "-o", path]);
        let forms = "a bundle is a folder, or an archive if the name ends in .tar.gz or .tgz";
        assert_eq!(said, format!("exit 2\n--- stderr\nerror: -o {path}: {forms}\n"));
    }
    let said = run(&folder, server, &["collect", "-o", "there"]);
    assert!(said.contains("there exists already: remove it, or name another path"), "{said}");
    let said = run(&folder, server, &["collect", "-o", "no/folder"]);
    assert!(said.contains("no/folder cannot be written: there is no folder no\n"), "{said}");
}
