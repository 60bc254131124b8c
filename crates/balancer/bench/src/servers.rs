//! Starts the targets behind the load balancers, and makes the certificate.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::contestant::{TARGET_PORTS, nginx_command, nginx_head, write};
use crate::failure::Failure;
use crate::process::{Place, Running, run};
use crate::row::Row;

/// Starts the targets at every address of their namespace: an nginx that answers from memory; on
/// layer 4 this program.
///
/// # Errors
/// When the program cannot be started.
pub(crate) fn start_targets(row: Row, place: Place<'_>, folder: &Path) -> Result<Running, Failure> {
    let log = folder.join("targets.log");
    let everywhere = TARGET_PORTS.map(|port| SocketAddr::from(([0, 0, 0, 0], port)));
    if row.is_layer_4() {
        let this = std::env::current_exe().map_err(Failure::of("find this program"))?;
        let mut command = place.command(this);
        command.arg("target");
        for address in everywhere {
            command.args(["--listen", &address.to_string()]);
        }
        return Running::start(&mut command, &log);
    }
    let listen = everywhere.map(|address| format!("listen {address} backlog=4096;"));
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
    Running::start(&mut nginx_command(place, &file), &log)
}

/// Makes the certificate of nginx and HAProxy, of the same kind as the one that uturn makes.
///
/// # Errors
/// When the certificate cannot be made.
pub(crate) fn make_certificate(folder: &Path) -> Result<(), Failure> {
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let path = |path: &PathBuf| path.display().to_string();
    let new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt"];
    let what = ["ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=bench.example"];
    let to = ["-out", &path(&certificate), "-keyout", &path(&key)];
    run(&[&new[..], &what[..], &to[..]].concat())?;
    let read = |file: &PathBuf| {
        fs::read_to_string(file).map_err(Failure::of(format!("read {}", file.display())))
    };
    let both = read(&certificate)? + &read(&key)?;
    write(&folder.join("both.pem"), &both)
}
