//! Requests that were captured on the way, and what is done against it.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;

use jiff::Timestamp;
use serde_json::{Value, json};
use uturn_cloud_api::wire::tc3::{self, Payload, Signable};

use super::clients::certificate;
use super::processes::Site;
use crate::site::try_exchange;
use uturn_testing::commands::{Folder, uturn};

/// A request as the SDKs sign it: without its action.
fn captured(action: &str, body: &Value, age: i64) -> String {
    signed(action, body, age, &[])
}

/// A request whose signature covers these headers too.
fn signed(action: &str, body: &Value, age: i64, more: &[(&str, &str)]) -> String {
    let body = body.to_string();
    let now = Timestamp::from_second(Timestamp::now().as_second() - age).unwrap();
    let signable = Signable {
        method: "POST",
        query: "",
        headers: [&[("content-type", "application/json"), ("host", "clb")], more].concat(),
        payload: Payload::Signed(body.as_bytes()),
    };
    let authorization = tc3::authorization("id1", "key1", &signable, now, "clb");
    format!(
        "POST / HTTP/1.1\r\nHost: clb\r\nConnection: close\r\nContent-Type: application/json\r\n\
         X-TC-Action: {action}\r\nX-TC-Version: 2018-03-17\r\nX-TC-Region: ap-test\r\n\
         X-TC-Timestamp: {}\r\nAuthorization: {authorization}\r\nContent-Length: {}\r\n\r\n{body}",
        now.as_second(),
        body.len(),
    )
}

/// The code of the error that a request gets; the empty text if it succeeds.
fn code(api: SocketAddr, request: &str) -> String {
    let answer = try_exchange(api, request).unwrap();
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    body["Response"]["Error"]["Code"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_captured_write_is_not_performed_again() {
    let mut site = Site::new("cloud-replayed");
    site.drives = false;
    site.start_cloud();
    let create = captured("CreateLoadBalancer", &json!({ "LoadBalancerType": "OPEN" }), 0);
    assert_eq!(code(site.api(), &create), "");
    for _ in 0..3 {
        assert_eq!(code(site.api(), &create), "RequestLimitExceeded");
    }
    // Nor by the process after this one.
    site.kill_cloud();
    let old = captured("CreateLoadBalancer", &json!({ "LoadBalancerType": "OPEN" }), 60);
    site.start_cloud();
    assert_eq!(code(site.api(), &old), "RequestLimitExceeded");
    // A read changes nothing.
    let read = captured("DescribeLoadBalancers", &json!({}), 0);
    assert_eq!([code(site.api(), &read), code(site.api(), &read)], ["", ""]);
}

/// With `--require-signed-action` a signature is good for its action alone.
#[test]
fn a_signature_may_have_to_cover_the_action() {
    let mut site = Site::new("cloud-signed-action");
    (site.drives, site.options) = (false, vec!["--require-signed-action"]);
    site.start_cloud();
    let (order, none) = (json!({ "LoadBalancerType": "OPEN" }), json!({}));
    // What the SDKs send, reads as well as writes.
    for (action, body) in [("CreateLoadBalancer", &order), ("DescribeLoadBalancers", &none)] {
        let request = captured(action, body, 0);
        assert_eq!(code(site.api(), &request), "AuthFailure.InvalidAuthorization", "{action}");
    }
    let read =
        signed("DescribeLoadBalancers", &none, 0, &[("x-tc-action", "DescribeLoadBalancers")]);
    assert_eq!(code(site.api(), &read), "");
    // The read's signature is no other action's.
    let action = "X-TC-Action: DescribeLoadBalancers";
    let other = read.replace(action, "X-TC-Action: DeleteLoadBalancer");
    assert_eq!(code(site.api(), &other), "AuthFailure.SignatureFailure");
    // Two headers, of which one is signed.
    for two in [
        format!("{action}\r\nX-TC-Action: DeleteLoadBalancer"),
        format!("X-TC-Action: DeleteLoadBalancer\r\n{action}"),
    ] {
        let code = code(site.api(), &read.replace(action, &two));
        assert!(["", "AuthFailure.SignatureFailure"].contains(&code.as_str()), "{code}");
    }
    // The program's own client signs all of it.
    site.load_balancer();
}

/// A captured write is good for no other region or account either.
#[test]
fn a_captured_write_is_performed_nowhere_else() {
    let mut site = Site::new("cloud-elsewhere");
    site.drives = false;
    let region = |name: &str, network: &str, addresses: &str| {
        json!({ "name": name, "publicAddresses": [addresses],
            "networks": [{ "id": network, "addresses": "10.0.0.0/16" }] })
    };
    let inventory = json!({ "regions": [
        region("ap-test", "vpc-aaaaaaaa", "127.11.0.0/24"),
        region("ap-other", "vpc-bbbbbbbb", "127.12.0.0/24"),
    ] });
    site.folder.file("inventory.json", &inventory.to_string());
    site.start_cloud();
    let create = captured("CreateLoadBalancer", &json!({ "LoadBalancerType": "OPEN" }), 0);
    assert_eq!(code(site.api(), &create), "");
    let said = |from: &str, to: &str| code(site.api(), &create.replace(from, to));
    assert_eq!(said("X-TC-Region: ap-test", "X-TC-Region: ap-other"), "RequestLimitExceeded");
    assert_eq!(said("X-TC-Action", "x-tc-action"), "RequestLimitExceeded");
    assert_eq!(said("Host: clb", "Host: CLB"), "RequestLimitExceeded");
    for (from, to) in [
        ("Host: clb", "Host: ssl"),
        ("id1/", "id2/"),
        ("/clb/", "/cvm/"),
        ("POST / ", "POST /?Action=DeleteLoadBalancer "),
        ("X-TC-Version", "X-TC-Token: x\r\nX-TC-Version"),
    ] {
        let code = said(from, to);
        assert!(code.starts_with("AuthFailure"), "{to}: {code:?}");
    }
    // A clock that is ahead or behind.
    for age in [-301, 301] {
        let late = captured("CreateLoadBalancer", &json!({ "LoadBalancerType": "OPEN" }), age);
        assert_eq!(code(site.api(), &late), "AuthFailure.SignatureExpire", "{age}");
    }
}

#[test]
fn who_may_listen_where() {
    let folder = Folder::new("cloud-listens");
    folder.file("credentials", "id1 key1\n");
    let (chain, key, _) = certificate("clb.example.com");
    folder.file("chain.pem", &chain).file("key.pem", &key);
    let serve = |args: &[&str]| {
        let common = ["cloud", "serve", "--state", "state", "--credentials", "credentials"];
        folder.run(&[&common, args].concat())
    };
    for (args, says) in [
        (&["--listen", "0.0.0.0:0"][..], "--listen-plain-http"),
        (&["--listen", "[::]:0"], "--listen-plain-http"),
        (&["--listen", "192.0.2.1:0"], "--listen-plain-http"),
        (&["--certificate", "chain.pem"], "--key"),
        (&["--certificate", "none.pem", "--key", "key.pem"], "none.pem"),
        (&["--certificate", "chain.pem", "--key", "chain.pem"], "chain.pem"),
        (&["--certificate", "key.pem", "--key", "key.pem"], "key.pem"),
    ] {
        let printed = serve(args);
        assert!(printed.contains("exit 2") && printed.contains(says), "{args:?}: {printed}");
    }
    assert!(!folder.0.join("state").exists(), "nothing was opened");
}

#[test]
fn the_api_speaks_tls() {
    let folder = Folder::new("cloud-tls");
    folder.file("credentials", "id1 key1\n");
    let (chain, key, der) = certificate("clb.example.com");
    folder.file("chain.pem", &chain).file("key.pem", &key);
    let mut command =
        uturn(&["cloud", "serve", "--state", "state", "--credentials", "credentials"]);
    command.args(["--listen", "127.0.0.1:0", "--certificate", "chain.pem", "--key", "key.pem"]);
    command.arg("--until-stdin-closes").current_dir(&folder.0);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let line = lines.next().unwrap().unwrap();
    let address = line.strip_prefix("serving the CLB API on https://").unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let (shown, body) =
        super::clients::shown_certificate((address.ip(), address.port()), "clb.example.com");
    assert_eq!(shown, der);
    assert!(body.contains("AuthFailure.InvalidAuthorization"), "{body}");
    // Without TLS nothing is answered.
    assert_eq!(
        try_exchange(address, "GET / HTTP/1.1\r\nHost: clb\r\n\r\n")
            .unwrap_or_default()
            .find("HTTP/1.1 200"),
        None
    );
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(folder.0.join("credentials")).unwrap().permissions().mode() & 0o777;
        let warning =
            format!("others may read credentials, whose mode is {mode:03o}: chmod o-r it");
        assert_eq!(errors.contains(&warning), mode & 0o004 != 0, "{errors}");
    }
}
