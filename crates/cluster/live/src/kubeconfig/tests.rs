use std::process;

use serde_json::json;

use super::*;

const SERVER: &str = "https://127.0.0.1:6443";

/// Reads the context of a kubeconfig with this user and this cluster.
fn found_of(user: &Value, cluster: &Value) -> Result<Found, String> {
    let text = json!({
        "kind": "Config", "current-context": "live",
        "users": [{"name": "me", "user": user}],
        "clusters": [{"name": "there", "cluster": cluster}],
        "contexts": [{"name": "live", "context": {"user": "me", "cluster": "there"}}],
    });
    let kubeconfig = Kubeconfig::from_yaml(&text.to_string()).unwrap();
    context(kubeconfig, "FILE", None).map_err(|error| error.to_string())
}

fn found(user: &Value) -> Result<Found, String> {
    found_of(user, &json!({"server": SERVER}))
}

fn why(found: Result<Found, String>) -> String {
    found.err().unwrap()
}

fn folder(name: &str) -> PathBuf {
    let path = env::temp_dir().join(format!("uturn-kubeconfig-{name}-{}", process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn what_is_no_url_of_a_server_is_refused() {
    for server in ["127.0.0.1:6443", "example.com", "/x", "https://", "https:///x", "a b", ""] {
        let why = why(found_of(&json!({}), &json!({"server": server})));
        assert!(why.starts_with("FILE: cluster \"there\": server "), "{why}");
        assert!(why.contains("https://"), "{why}");
    }
    let none = why(found_of(&json!({}), &json!({})));
    assert_eq!(none, "FILE: cluster \"there\": it has no server");
}

#[test]
fn a_token_is_trimmed_and_a_file_counts_before_it() {
    let token = found(&json!({"token": "abc\n"})).unwrap();
    assert!(matches!(token.source, Source::Token(header) if header == "Bearer abc"));
    assert_eq!(
        why(found(&json!({"token": "a\nb"}))),
        "FILE: user \"me\": its token has letters that no header may have"
    );
    let both = found(&json!({"token": "abc", "tokenFile": "/there"})).unwrap();
    assert!(matches!(both.source, Source::File(file, Some(_)) if file == Path::new("/there")));
    let oidc = json!({"auth-provider": {"name": "oidc", "config": {"id-token": "x\n"}}});
    assert!(matches!(found(&oidc).unwrap().source, Source::Token(_)));
    let gcp = json!({"auth-provider": {"name": "gcp", "config": {}}});
    assert!(why(found(&gcp)).contains("the auth-provider \"gcp\" is not known any more"));
}

#[test]
fn nothing_is_sent_without_tls() {
    let plain = json!({"server": "http://127.0.0.1:8080"});
    for user in [
        json!({"token": "abc", "as": "joe"}),
        json!({"tokenFile": "/nowhere"}),
        json!({"username": "a", "password": "b"}),
        json!({"client-certificate": "/nowhere"}),
        json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}}),
    ] {
        let found = found_of(&user, &plain).unwrap();
        assert!(found.is_unsent, "{user}");
        assert!(matches!(found.source, Source::Nothing), "{user}");
        let left = serde_json::to_value(&found.config.auth_info).unwrap();
        let kept = if user["as"].is_null() { json!({}) } else { json!({"as": "joe"}) };
        assert_eq!(left, kept, "{user}");
    }
    assert!(!found_of(&json!({}), &plain).unwrap().is_unsent);
    assert!(!found(&json!({"token": "abc"})).unwrap().is_unsent);
}

#[test]
fn faults_of_credentials_are_named() {
    let pem = |what: &str| ByteString(format!("-----BEGIN {what}-----").into_bytes());
    for (user, expected) in [
        (
            json!({"client-certificate-data": pem("CERTIFICATE")}),
            "client-certificate is there without client-key",
        ),
        (
            json!({"client-key-data": pem("EC PRIVATE KEY")}),
            "client-key is there without client-certificate",
        ),
        (json!({"client-certificate": "/nowhere"}), "client-certificate /nowhere: No such file"),
        (json!({"client-key-data": "!!!"}), "client-key-data is not valid base64"),
        (json!({"as-groups": ["admins"]}), "as-uid, as-groups and as-user-extra need as"),
        (
            json!({"client-certificate-data": pem("PRIVATE KEY")}),
            "client-certificate-data has no certificate in PEM",
        ),
    ] {
        let why = why(found(&user));
        assert!(why.starts_with(&format!("FILE: user \"me\": {expected}")), "{why}");
    }
    for (field, value, expected) in [
        ("certificate-authority", json!("/nowhere"), "No such file"),
        ("certificate-authority-data", json!("!!!"), "base64"),
        (
            "certificate-authority-data",
            json!(ByteString(b"junk".to_vec())),
            "certificate-authority has no certificate in PEM",
        ),
    ] {
        let why = why(found_of(&json!({}), &json!({"server": SERVER, field: value})));
        assert!(why.starts_with("FILE: cluster \"there\": ") && why.contains(expected), "{why}");
    }
    let empty = json!({"client-certificate": "", "client-key-data": "", "token": ""});
    assert!(matches!(found(&empty).unwrap().source, Source::Nothing));
}

#[test]
fn a_file_that_cannot_be_looked_for_is_not_one_that_is_missing() {
    let folder = folder("found");
    let file = folder.join("config");
    fs::write(&file, "kind: Pod").unwrap();
    let why = read(&file).unwrap_err().to_string();
    assert!(why.ends_with("expected a kubeconfig (kind: Config), found a Pod"), "{why}");
    assert!(merged(&[folder.join("nothing")]).unwrap().is_none());
    let why = merged(&[file.join("below")]).unwrap_err().to_string();
    assert!(why.contains("Not a directory"), "{why}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_account_of_a_pod_says_what_it_lacks() {
    let folder = folder("pod");
    let variable = |name: &str| match name {
        "KUBERNETES_SERVICE_HOST" => Some("fd00::1".to_owned()),
        "KUBERNETES_SERVICE_PORT" => Some("443".to_owned()),
        _ => None,
    };
    assert!(in_pod(&|_| None, &folder).is_none());
    for file in ["token", "ca.crt"] {
        let lacks = why(in_pod(&variable, &folder).unwrap());
        let expected =
            format!("the pod's account lacks {}: No such file", folder.join(file).display());
        assert!(lacks.starts_with(&expected), "{lacks}");
        fs::write(folder.join(file), "x").unwrap();
    }
    let found = in_pod(&variable, &folder).unwrap().ok().unwrap();
    assert_eq!(found.config.cluster_url, "https://[fd00::1]:443/");
    assert_eq!(found.config.default_namespace, "default");
    fs::write(folder.join("namespace"), "shop\n").unwrap();
    let found = in_pod(&variable, &folder).unwrap().ok().unwrap();
    assert_eq!(found.config.default_namespace, "shop");
    fs::remove_dir_all(folder).unwrap();
}
