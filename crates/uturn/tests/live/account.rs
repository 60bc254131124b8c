//! Proxies, and the account of a pod.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;
use uturn_testing::{Requirement, skip};

use crate::access::{run_with, scanned, write};
use crate::control_plane::{ControlPlane, READER};
use crate::{shown, text, uturn};

/// A proxy that knows CONNECT alone, and leads every name to one port of the loopback interface.
struct Proxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn before(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(client, server, &seen));
            }
        });
        Self { port, asked }
    }

    /// Where connections were asked for since the last question.
    fn asked(&self) -> Vec<String> {
        let mut asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.dedup();
        asked
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

fn serve(mut client: TcpStream, server: u16, seen: &Mutex<Vec<String>>) -> Option<()> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).ok()?;
        request.extend(byte);
    }
    let request = String::from_utf8(request).ok()?;
    let place = request.strip_prefix("CONNECT ")?.split(' ').next()?;
    seen.lock().unwrap().push(place.to_owned());
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).ok()?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
    let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    let back = thread::spawn(move || {
        let _ = std::io::copy(&mut server, &mut client);
        let _ = client.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    back.join().ok()
}

pub(crate) fn proxies(plane: &ControlPlane) {
    let expected = scanned(plane, &[], &shown(&plane.kubeconfig(READER)));
    let proxy = Proxy::before(plane.port);
    let token = json!({"token": format!("{READER}-token")});
    let of = |name: &str, edit: &dyn Fn(&mut serde_json::Value)| {
        let mut config = plane.config_of(&token, plane.port);
        edit(&mut config["clusters"][0]["cluster"]);
        write(plane, name, &config)
    };
    let here = format!("127.0.0.1:{}", plane.port);

    // The kubeconfig's own proxy counts, whatever the environment says.
    let path = of("proxy-url", &|cluster| cluster["proxy-url"] = proxy.url().into());
    let scan = |path: &str, variables: &[(&str, &str)]| {
        let mut command = uturn(plane, &["scan"]);
        let all = variables.iter().copied().chain([("KUBECONFIG", path)]);
        let output = command.envs(all).output().unwrap();
        (output.status.code().unwrap(), text(&output.stderr) + &text(&output.stdout))
    };
    let environment = [("HTTPS_PROXY", "http://127.0.0.1:9"), ("NO_PROXY", "*")];
    assert_eq!(scan(&path, &environment), (1, expected.clone()));
    assert_eq!(proxy.asked(), [here]);

    // The environment's proxy, for a server that only the proxy finds. kubectl goes the same way.
    let far = of("far", &|cluster| {
        cluster["server"] = "https://api.uturn.example:6443".into();
        cluster["tls-server-name"] = "127.0.0.1".into();
    });
    let url = proxy.url();
    assert_eq!(scan(&far, &[("HTTPS_PROXY", &url)]), (1, expected.clone()));
    assert_eq!(proxy.asked(), ["api.uturn.example:6443"]);
    let mut kubectl = plane.bare_kubectl();
    kubectl.args(["--kubeconfig", &far, "get", "nodes"]).env("HTTPS_PROXY", &url);
    let seen = kubectl.env_remove("NO_PROXY").output().unwrap();
    assert!(seen.status.success(), "{}", text(&seen.stderr));
    assert_eq!(proxy.asked(), ["api.uturn.example:6443"]);

    // A server of this machine needs none.
    let near = of("near", &|_| {});
    assert_eq!(scan(&near, &[("HTTPS_PROXY", &url)]), (1, expected));
    assert_eq!(proxy.asked(), [""; 0]);

    let broken = of("no-proxy", &|cluster| cluster["proxy-url"] = "http://a b".into());
    let refused = run_with(plane, &["scan"], &broken);
    assert_eq!(refused.0, 2, "{}", refused.1);
}

/// A pod has no kubeconfig, but files at a fixed place, and variables: here in a mount namespace.
pub(crate) fn pods_account(plane: &ControlPlane) {
    let made = plane.kubectl_done(&["create", "token", "uturn-reader", "-n", "kube-system"]);
    fs::write(plane.file("pods-token"), made.trim()).unwrap();
    fs::write(plane.file("pods-namespace"), "kube-system").unwrap();
    let script = "set -e\n\
                  mount -t tmpfs tmpfs \"$(realpath /var/run)\"\n\
                  place=/var/run/secrets/kubernetes.io/serviceaccount\n\
                  mkdir -p $place\n\
                  cp pods-token $place/token\n\
                  cp pods-namespace $place/namespace\n\
                  cp ca.crt $place/ca.crt\n\
                  exec \"$0\" \"$@\"";
    let in_pod = |program: &str, words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script, program]).args(words);
        command.current_dir(&plane.folder).env("NO_COLOR", "1").env("HOME", "/nowhere");
        command.env_remove("KUBECONFIG").env("KUBERNETES_SERVICE_HOST", "127.0.0.1");
        command.env("KUBERNETES_SERVICE_PORT", plane.port.to_string()).output()
    };
    match in_pod("true", &[]) {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            return skip(Requirement::Kernel, "the account of a pod", text(&output.stderr));
        }
        Err(why) => return skip(Requirement::Kernel, "the account of a pod", why.to_string()),
    }
    let expected = scanned(plane, &[], &shown(&plane.kubeconfig(READER)));
    let output = in_pod(env!("CARGO_BIN_EXE_uturn"), &["scan"]).unwrap();
    assert_eq!(text(&output.stderr) + &text(&output.stdout), expected);

    // A token that the server does not know.
    fs::write(plane.file("pods-token"), "wrong").unwrap();
    let output = in_pod(env!("CARGO_BIN_EXE_uturn"), &["scan"]).unwrap();
    assert_eq!(output.status.code(), Some(3));
    let why = text(&output.stderr);
    assert!(why.contains("does not accept the credentials of the pod's account"), "{why}");
}
