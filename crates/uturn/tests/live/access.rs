//! Kubeconfigs of all kinds, and credentials that are not accepted.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::control_plane::{ControlPlane, READER};
use crate::{run, shown, text, uturn};

pub(crate) fn kubeconfigs(plane: &ControlPlane) {
    let expected = scanned(plane, &[], &shown(&plane.kubeconfig(READER)));
    let output = plane.plugin(&["scan"], READER);
    let printed = text(&output.stderr) + &text(&output.stdout);
    assert!(printed.contains("kubectl uturn explain"), "{printed}");
    assert_eq!(printed.replace("kubectl uturn", "uturn"), expected);
    let token = json!({"token": format!("{READER}-token")});
    let plugin = plane.file("plugin");
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": token,
    });
    fs::write(&plugin, format!("#!/bin/sh\ncat <<'END'\n{credential}\nEND\n")).unwrap();
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(plane.file("token"), format!("{READER}-token")).unwrap();
    let exec = |command: &str| {
        json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": command,
            "interactiveMode": "Never"}})
    };
    for (name, credentials) in [
        (
            "certificate",
            json!({
                "client-certificate": plane.file("reader.crt"),
                "client-key": plane.file("reader.key"),
            }),
        ),
        ("token-file", json!({"tokenFile": plane.file("token")})),
        ("plugin", exec(&shown(&plugin))),
    ] {
        let path = write(plane, name, &plane.config_of(&credentials, plane.port));
        assert_eq!(scanned(plane, &[], &path), expected, "{name}");
    }

    // Several files: one has the user, one the rest, one is not there.
    let mut config = plane.config_of(&token, plane.port);
    let users = config["users"].take();
    config["users"] = json!([]);
    let users = json!({"apiVersion": "v1", "kind": "Config", "users": users});
    let (users, rest) = (write(plane, "users", &users), write(plane, "rest", &config));
    let several = format!("{users}:{}:{rest}", shown(&plane.file("nothing")));
    assert_eq!(scanned(plane, &[], &several), expected);

    // A context that is not the current one, and a file that is named.
    let mut config = plane.config_of(&token, plane.port);
    config["current-context"] = "".into();
    let path = write(plane, "no-context", &config);
    let named = |command: &str| format!("uturn {command} --kubeconfig {path} --context=live");
    assert_eq!(
        scanned(plane, &["--context", "live", "--kubeconfig", &path], ""),
        expected.replace("uturn trace", &named("trace")).replace("uturn cure", &named("cure"))
    );
    let none = run_with(plane, &["scan"], &path);
    assert_eq!(none.0, 2, "{}", none.1);
    assert!(none.1.contains("names no current context; it has live"), "{}", none.1);
    let wrong = run_with(plane, &["scan", "--context", "elsewhere"], &path);
    assert_eq!(wrong.0, 2, "{}", wrong.1);
    assert!(wrong.1.contains("has no context \"elsewhere\"; it has live"), "{}", wrong.1);

    let config = plane.config_of(&json!({"token": "wrong"}), plane.port);
    let wrong = run_with(plane, &["scan"], &write(plane, "wrong-token", &config));
    assert_eq!(wrong.0, 3, "{}", wrong.1);
    let message = "does not accept the credentials of user \"me\" of context \"live\"";
    assert!(wrong.1.contains(message), "{}", wrong.1);

    let config = plane.config_of(&exec("/nowhere/plugin"), plane.port);
    let missing = run_with(plane, &["scan"], &write(plane, "no-plugin", &config));
    assert_eq!(missing.0, 3, "{}", missing.1);
    assert!(missing.1.contains("no credentials for https://127.0.0.1"), "{}", missing.1);

    // Without the authority, the server's certificate is not trusted.
    let mut config = plane.config_of(&token, plane.port);
    let cluster = config["clusters"][0]["cluster"].as_object_mut().unwrap();
    cluster.remove("certificate-authority");
    let unknown = run_with(plane, &["scan"], &write(plane, "no-authority", &config));
    assert_eq!(unknown.0, 3, "{}", unknown.1);
    assert!(unknown.1.contains("cannot be reached"), "{}", unknown.1);

    let broken = plane.file("broken");
    fs::write(&broken, "clusters: [").unwrap();
    let broken = run_with(plane, &["scan"], &shown(&broken));
    assert_eq!(broken.0, 2, "{}", broken.1);
    let none = run_with(plane, &["scan"], &shown(&plane.file("nothing")));
    assert_eq!(none.0, 3, "{}", none.1);
    assert!(none.1.contains("no cluster: there is no kubeconfig"), "{}", none.1);

    // Beside a running cluster, -f is for Facts.
    let path = shown(&plane.file("got.json"));
    let output = run(plane, &["scan", "--live", "-f", &path], READER);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("may name Facts only"), "{}", text(&output.stderr));
}

pub(crate) fn write(plane: &ControlPlane, name: &str, config: &Value) -> String {
    let path = plane.file(&format!("{name}.config"));
    fs::write(&path, config.to_string()).unwrap();
    shown(&path)
}

pub(crate) fn run_with(plane: &ControlPlane, words: &[&str], kubeconfig: &str) -> (i32, String) {
    let mut command = uturn(plane, words);
    if !kubeconfig.is_empty() {
        command.env("KUBECONFIG", kubeconfig);
    }
    let output = command.output().unwrap();
    (output.status.code().unwrap(), text(&output.stderr) + &text(&output.stdout))
}

pub(crate) fn scanned(plane: &ControlPlane, words: &[&str], kubeconfig: &str) -> String {
    let (code, printed) = run_with(plane, &[&["scan"], words].concat(), kubeconfig);
    assert_eq!(code, 1, "{kubeconfig}: {printed}");
    printed
}
