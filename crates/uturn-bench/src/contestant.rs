//! The load balancers that are compared, each configured as its documentation says for a proxy of
//! high throughput: connections to targets are kept open, and nothing is logged. All tell targets
//! the same of the client.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::process::{Place, Running};
use crate::row::Row;

/// The targets' ports.
const TARGET_PORTS: [u16; 2] = [8101, 8102];

/// A load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contestant {
    Uturn,
    Nginx,
    HaProxy,
}

/// What a contestant is to serve.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) row: Row,
    pub(crate) vip: IpAddr,
    pub(crate) target: IpAddr,
    pub(crate) place: Place<'a>,
    /// A folder for configurations and logs.
    pub(crate) folder: &'a Path,
    pub(crate) uturn: &'a Path,
}

impl Contestant {
    pub(crate) const ALL: [Self; 3] = [Self::Uturn, Self::Nginx, Self::HaProxy];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uturn => "uturn",
            Self::Nginx => "nginx",
            Self::HaProxy => "HAProxy",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Uturn => 9001,
            Self::Nginx => 9002,
            Self::HaProxy => 9003,
        }
    }

    /// Where it listens.
    pub(crate) fn address(self, vip: IpAddr) -> SocketAddr {
        SocketAddr::new(vip, self.port())
    }

    /// Starts it.
    ///
    /// # Errors
    /// When its configuration cannot be written, or its program not be started.
    pub(crate) fn start(self, setting: &Setting<'_>) -> Result<Running, Failure> {
        let file = setting.folder.join(format!("{}.conf", self.name()));
        let text = match self {
            Self::Uturn => self.uturn(setting),
            Self::Nginx => self.nginx(setting),
            Self::HaProxy => self.haproxy(setting),
        };
        write(&file, &text)?;
        let mut command = match self {
            Self::Uturn => {
                let mut command = setting.place.command(setting.uturn);
                command.args(["lb", "run", "-f"]).arg(&file);
                command
            }
            Self::Nginx => nginx_command(setting.place, &file),
            Self::HaProxy => {
                let mut command = setting.place.command("haproxy");
                command.arg("-db").arg("-f").arg(&file);
                command
            }
        };
        Running::start(&mut command, &setting.folder.join(format!("{}.log", self.name())))
    }

    fn uturn(self, setting: &Setting<'_>) -> String {
        let Setting { row, vip, target, .. } = setting;
        let protocol = if row.is_tls() { "HTTPS" } else { "HTTP" };
        let source = if row.keeps_source() { "kept".into() } else { format!("{target}/32") };
        let mut text = format!(
            "apiVersion: uturn.dev/v1alpha1\n\
             kind: LoadBalancer\n\
             metadata: {{name: bench}}\n\
             spec:\n\
             \x20 vip: {vip}\n\
             \x20 scope: private\n\
             \x20 listeners:\n\
             \x20 - port: {}\n\
             \x20   protocol: {protocol}\n\
             \x20   profile: {{source: {source}}}\n\
             \x20   rules:\n\
             \x20   - path: {{path: /, type: Prefix}}\n\
             \x20     service: bench/target\n\
             \x20     targets:\n",
            self.port()
        );
        for port in TARGET_PORTS {
            let address = SocketAddr::new(*target, port);
            let _ = writeln!(text, "      - {{address: \"{address}\", weight: 10, nodePort: n1}}");
        }
        text
    }

    fn nginx(self, setting: &Setting<'_>) -> String {
        let Setting { row, target, folder, .. } = setting;
        let tls = match row.is_tls() {
            true => format!(
                "ssl_certificate {0}/certificate.pem; ssl_certificate_key {0}/key.pem;\n\
                 ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:s:10m;\n",
                folder.display()
            ),
            false => String::new(),
        };
        let ssl = if row.is_tls() { " ssl" } else { "" };
        let servers = TARGET_PORTS.map(|port| format!("server {target}:{port};")).join(" ");
        // nginx does not know kept connections by the client that they were bound for.
        let (keepalive, bind) = match row.keeps_source() {
            false => ("keepalive 512; keepalive_requests 100000000;", ""),
            true => ("", "proxy_bind $remote_addr transparent;"),
        };
        // As it advises for large answers: memory enough that none goes to a file.
        let buffers = match row {
            Row::Large => {
                "proxy_buffer_size 64k; proxy_buffers 16 64k; proxy_busy_buffers_size 256k;\n\
                 proxy_max_temp_file_size 0;\n"
            }
            _ => "",
        };
        format!(
            "{}http {{\n\
             access_log off; keepalive_requests 100000000;\n\
             upstream targets {{ {servers} {keepalive} }}\n\
             server {{\n\
             listen {}{ssl} backlog=4096;\n{tls}\
             location / {{\n\
             proxy_pass http://targets; proxy_http_version 1.1; proxy_connect_timeout 4s;\n\
             {bind}\n{buffers}\
             proxy_set_header Connection \"\"; proxy_set_header Host $http_host;\n\
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n\
             proxy_set_header X-Forwarded-Proto $scheme;\n\
             proxy_set_header X-Forwarded-Port $server_port;\n\
             proxy_set_header X-Real-IP $remote_addr;\n\
             }} }} }}\n",
            nginx_head(folder, self.name()),
            self.address(setting.vip),
        )
    }

    fn haproxy(self, setting: &Setting<'_>) -> String {
        let Setting { row, target, folder, .. } = setting;
        let (ssl, proto) = match row.is_tls() {
            true => {
                (format!(" ssl crt {}/both.pem ssl-min-ver TLSv1.2", folder.display()), "https")
            }
            false => (String::new(), "http"),
        };
        // As it advises for large answers: larger buffers, and splicing.
        let (size, splice) = match row {
            Row::Large => ("tune.bufsize 65536\n", "option splice-auto\n"),
            _ => ("", ""),
        };
        let source = if row.keeps_source() { "source 0.0.0.0 usesrc clientip\n" } else { "" };
        let mut text = format!(
            "global\nnbthread 1\nmaxconn 4000\n{size}\
             defaults\nmode http\noption forwardfor\n{splice}\
             timeout connect 4s\ntimeout client 60s\ntimeout server 60s\n\
             timeout http-request 30s\nretries 1\n\
             frontend clients\nbind {}{ssl} backlog 4096\n\
             http-request set-header X-Forwarded-Proto {proto}\n\
             http-request set-header X-Forwarded-Port %[dst_port]\n\
             http-request set-header X-Real-IP %[src]\n\
             default_backend targets\n\
             backend targets\nbalance roundrobin\nhttp-reuse always\n{source}",
            self.address(setting.vip)
        );
        for port in TARGET_PORTS {
            let _ = writeln!(text, "server t{port} {target}:{port} pool-max-conn -1");
        }
        text
    }
}

/// Starts what answers: another nginx, from memory.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn start_targets(
    address: IpAddr,
    place: Place<'_>,
    folder: &Path,
) -> Result<Running, Failure> {
    let listen = TARGET_PORTS.map(|port| format!("listen {address}:{port} backlog=4096;"));
    let file = folder.join("targets.conf");
    write(&folder.join("large"), &"uturn-bench\n".repeat(1024 * 1024 / 12))?;
    let text = format!(
        "{}http {{\n\
         access_log off; sendfile on; open_file_cache max=10;\n\
         keepalive_requests 100000000; keepalive_timeout 600s;\n\
         server {{\n{}\nroot {};\n\
         location = / {{ default_type text/plain; return 200 \"{}\"; }}\n}} }}\n",
        nginx_head(folder, "targets"),
        listen.join("\n"),
        folder.display(),
        "0123456789".repeat(10),
    );
    write(&file, &text)?;
    Running::start(&mut nginx_command(place, &file), &folder.join("targets.log"))
}

/// Makes the certificate of nginx and HAProxy, of the kind that uturn makes for itself.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_certificate(folder: &Path) -> Result<(), Failure> {
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let path = |path: &PathBuf| path.display().to_string();
    let new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"];
    let what = ["ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=bench.example"];
    let to = ["-out", &path(&certificate), "-keyout", &path(&key)];
    crate::process::run(&[&new[..], &what[..], &to[..]].concat())?;
    let read = |file: &PathBuf| {
        fs::read_to_string(file).map_err(Failure::of(format!("read {}", file.display())))
    };
    let both = read(&certificate)? + &read(&key)?;
    write(&folder.join("both.pem"), &both)
}

fn nginx_head(folder: &Path, name: &str) -> String {
    format!(
        "worker_processes 1; daemon off; user root; worker_rlimit_nofile 20000;\n\
         pid {0}/{name}.pid; error_log {0}/{name}.log;\n\
         events {{ worker_connections 8192; }}\n",
        folder.display()
    )
}

fn nginx_command(place: Place<'_>, file: &Path) -> Command {
    let mut command = place.command("nginx");
    command.arg("-c").arg(file);
    command
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(Failure::of(format!("write {}", file.display())))
}
