use std::{env, fs, process};

use kube::config::{ExecConfig, ExecInteractiveMode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A server that accepts some tokens, and records those that it was sent.
struct Site {
    url: String,
    sent: Arc<SharedMutex<Vec<String>>>,
}

impl Site {
    async fn accepting(tokens: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::new(SharedMutex::new(Vec::new()));
        let heard = Arc::clone(&sent);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut bytes = vec![0; 4096];
                let count = stream.read(&mut bytes).await.unwrap();
                let request = String::from_utf8_lossy(&bytes[..count]).to_lowercase();
                let header = request.lines().find_map(|line| line.strip_prefix("authorization: "));
                let token = header.unwrap_or_default().trim_start_matches("bearer ").to_owned();
                let is_known = tokens.contains(&&*token);
                heard.lock().unwrap().push(token);
                let status = if is_known { "200 OK" } else { "401 Unauthorized" };
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, sent }
    }

    async fn client(&self, source: Source) -> Client {
        client(Config::new(self.url.parse().unwrap()), source).await.unwrap()
    }

    fn sent(&self) -> Vec<String> {
        self.sent.lock().unwrap().drain(..).collect()
    }
}

async fn status(client: &Client) -> u16 {
    let request = Request::get("/version").body(Body::empty()).unwrap();
    client.send(request).await.unwrap().status().as_u16()
}

/// Makes a folder for a test.
fn folder(name: &str) -> PathBuf {
    let path = env::temp_dir().join(format!("uturn-credentials-{name}-{}", process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Returns a program that is one line of shell.
fn program(script: &str) -> Program {
    let exec = ExecConfig {
        api_version: Some("client.authentication.k8s.io/v1".to_owned()),
        command: Some("sh".to_owned()),
        args: Some(vec!["-c".to_owned(), script.to_owned()]),
        ..ExecConfig::default()
    };
    Program { exec, may_talk: true }
}

fn given(status: &Value) -> String {
    let version = "client.authentication.k8s.io/v1";
    json!({"apiVersion": version, "kind": "ExecCredential", "status": status}).to_string()
}

/// Returns a program that logs each of its runs, and gives the tokens `t1`, `t2` and so on.
fn counting(log: &std::path::Path, until: &str) -> Program {
    let until = match until {
        "" => String::new(),
        until => format!(r#","expirationTimestamp":"{until}""#),
    };
    let log = log.display();
    program(&format!(
        r#"echo x >> {log}; n=$(wc -l < {log}); printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"t%d"{until}}}}}' $n"#
    ))
}

fn runs(log: &std::path::Path) -> usize {
    fs::read_to_string(log).unwrap().lines().count()
}

#[tokio::test]
async fn a_program_runs_once_for_all_requests() {
    let folder = folder("once");
    let soon = (Timestamp::now() + SignedDuration::from_secs(30)).to_string();
    let past = (Timestamp::now() - SignedDuration::from_secs(3600)).to_string();
    for (name, until) in [("never", ""), ("soon", &*soon), ("past", &past)] {
        let log = folder.join(name);
        let site = Site::accepting(&["t1"]).await;
        let client = site.client(Source::Program(Box::new(counting(&log, until)))).await;
        for _ in 0..5 {
            assert_eq!(status(&client).await, 200, "{name}");
        }
        // Another client of this process uses the same credentials.
        let client = site.client(Source::Program(Box::new(counting(&log, until)))).await;
        assert_eq!(status(&client).await, 200, "{name}");
        assert_eq!((runs(&log), site.sent().len()), (1, 6), "{name}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// A watch may last longer than a token.
#[tokio::test]
async fn what_expires_is_had_anew() {
    let folder = folder("expired");
    let log = folder.join("log");
    let site = Site::accepting(&["old", "t1"]).await;
    let config = Config::new(site.url.parse().unwrap());
    let source = Source::Program(Box::new(counting(&log, "")));
    let until = Some(Timestamp::now() - SignedDuration::from_secs(1));
    let credential = Credential { header: Some(bearer("old").unwrap()), identity: None, until };
    let now = Used { client: inner(&config, None).unwrap(), credential, number: 0 };
    let sender = Sender { config, source, state: Mutex::new(State { now, renewed_at: None }) };
    for _ in 0..3 {
        let request = Request::get("/version").body(Body::empty()).unwrap();
        assert_eq!(sender.send(request).await.unwrap().status(), 200);
    }
    assert_eq!(site.sent(), ["t1", "t1", "t1"]);
    assert_eq!(runs(&log), 1);
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn refused_credentials_are_had_anew_once() {
    let folder = folder("refused");
    let site = Site::accepting(&["t2"]).await;
    let client = site.client(Source::Program(Box::new(counting(&folder.join("log"), "")))).await;
    assert_eq!((status(&client).await, status(&client).await), (200, 200));
    assert_eq!(site.sent(), ["t1", "t2", "t2"]);
    assert_eq!(runs(&folder.join("log")), 2);

    let site = Site::accepting(&[]).await;
    let client = site.client(Source::Program(Box::new(counting(&folder.join("vain"), "")))).await;
    assert_eq!((status(&client).await, status(&client).await), (401, 401));
    assert_eq!(runs(&folder.join("vain")), 2);
    // A token from the kubeconfig would be no better the second time.
    let client = site.client(Source::Token(bearer("fixed").unwrap())).await;
    site.sent();
    assert_eq!(status(&client).await, 401);
    assert_eq!(site.sent(), ["fixed"]);
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_file_may_end_with_a_line_and_change() {
    let folder = folder("file");
    let file = folder.join("token");
    fs::write(&file, "old\n").unwrap();
    let site = Site::accepting(&["new"]).await;
    let client = site.client(Source::File(file.clone(), None)).await;
    assert_eq!(status(&client).await, 401);
    assert_eq!(site.sent(), ["old", "old"]);
    let site = Site::accepting(&["new"]).await;
    let client = site.client(Source::File(file.clone(), None)).await;
    fs::write(&file, "new\n").unwrap();
    assert_eq!(status(&client).await, 200);
    assert_eq!(site.sent(), ["old", "new"]);
    // The last token of the file stays in use when the file is gone; at first, the one beside it is
    // used.
    fs::remove_file(&file).unwrap();
    assert_eq!(status(&client).await, 200);
    let otherwise = Some(bearer("new").unwrap());
    assert_eq!(status(&site.client(Source::File(file.clone(), otherwise)).await).await, 200);
    for (text, why) in [("", "the token is empty"), ("a\nb", "has letters that no header may have")]
    {
        fs::write(&file, text).unwrap();
        let error = Source::File(file.clone(), None).get().await.unwrap_err().to_string();
        assert!(error.ends_with(why) && error.starts_with("tokenFile /"), "{error}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Tests usually run without a terminal; `may_talk` off has the same effect.
#[test]
fn a_program_without_a_terminal_has_no_input_and_knows_it() {
    let script = "cat; printf '%s' \"$KUBERNETES_EXEC_INFO\" | grep -q '\"interactive\":false' && \
                  printf '%s' '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\
                  \"ExecCredential\",\"status\":{\"token\":\"t\\n\"}}'";
    let mut quiet = Program { may_talk: false, ..program(script) };
    assert_eq!(quiet.run().unwrap().header.unwrap(), "Bearer t");
    quiet.exec.interactive_mode = Some(ExecInteractiveMode::Always);
    let why = quiet.run().unwrap_err();
    assert!(why.contains("interactiveMode: Always"), "{why}");
}

#[test]
fn a_program_that_gives_nothing_is_an_error() {
    let printed = |text: &str| format!("printf '%s' '{text}'");
    let status = |status: Value| printed(&given(&status));
    for (script, expected) in [
        ("exit 3".to_owned(), "the program \"sh\" ended with exit code 3"),
        ("kill -9 $$".to_owned(), "was ended (signal: 9 (SIGKILL))"),
        ("true".to_owned(), "printed no ExecCredential"),
        (printed("hello world"), "printed no ExecCredential"),
        (printed("{\"kind\":\"Pod\"}"), "printed no ExecCredential, but a Pod"),
        (status(json!({})), "gives neither a token nor a client certificate"),
        (status(Value::Null), "gives neither a token nor a client certificate"),
        (
            status(json!({"clientCertificateData": "x"})),
            "gives a client certificate without its key",
        ),
        (status(json!({"token": "a b\nc"})), "gives a token that has letters"),
        (
            status(json!({"token": "a", "expirationTimestamp": "tomorrow"})),
            "gives no time as expirationTimestamp: \"tomorrow\"",
        ),
        (
            printed(&given(&json!({"token": "a"})).replace("/v1", "/v1beta1")),
            "speaks \"client.authentication.k8s.io/v1beta1\", and the kubeconfig says",
        ),
    ] {
        let why = program(&script).run().unwrap_err();
        assert!(why.contains(expected), "{script}: {why}");
    }
    let mut missing = program("");
    missing.exec.command = Some("/nowhere/plugin".to_owned());
    missing.exec.install_hint = Some("install it with foo".to_owned());
    let why = missing.run().unwrap_err();
    assert!(
        why.starts_with("the program \"/nowhere/plugin\" cannot be run: No such file"),
        "{why}"
    );
    assert!(why.ends_with("\ninstall it with foo"), "{why}");
    missing.exec.command = None;
    assert_eq!(missing.run().unwrap_err(), "exec names no command");
    // Some programs print YAML.
    let yaml = "printf 'apiVersion: client.authentication.k8s.io/v1\\nkind: ExecCredential\\n\
                status:\\n  token: t\\n'";
    assert_eq!(program(yaml).run().unwrap().header.unwrap(), "Bearer t");
}
