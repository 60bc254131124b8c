//! A real etcd and a real API server on the loopback interface, with RBAC on.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;

use uturn_testing::variables;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};

/// The user who may do everything.
pub(crate) const ADMIN: &str = "admin";
/// The user who has the rights that `uturn collect --rbac` prints.
pub(crate) const READER: &str = "reader";

/// The programs, and a folder for what they write.
#[derive(Debug)]
pub(crate) struct Stage {
    parts: PathBuf,
    pub(crate) folder: PathBuf,
}

/// A running API server. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    // In this order: a client goes before its server.
    server: Mutex<Child>,
    etcd: Child,
    pub(crate) port: u16,
    pub(crate) folder: PathBuf,
    parts: PathBuf,
}

impl Stage {
    /// Returns `None` where the programs are not named.
    pub(crate) fn find() -> Option<Self> {
        let parts = variables::path(variables::CLUSTER_PARTS)?;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Some(Self { parts: parts.join("bin"), folder })
    }

    /// Starts an API server with an etcd of its own. Ports are free when they are picked, and may
    /// be taken when they are needed: then others are.
    pub(crate) fn start(&self, name: &str) -> ControlPlane {
        self.start_with(name, false)
    }

    /// Starts one that has room for many objects and lists the reader's requests.
    pub(crate) fn start_for_many(&self, name: &str) -> ControlPlane {
        self.start_with(name, true)
    }

    fn start_with(&self, name: &str, is_large: bool) -> ControlPlane {
        let mut last = String::new();
        for number in 0..5 {
            let folder = self.folder.join(format!("{name}-{number}"));
            fs::create_dir_all(&folder).unwrap();
            match ControlPlane::start(&self.parts, folder, is_large) {
                Ok(plane) => return plane,
                Err(why) => last = why,
            }
        }
        panic!("the API server does not start: {last}");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A program that ends with this process, whatever ends it.
fn program(path: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(path).stdin(Stdio::null());
    command
}

/// Starts a program and waits until it prints a line. All that it prints goes to a file.
fn start(mut command: Command, log: &Path, ready: &str) -> Result<Child, String> {
    let file = File::create(log).unwrap();
    command.stdout(file.try_clone().unwrap()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|why| why.to_string())?;
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut log = file;
    for line in lines.by_ref() {
        let line = line.unwrap();
        std::io::Write::write_all(&mut log, format!("{line}\n").as_bytes()).unwrap();
        if line.contains(ready) {
            std::thread::spawn(move || {
                for line in lines.map_while(Result::ok) {
                    let _ = std::io::Write::write_all(&mut log, format!("{line}\n").as_bytes());
                }
            });
            return Ok(child);
        }
    }
    Err(format!("ended: {:?}", child.wait()))
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

impl ControlPlane {
    /// The file with the reader's requests, of a server for many objects.
    pub(crate) const AUDIT_LOG: &str = "requests.log";

    fn start(parts: &Path, folder: PathBuf, is_large: bool) -> Result<Self, String> {
        write_certificates(&folder);
        let tokens = format!(
            "{ADMIN}-token,{ADMIN},1,system:masters\n{READER}-token,{READER},2,\n\
                 narrow-token,narrow,3,\n"
        );
        fs::write(folder.join("tokens.csv"), tokens).unwrap();
        let (client, peer, port) = (free_port(), free_port(), free_port());
        let store = format!("http://127.0.0.1:{client}");
        let peers = format!("http://127.0.0.1:{peer}");
        let mut etcd = program(&parts.join("etcd"));
        etcd.arg("--data-dir").arg(folder.join("etcd"));
        etcd.args(["--unsafe-no-fsync", "--log-level", "info"]);
        etcd.args(["--listen-client-urls", &store, "--advertise-client-urls", &store]);
        etcd.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        etcd.args(["--initial-cluster", &format!("default={peers}")]);
        if is_large {
            etcd.args(["--quota-backend-bytes", &(8_u64 << 30).to_string()]);
        }
        let mut etcd = start(etcd, &folder.join("etcd.log"), "ready to serve client requests")?;

        let mut server = program(&parts.join("kube-apiserver"));
        server.args(["--etcd-servers", &store, "--secure-port", &port.to_string()]);
        server.args(["--bind-address", "127.0.0.1", "--advertise-address", "10.0.0.250"]);
        server.args(["--service-cluster-ip-range", "172.16.0.0/12"]);
        server.args(["--service-node-port-range", "10000-32767"]);
        server.args(["--service-account-issuer", "https://kubernetes.default.svc"]);
        server.args(["--disable-admission-plugins", "ServiceAccount"]);
        server.args(["--authorization-mode", "RBAC", "--allow-privileged=true"]);
        for (flag, file) in [
            ("--tls-cert-file", "server.crt"),
            ("--tls-private-key-file", "server.key"),
            ("--client-ca-file", "ca.crt"),
            ("--token-auth-file", "tokens.csv"),
            ("--service-account-key-file", "accounts.pub"),
            ("--service-account-signing-key-file", "accounts.key"),
        ] {
            server.arg(flag).arg(folder.join(file));
        }
        if is_large {
            fs::write(folder.join("audit.json"), audit_policy().to_string()).unwrap();
            server.arg("--audit-policy-file").arg(folder.join("audit.json"));
            server.arg("--audit-log-path").arg(folder.join(Self::AUDIT_LOG));
            // Many objects are written at once, and the machine has other programs.
            server.env("GOMEMLIMIT", "6GiB").env("GOGC", "50");
            server.args(["--max-mutating-requests-inflight", "2000"]);
        }
        let server = start(server, &folder.join("kube-apiserver.log"), "Serving securely");
        let server = server.inspect_err(|_| end(&mut etcd))?;
        let plane =
            Self { server: Mutex::new(server), etcd, port, folder, parts: parts.to_owned() };
        plane.write_kubeconfig(ADMIN, plane.port);
        plane.write_kubeconfig(READER, plane.port);
        // Its first roles and namespaces come after it listens.
        plane.wait_until("the API server is ready", || {
            plane.kubectl(&["get", "--raw", "/readyz"]).status.success()
        });
        Ok(plane)
    }

    /// Asks again until it is so. Each question is a process, so that this does not spin.
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn() -> bool) {
        for _ in 0..2000 {
            let ended = self.server.lock().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "kube-apiserver: {ended:?} while waiting until {what}");
            if is_so() {
                return;
            }
        }
        panic!("not so after 2000 questions: {what}");
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The kubeconfig of a user with a token.
    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.file(&format!("{user}.kubeconfig"))
    }

    pub(crate) fn write_kubeconfig(&self, user: &str, port: u16) {
        let config = self.config_of(&json!({"token": format!("{user}-token")}), port);
        fs::write(self.kubeconfig(user), config.to_string()).unwrap();
    }

    /// A kubeconfig with these credentials.
    pub(crate) fn config_of(&self, credentials: &Value, port: u16) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "live",
            "clusters": [{"name": "live", "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority": self.file("ca.crt")}}],
            "users": [{"name": "me", "user": credentials}],
            "contexts": [{"name": "live", "context": {
                "cluster": "live", "user": "me", "namespace": "shop"}}],
        })
    }

    /// kubectl, with no kubeconfig named.
    pub(crate) fn bare_kubectl(&self) -> Command {
        let mut command = program(&self.parts.join("kubectl"));
        command.env("HOME", &self.folder).env_remove("KUBECONFIG");
        command
    }

    pub(crate) fn kubectl(&self, words: &[&str]) -> Output {
        self.kubectl_command(ADMIN).args(words).output().unwrap()
    }

    /// kubectl, as a user.
    pub(crate) fn kubectl_command(&self, user: &str) -> Command {
        let mut command = self.bare_kubectl();
        command.arg("--kubeconfig").arg(self.kubeconfig(user));
        command
    }

    /// The program as a plugin of kubectl.
    pub(crate) fn plugin(&self, words: &[&str], user: &str) -> Output {
        self.kubectl_with_plugin(&[&["uturn"], words].concat(), &self.kubeconfig(user))
    }

    /// What kubectl offers behind `kubectl uturn`.
    pub(crate) fn completed(&self, words: &[&str], kubeconfig: &Path) -> Vec<String> {
        let words = [&["__complete", "uturn"], words].concat();
        let output = self.kubectl_with_plugin(&words, kubeconfig);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{words:?}: {text}");
        text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    }

    fn kubectl_with_plugin(&self, words: &[&str], kubeconfig: &Path) -> Output {
        for name in ["kubectl-uturn", "kubectl_complete-uturn"] {
            let link = self.file(name);
            if !link.exists() {
                std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_uturn"), &link).unwrap();
            }
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = program(&self.parts.join("kubectl"));
        command.args(words).current_dir(&self.folder);
        command.env("PATH", format!("{}:{path}", self.folder.display()));
        command.env("KUBECONFIG", kubeconfig).env("NO_COLOR", "1");
        command.env("HOME", &self.folder).output().unwrap()
    }

    /// kubectl, which must succeed. Returns what it prints.
    pub(crate) fn kubectl_done(&self, words: &[&str]) -> String {
        let output = self.kubectl(words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "kubectl {words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Does something to a file with these texts as a List.
    pub(crate) fn kubectl_list(&self, words: &[&str], objects: &[Value]) {
        if objects.is_empty() {
            return;
        }
        let path = self.file("list.json");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        fs::write(&path, list.to_string()).unwrap();
        let path = path.display().to_string();
        self.kubectl_done(&[words, &["-f", &path]].concat());
    }

    /// Kills the server at once.
    pub(crate) fn kill_server(&self) {
        end(&mut self.server.lock().unwrap());
    }

    /// Stops the server, which then keeps its connections and answers nothing.
    pub(crate) fn stop_server(&self) {
        self.signal("-STOP");
    }

    /// Lets the server go on.
    pub(crate) fn let_server_go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.server.lock().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// The servers' names and processes.
    pub(crate) fn processes(&self) -> [(&'static str, u32); 2] {
        [("kube-apiserver", self.server.lock().unwrap().id()), ("etcd", self.etcd.id())]
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        end(&mut self.server.lock().unwrap());
        end(&mut self.etcd);
    }
}

/// Lists what the reader asks for.
fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [READER]}, {"level": "None"}],
    })
}

/// The authority, the server's certificate, the reader's, and the key of service accounts.
fn write_certificates(folder: &Path) {
    let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
    let own = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params.distinguished_name.push(DnType::CommonName, "uturn-live");
    write("ca.crt", params.self_signed(&own).unwrap().pem());
    let issuer = Issuer::new(params, own);

    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    write("server.crt", params.signed_by(&key, &issuer).unwrap().pem());
    write("server.key", key.serialize_pem());

    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, READER);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    write("reader.crt", params.signed_by(&key, &issuer).unwrap().pem());
    write("reader.key", key.serialize_pem());

    let accounts = KeyPair::generate().unwrap();
    write("accounts.key", accounts.serialize_pem());
    write("accounts.pub", accounts.public_key_pem());
}
