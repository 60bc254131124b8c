//! `uturn lb run --certificates`: certificates and keys that come over the admin address.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::site::Site;

/// A certificate for this name, and its key.
fn certificate(name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[test]
fn certificates_are_kept_for_configurations_over_http() {
    let site = Site::new("lb-certificates");
    let _running = site.start(&["--certificates", "keys"]);
    let list = || {
        let (status, answer) = site.allowed("GET", "/certificates", "");
        assert_eq!(status, 200, "{answer}");
        let page: Value = serde_json::from_str(body(&answer)).unwrap();
        assert_eq!(page["folder"], site.folder.0.join("keys").to_str().unwrap());
        page["names"].clone()
    };
    assert_eq!(list(), serde_json::json!([]));
    let (chain, key) = certificate("a.example.com");
    let (status, answer) = site.allowed("PUT", "/certificates/shop-1", &format!("{chain}{key}"));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(list(), serde_json::json!(["shop-1"]));
    let file = site.folder.0.join("keys/shop-1.pem");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);

    // A configuration that names it is served, and then it cannot be removed.
    let tls = format!(
        "{}    certificates: [{{certificate: {file}, key: {file}}}]\n",
        site.text(0).replace("protocol: HTTP", "protocol: HTTPS"),
        file = file.display()
    );
    let (status, answer) = site.allowed("PUT", "/config", &tls);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(site.allowed("DELETE", "/certificates/shop-1", "").0, 409);
    let (_, shown) = site.allowed("GET", "/config", "");
    assert!(shown.contains("shop-1.pem") && !shown.contains("PRIVATE KEY"), "{shown}");
    assert_eq!(site.allowed("PUT", "/config", &site.text(0)).0, 200);
    assert_eq!(site.allowed("DELETE", "/certificates/shop-1", "").0, 200);
    assert_eq!(list(), serde_json::json!([]));
    assert_eq!(site.allowed("DELETE", "/certificates/shop-1", "").0, 200, "it is gone already");
}

#[test]
fn what_is_no_certificate_is_not_kept_or_shown() {
    let site = Site::new("lb-certificates-wrong");
    let _running = site.start(&["--certificates", "keys"]);
    let ((chain, key), (_, other_key)) = (certificate("a.example.com"), certificate("b"));
    let whole = format!("{chain}{key}");
    assert_eq!(site.allowed("PUT", "/certificates/a", &whole).0, 200);
    for wrong in ["", &chain, &key, &format!("{chain}{other_key}"), "secret words"] {
        let (status, answer) = site.allowed("PUT", "/certificates/a", wrong);
        assert_eq!(status, 400, "{answer}");
        assert!(!answer.contains("secret") && !answer.contains("PRIVATE KEY-"), "{answer}");
    }
    assert_eq!(site.allowed("PUT", "/certificates/authority", &chain).0, 200, "an authority");
    assert_eq!(site.allowed("DELETE", "/certificates/authority", "").0, 200);
    // What was there before has stayed, and nothing is beside it.
    let folder = site.folder.0.join("keys");
    assert_eq!(fs::read_to_string(folder.join("a.pem")).unwrap(), whole);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    for name in ["", "..%2Fa", "../a", "a.b", "a/b"] {
        let (status, _) = site.allowed("PUT", &format!("/certificates/{name}"), &whole);
        assert_eq!(status, 400, "{name}");
    }
    assert_eq!(site.allowed("PUT", "/certificates", &whole).0, 405);
    assert_eq!(site.allowed("GET", "/certificates/a", "").0, 405, "keys are not shown");
    let large = "x".repeat((1 << 20) + 1);
    assert_eq!(site.allowed("PUT", "/certificates/a", &large).0, 413);
    for (method, path) in [("GET", "/certificates"), ("PUT", "/certificates/a")] {
        assert_eq!(site.admin(method, path, "", &whole).0, 401);
    }
}

#[test]
fn certificates_are_taken_only_where_that_is_allowed() {
    let site = Site::new("lb-no-certificates");
    let _running = site.start(&[]);
    for (method, path) in [("GET", "/certificates"), ("PUT", "/certificates/a")] {
        let (status, answer) = site.allowed(method, path, "");
        assert_eq!(status, 403);
        assert!(answer.contains("--certificates DIR"), "{answer}");
    }
}
