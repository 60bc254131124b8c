//! The program nft, and what else the kernel needs to forward.

use std::fs;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::thread;

use uturn_model::Family;

/// What is passed on of nft's messages.
const MESSAGE: usize = 500;

/// Loads text in one transaction: the kernel takes all of it or nothing.
///
/// # Errors
/// When nft is missing, or the kernel does not take the text.
pub(super) fn load(text: String) -> io::Result<()> {
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(
                error.kind(),
                "TCP and UDP listeners need the program nft, which is in the package nftables",
            ),
            _ => error,
        })?;
    let stdin = child.stdin.take();
    let writer =
        thread::spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes())));
    let output = child.wait_with_output()?;
    // A program that stops early says why by itself.
    let _ = writer.join();
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Operation not permitted") {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "TCP and UDP listeners need the capability CAP_NET_ADMIN, which nft must inherit",
        ));
    }
    let message: String = said.trim().chars().take(MESSAGE).collect();
    Err(io::Error::other(format!("nft: {message}")))
}

/// Fails if the kernel does not forward packets of an address family.
pub(super) fn check_forwarding(family: Family) -> io::Result<()> {
    let (path, name) = match family {
        Family::V4 => ("/proc/sys/net/ipv4/ip_forward", "net.ipv4.ip_forward"),
        Family::V6 => ("/proc/sys/net/ipv6/conf/all/forwarding", "net.ipv6.conf.all.forwarding"),
    };
    match fs::read_to_string(path)?.trim() {
        "0" => Err(io::Error::other(format!(
            "this machine does not forward packets: set it up with sysctl -w {name}=1"
        ))),
        _ => Ok(()),
    }
}
