//! Names from the API, as the shell gets them through kubectl.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use serde_json::json;

use crate::control_plane::{ADMIN, ControlPlane, READER};

/// Candidates of the example, for who has the printed rights, for who may see a namespace, and for
/// who may see nothing.
pub(crate) fn names(plane: &ControlPlane) {
    let reader = plane.kubeconfig(READER);
    for (words, expected) in [
        (
            &["trace", "--from", "pod/shop/w"][..],
            &["pod/shop/web-0", "pod/shop/web-1", "pod/shop/web-2", ":4"][..],
        ),
        (&["trace", "--from", "deploy/shop/f"], &["deploy/shop/front", ":4"]),
        (&["trace", "--from", "node/"], &["node/n1", "node/n2", "node/n3", ":4"]),
        (&["trace", "--to", "svc/shop/"], &["svc/shop/api", "svc/shop/front", ":4"]),
        (&["trace", "--to", "svc/shop/front:"], &["svc/shop/front:80", ":4"]),
        (
            &["trace", "--to", "ingress/shop/front/s"],
            &["ingress/shop/front/shop.example.com/", ":6"],
        ),
        (&["check", "ingress", ""], &["shop/front", ":4"]),
        (&["cure", "UT101", "shop/f"], &["shop/front", ":4"]),
        (&["rules", "--node", "n"], &["n1", "n2", "n3", ":4"]),
        (&["scan", "--context", ""], &["live", ":4"]),
        (&["trace", "--from", "pod/nowhere/"], &[":4"]),
    ] {
        assert_eq!(plane.completed(words, &reader), expected, "{words:?}");
    }
    let namespaces = plane.completed(&["scan", "-n", ""], &plane.kubeconfig(ADMIN));
    assert!(namespaces.contains(&"shop".to_owned()), "{namespaces:?}");

    // Who may see a namespace alone gets what is in that of the context.
    let narrow = plane.kubeconfig("narrow");
    plane.write_kubeconfig("narrow", plane.port);
    // The ClusterRole `view` is empty where no controller gathers it.
    let both = "--resource=pods,ingresses.networking.k8s.io";
    plane.kubectl_done(&["create", "role", "narrow", "-n", "shop", "--verb=list,get", both]);
    let of_user = ["--role=narrow", "--user=narrow"];
    plane
        .kubectl_done(&[&["create", "rolebinding", "narrow", "-n", "shop"], &of_user[..]].concat());
    let may = ["auth", "can-i", "list", "pods", "-n", "shop", "--as", "narrow"];
    plane.wait_until("narrow may list pods", || plane.kubectl(&may).status.success());
    let words = ["trace", "--from", "pod/shop/web-0"];
    assert_eq!(plane.completed(&words, &narrow), ["pod/shop/web-0", ":4"]);
    assert_eq!(plane.completed(&["check", "ingress", ""], &narrow), ["shop/front", ":4"]);
    assert_eq!(plane.completed(&["rules", "--node", ""], &narrow), [":4"]);

    // No credentials, no server, and one that never answers.
    plane.write_kubeconfig("stranger", plane.port);
    assert_eq!(plane.completed(&words, &plane.kubeconfig("stranger")), [":4"]);
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    assert_eq!(plane.completed(&words, &config(plane, "silent", port)), [":4"]);
    drop(silent);
    assert_eq!(plane.completed(&words, &config(plane, "gone", port)), [":4"]);
    assert_eq!(plane.completed(&words, &plane.file("nothing")), [":4"]);
}

fn config(plane: &ControlPlane, name: &str, port: u16) -> PathBuf {
    let path = plane.file(&format!("{name}.config"));
    fs::write(&path, plane.config_of(&json!({"token": "x"}), port).to_string()).unwrap();
    path
}
