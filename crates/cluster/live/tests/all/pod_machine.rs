//! A container as a machine: its scripts run in a real shell, behind a server that speaks the exec
//! stream of an API server.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, process};

use futures_util::SinkExt as _;
use kube::{Client, Config};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use uturn_live::{Container, PodMachine, Server};
use uturn_node::{Local, Machine, ToolFailure};

const LONG: Duration = Duration::from_secs(600);

/// Runs each command that it is asked for, with the programs of one folder.
async fn serve(listener: TcpListener, path: PathBuf) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, path.clone()));
    }
}

async fn answer(stream: TcpStream, path: PathBuf) {
    let mut asked = String::new();
    #[expect(clippy::result_large_err, reason = "the type of the callback is the library's")]
    let accept = |request: &Request, mut response: Response| {
        asked = request.uri().query().unwrap().to_owned();
        let protocol = "v5.channel.k8s.io".parse().unwrap();
        response.headers_mut().insert("sec-websocket-protocol", protocol);
        Ok(response)
    };
    let mut stream = accept_hdr_async(stream, accept).await.unwrap();
    let words = asked.split('&').filter_map(|pair| pair.strip_prefix("command="));
    let words: Vec<String> = words.map(decoded).collect();
    let messages = if path.join(&words[0]).exists() {
        let mut command = Command::new(path.join(&words[0]));
        let Output { status, stdout, stderr } =
            command.args(&words[1..]).env("PATH", &path).output().unwrap();
        let code = status.code().unwrap().to_string();
        let ended = if status.success() {
            json!({"status": "Success"})
        } else {
            json!({"status": "Failure", "reason": "NonZeroExitCode", "details":
                    {"causes": [{"reason": "ExitCode", "message": code}]}})
        };
        vec![(1, stdout), (2, stderr), (3, ended.to_string().into_bytes())]
    } else {
        let why = format!("exec: {:?}: executable file not found in $PATH", words[0]);
        let ended = json!({"status": "Failure", "reason": "InternalError", "message": why});
        vec![(3, ended.to_string().into_bytes())]
    };
    for (channel, bytes) in messages {
        stream.send(Message::binary([&[channel], bytes.as_slice()].concat())).await.unwrap();
    }
    // The caller may have gone already.
    let _ = stream.close(None).await;
}

fn decoded(word: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = word.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(bytes).unwrap()
}

/// What a container with these programs is asked, on a thread of its own.
async fn ask<T: Send + 'static>(
    name: &str,
    programs: &[&str],
    question: impl FnOnce(&PodMachine) -> T + Send + 'static,
) -> T {
    let path = env::temp_dir().join(format!("uturn-pod-machine-{}-{name}", process::id()));
    fs::create_dir_all(&path).unwrap();
    for program in programs {
        let folders = ["/usr/bin", "/bin"].map(PathBuf::from);
        let found = folders.iter().map(|folder| folder.join(program)).find(|file| file.exists());
        symlink(found.unwrap(), path.join(program)).unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(serve(listener, path.clone()));
    let client = Client::try_from(Config::new(url.parse().unwrap())).unwrap();
    let server = Arc::new(Server::new(client, url, "a test".into(), "default".into()));
    let container = Container { namespace: "a".into(), pod: "b".into(), container: None };
    let (_stopper, stop) = watch::channel(false);
    let machine = PodMachine::new(server, container, LONG, Handle::current(), stop);
    let answer = tokio::task::spawn_blocking(move || question(&machine)).await.unwrap();
    serving.abort();
    fs::remove_dir_all(&path).unwrap();
    answer
}

#[tokio::test]
async fn a_container_says_what_the_machine_says() {
    ask("cat", &["sh", "cat"], |machine| {
        let local = Local { limit: LONG };
        for file in ["/proc/sys/kernel/osrelease", "/proc/net/protocols"] {
            let lines = |text: String| text.lines().count();
            assert!(machine.read(file).map(lines) == local.read(file).map(lines), "{file}");
        }
        let file = "/proc/sys/kernel/osrelease";
        assert_eq!(machine.read(file), local.read(file));
        assert_eq!(machine.read("/no/such/file"), Err(ToolFailure::Missing));
        assert_eq!(machine.list("/proc/sys/net"), local.list("/proc/sys/net"));
        assert!(machine.list("/no/such/folder").is_empty());
        let patterns = ["/proc/sys/net/ipv4/ip_*", "/proc/sys/net/ipv4/conf/*/rp_filter"];
        let patterns = patterns.map(str::to_owned);
        let values = machine.values(&patterns).unwrap();
        assert!(values.len() > 3, "{values:?}");
        assert_eq!(Ok(values), local.values(&patterns));
    })
    .await;
}

#[tokio::test]
async fn what_a_container_lacks_is_no_answer() {
    ask("sh", &["sh"], |machine| {
        let failed = [machine.read("/proc/net/protocols").err(), machine.values(&[]).err()];
        for why in failed {
            assert!(
                matches!(&why, Some(ToolFailure::Failed(why)) if why.contains("cat")),
                "{why:?}"
            );
        }
    })
    .await;
    ask("none", &["cat"], |machine| {
        assert_eq!(machine.run("ip", &["addr"]), Err(ToolFailure::Missing));
        let failed = machine.run("cat", &["/no/such/file"]);
        assert!(matches!(&failed, Err(ToolFailure::Failed(why)) if why.contains("/no/such/file")));
        // Without a shell, it is not known whether a file is there.
        let no_shell = ToolFailure::Failed("the image has no shell".into());
        assert_eq!(machine.read("/proc/net/ip_vs"), Err(no_shell.clone()));
        assert_eq!(machine.values(&["/proc/*".into()]), Err(no_shell));
    })
    .await;
}
