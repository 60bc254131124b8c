//! The load balancers that are compared, each configured as its documentation advises for a proxy
//! of high throughput: connections to targets are kept open, and nothing is logged. All of them
//! forward the same headers about the client.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::failure::Failure;
use crate::process::{Place, Running};
use crate::row::Row;

/// The targets' ports.
pub(crate) const TARGET_PORTS: [u16; 2] = [8101, 8102];

/// A load balancer, or plain routing in place of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Contestant {
    #[serde(rename = "uturn")]
    Uturn,
    #[serde(rename = "nginx")]
    Nginx,
    #[serde(rename = "HAProxy")]
    HaProxy,
    /// The kernel forwards packets from clients that call a target directly.
    #[serde(rename = "plain routing")]
    Routing,
}

/// The surroundings and the task of a contestant.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) row: Row,
    pub(crate) vip: IpAddr,
    pub(crate) target: IpAddr,
    /// The load balancer's address towards targets, on layer 4.
    pub(crate) gateway: IpAddr,
    pub(crate) place: Place<'a>,
    /// A folder for configurations and logs.
    pub(crate) folder: &'a Path,
    pub(crate) uturn: &'a Path,
}

impl Contestant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uturn => "uturn",
            Self::Nginx => "nginx",
            Self::HaProxy => "HAProxy",
            Self::Routing => "plain routing",
        }
    }

    /// Returns the address that clients call.
    pub(crate) fn address(self, vip: IpAddr, target: IpAddr) -> SocketAddr {
        match self {
            Self::Uturn => SocketAddr::new(vip, 9001),
            Self::Nginx => SocketAddr::new(vip, 9002),
            Self::HaProxy => SocketAddr::new(vip, 9003),
            Self::Routing => SocketAddr::new(target, TARGET_PORTS[0]),
        }
    }

    /// Starts the contestant's process, if it has one.
    ///
    /// # Errors
    /// When the configuration cannot be written, or the program cannot be started.
    pub(crate) fn start(self, setting: &Setting<'_>) -> Result<Option<Running>, Failure> {
        let text = match self {
            Self::Uturn => self.uturn(setting),
            Self::Nginx => self.nginx(setting),
            Self::HaProxy if setting.row.is_layer_4() => self.haproxy_tcp(setting),
            Self::HaProxy => self.haproxy(setting),
            Self::Routing => return Ok(None),
        };
        let file = setting.folder.join(format!("{}.conf", self.name()));
        write(&file, &text)?;
        let mut command = match self {
            Self::Uturn | Self::Routing => {
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
        let log = setting.folder.join(format!("{}.log", self.name()));
        Running::start(&mut command, &log).map(Some)
    }

    fn listens(self, setting: &Setting<'_>) -> SocketAddr {
        self.address(setting.vip, setting.target)
    }

    fn uturn(self, setting: &Setting<'_>) -> String {
        let Setting { row, vip, target, gateway, .. } = setting;
        let protocol = match row {
            Row::L4Udp => "UDP",
            row if row.is_layer_4() => "TCP",
            row if row.is_tls() => "HTTPS",
            _ => "HTTP",
        };
        let source = match row {
            row if row.keeps_source() => "kept".to_owned(),
            row if row.is_layer_4() => format!("{gateway}/32"),
            _ => format!("{target}/32"),
        };
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
             \x20   source: {source}\n\
             \x20   targets:\n",
            self.listens(setting).port()
        );
        for port in TARGET_PORTS {
            let _ = writeln!(text, "    - \"{}\"", SocketAddr::new(*target, port));
        }
        text
    }

    fn nginx(self, setting: &Setting<'_>) -> String {
        let Setting { row, target, folder, .. } = setting;
        let tls = if row.is_tls() {
            format!(
                "ssl_certificate {0}/certificate.pem; ssl_certificate_key {0}/key.pem;\n\
                 ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:s:10m;\n",
                folder.display()
            )
        } else {
            String::new()
        };
        let ssl = if row.is_tls() { " ssl" } else { "" };
        let servers = TARGET_PORTS.map(|port| format!("server {target}:{port};")).join(" ");
        // nginx does not keep idle connections apart by the client address that they are bound to.
        let (keepalive, bind) = if row.keeps_source() {
            ("", "proxy_bind $remote_addr transparent;")
        } else {
            ("keepalive 512; keepalive_requests 100000000;", "")
        };
        // nginx advises for large answers enough memory that none goes to a file.
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
            self.listens(setting),
        )
    }

    fn haproxy(self, setting: &Setting<'_>) -> String {
        let Setting { row, target, folder, .. } = setting;
        let (ssl, proto) = if row.is_tls() {
            (format!(" ssl crt {}/both.pem ssl-min-ver TLSv1.2", folder.display()), "https")
        } else {
            (String::new(), "http")
        };
        // HAProxy advises for large answers larger buffers, and splicing.
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
            self.listens(setting)
        );
        for port in TARGET_PORTS {
            let _ = writeln!(text, "server t{port} {target}:{port} pool-max-conn -1");
        }
        text
    }

    /// Returns HAProxy's configuration for TCP, as its documentation advises: it saves pure
    /// acknowledgements, and splices streams through kernel pipes.
    fn haproxy_tcp(self, setting: &Setting<'_>) -> String {
        let Setting { row, target, .. } = setting;
        let splice = match row {
            Row::L4Stream => "option splice-auto\n",
            _ => "",
        };
        let source = if row.keeps_source() { "source 0.0.0.0 usesrc clientip\n" } else { "" };
        let mut text = format!(
            "global\nnbthread 1\nmaxconn 4000\n\
             defaults\nmode tcp\noption tcp-smart-accept\noption tcp-smart-connect\n{splice}\
             timeout connect 4s\ntimeout client 900s\ntimeout server 900s\nretries 1\n\
             frontend clients\nbind {} backlog 4096\ndefault_backend targets\n\
             backend targets\nbalance roundrobin\n{source}",
            self.listens(setting)
        );
        for port in TARGET_PORTS {
            let _ = writeln!(text, "server t{port} {target}:{port}");
        }
        text
    }
}

/// Returns the first lines of every nginx configuration.
pub(crate) fn nginx_head(folder: &Path, name: &str) -> String {
    format!(
        "worker_processes 1; daemon off; user root; worker_rlimit_nofile 20000;\n\
         pid {0}/{name}.pid; error_log {0}/{name}.log;\n\
         events {{ worker_connections 8192; }}\n",
        folder.display()
    )
}

pub(crate) fn nginx_command(place: Place<'_>, file: &Path) -> Command {
    let mut command = place.command("nginx");
    command.arg("-c").arg(file);
    command
}

/// Writes a file.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(Failure::of(format!("write {}", file.display())))
}
