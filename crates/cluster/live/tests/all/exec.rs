//! Runs commands through a server that speaks the exec stream of an API server: WebSocket, with the
//! protocols v4 and v5 of channels.

use std::net::SocketAddr;
use std::time::Duration;
use std::{env, fs};

use futures_util::{SinkExt as _, StreamExt as _};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use uturn_live::{Access, Container, ExecError, Executed, Server, exec};

const LONG: Duration = Duration::from_secs(600);

/// What the server does with a call.
#[derive(Clone)]
struct Play {
    protocol: &'static str,
    /// Status and message in place of a stream.
    refuses: Option<(u16, &'static str)>,
    /// Channel and bytes.
    sends: Vec<(u8, Vec<u8>)>,
    /// Whether it keeps silent at the end in place of closing.
    is_stuck: bool,
}

impl Play {
    fn new(sends: Vec<(u8, Vec<u8>)>) -> Self {
        Self { protocol: "v5.channel.k8s.io", refuses: None, sends, is_stuck: false }
    }

    fn ends(stdout: &str, stderr: &str, status: &Value) -> Self {
        let status = status.to_string().into_bytes();
        Self::new(vec![(1, stdout.into()), (2, stderr.into()), (3, status)])
    }

    fn refuses(code: u16, message: &'static str) -> Self {
        Self { refuses: Some((code, message)), ..Self::new(Vec::new()) }
    }

    /// Runs a command there. Returns how that ended, and what the server was asked for.
    async fn run(self, limit: Duration) -> (Result<Executed, ExecError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(self.serve(listener));
        let server = found(address).await;
        let container = Container {
            namespace: "kube-system".into(),
            pod: "kube-proxy-x".into(),
            container: Some("kube-proxy".into()),
        };
        let command = ["ip", "addr show"].map(str::to_owned);
        let executed = exec(&server, &container, &command, limit).await;
        (executed, serving.await.unwrap())
    }

    async fn serve(self, listener: TcpListener) -> String {
        let (stream, _) = listener.accept().await.unwrap();
        let mut asked = String::new();
        #[expect(clippy::result_large_err, reason = "the type of the callback is the library's")]
        let answer = |request: &Request, mut response: Response| {
            asked = request.uri().to_string();
            if let Some((code, message)) = self.refuses {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                    "code": code, "message": message, "reason": "x"});
                let mut response = ErrorResponse::new(Some(status.to_string()));
                *response.status_mut() = code.try_into().unwrap();
                return Err(response);
            }
            let protocol = self.protocol.parse().unwrap();
            response.headers_mut().insert("sec-websocket-protocol", protocol);
            Ok(response)
        };
        let Ok(mut stream) = accept_hdr_async(stream, answer).await else { return asked };
        for (channel, bytes) in &self.sends {
            let message = [&[*channel], bytes.as_slice()].concat();
            // The caller may have gone.
            let _ = stream.send(Message::binary(message)).await;
        }
        if !self.is_stuck {
            let _ = stream.close(None).await;
        }
        // Until the caller has gone.
        while let Some(Ok(_)) = stream.next().await {}
        asked
    }
}

/// The server at an address, as a kubeconfig leads to it.
async fn found(address: SocketAddr) -> Server {
    let config = json!({
        "kind": "Config", "current-context": "live",
        "clusters": [{"name": "there", "cluster": {"server": format!("http://{address}")}}],
        "contexts": [{"name": "live", "context": {"cluster": "there"}}],
    });
    let path = env::temp_dir().join(format!("uturn-exec-{}", address.port()));
    fs::write(&path, config.to_string()).unwrap();
    let access = Access { kubeconfig: Some(path.clone()), ..Access::default() };
    let server = Server::find(&access).await.unwrap();
    fs::remove_file(path).unwrap();
    server
}

fn success() -> Value {
    json!({"metadata": {}, "status": "Success"})
}

fn exit_code(code: &str) -> Value {
    json!({"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
           "message": format!("command terminated with non-zero exit code: {code}"),
           "details": {"causes": [{"reason": "ExitCode", "message": code}]}})
}

fn internal(message: &str) -> Value {
    json!({"metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
           "message": format!("Internal error occurred: {message}")})
}

#[tokio::test]
async fn a_command_prints_and_ends() {
    for protocol in ["v4.channel.k8s.io", "v5.channel.k8s.io"] {
        let play = Play { protocol, ..Play::ends("eth0\n", "odd\n", &success()) };
        let (executed, asked) = play.run(LONG).await;
        let expected = Executed { stdout: b"eth0\n".into(), stderr: b"odd\n".into(), exit: 0 };
        assert_eq!(executed, Ok(expected));
        let path = "/api/v1/namespaces/kube-system/pods/kube-proxy-x/exec?";
        assert!(asked.starts_with(path), "{asked}");
        for part in ["container=kube-proxy", "command=ip", "command=addr+show", "stdout=true"] {
            assert!(asked.contains(part), "{asked}");
        }
    }
    let (executed, _) = Play::ends("", "no right\n", &exit_code("4")).run(LONG).await;
    assert_eq!(executed.map(|executed| executed.exit), Ok(4));
}

#[tokio::test]
async fn much_output_comes_whole_and_in_order() {
    let lines: Vec<u8> =
        (0..200_000).flat_map(|n| format!("-A CHAIN {n}\n").into_bytes()).collect();
    let mut sends: Vec<(u8, Vec<u8>)> =
        lines.chunks(1 << 16).map(|part| (1, part.into())).collect();
    sends.push((3, success().to_string().into()));
    let (executed, _) = Play::new(sends).run(LONG).await;
    assert!(executed.unwrap().stdout == lines);
}

#[tokio::test]
async fn what_stops_a_command_is_told_apart() {
    let right =
        "pods \"kube-proxy-x\" is forbidden: User \"eve\" cannot create resource \"pods/exec\"";
    let (executed, _) = Play::refuses(403, right).run(LONG).await;
    assert_eq!(executed, Err(ExecError::Forbidden(right.into())));
    let gone = "pods \"kube-proxy-x\" not found";
    let (executed, _) = Play::refuses(404, gone).run(LONG).await;
    assert_eq!(executed, Err(ExecError::NoContainer(gone.into())));
    let other = "container kube-proxy is not valid for pod kube-proxy-x";
    let (executed, _) = Play::refuses(400, other).run(LONG).await;
    assert_eq!(executed, Err(ExecError::NoContainer(other.into())));
    let (executed, _) = Play::refuses(500, "error dialing backend").run(LONG).await;
    assert_eq!(executed, Err(ExecError::Failed("error dialing backend".into())));

    let (executed, _) =
        Play::ends("", "", &internal("container not found (\"kube-proxy\")")).run(LONG).await;
    assert!(matches!(executed, Err(ExecError::NoContainer(_))), "{executed:?}");
    let (executed, _) = Play::ends("", "", &internal("no disk")).run(LONG).await;
    let no_disk = "Internal error occurred: no disk".to_owned();
    assert_eq!(executed, Err(ExecError::Failed(no_disk)));
}

#[tokio::test]
async fn each_runtime_has_its_words_for_a_program_that_is_not_there() {
    let containerd = "error executing command in container: failed to exec in container: failed to \
                      start exec \"x\": OCI runtime exec failed: exec failed: unable to start \
                      container process: exec: \"ip\": executable file not found in $PATH: unknown";
    let crun = "error executing command in container: executable file `ip` not found in $PATH: No \
                such file or directory";
    for message in [containerd, crun] {
        let (executed, _) = Play::ends("", "", &internal(message)).run(LONG).await;
        assert!(matches!(executed, Err(ExecError::NoProgram(_))), "{executed:?}");
    }
    // Docker prints it as the command's output.
    let docker = "OCI runtime exec failed: exec failed: unable to start container process: exec: \
                  \"ip\": executable file not found in $PATH: unknown\r\n";
    let (executed, _) = Play::ends(docker, "", &exit_code("126")).run(LONG).await;
    assert!(matches!(executed, Err(ExecError::NoProgram(_))), "{executed:?}");
    // A shell's own words are the command's.
    let (executed, _) = Play::ends("", "sh: 1: ip: not found\n", &exit_code("127")).run(LONG).await;
    assert_eq!(executed.map(|executed| executed.exit), Ok(127));
}

#[tokio::test]
async fn a_lost_connection_is_no_end() {
    let (executed, _) = Play::new(vec![(1, b"half of it".into())]).run(LONG).await;
    assert!(matches!(executed, Err(ExecError::Lost(_))), "{executed:?}");
    let (executed, _) = Play::new(vec![(3, b"no status".into())]).run(LONG).await;
    assert!(matches!(executed, Err(ExecError::Lost(_))), "{executed:?}");
}

#[tokio::test]
async fn a_command_that_does_not_end_is_left() {
    let limit = Duration::from_millis(1);
    let play = Play { is_stuck: true, ..Play::new(vec![(1, b"half of it".into())]) };
    let (listener, play) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), play);
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(play.serve(listener));
    let client = Client::try_from(Config::new(url.parse().unwrap())).unwrap();
    let server = Server::new(client, url, "a test".into(), "default".into());
    let container = Container { namespace: "a".into(), pod: "b".into(), container: None };
    let executed = exec(&server, &container, &["sleep".into()], limit).await;
    assert_eq!(executed, Err(ExecError::TimedOut(limit)));
    serving.abort();
}
