//! Runs the program nft, and checks that the kernel forwards.

use std::fs;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::thread;

use uturn_model::Family;

/// The number of characters of nft's messages that are reported.
const MESSAGE: usize = 500;

/// Loads a text in one transaction: the kernel accepts all of it or nothing.
///
/// # Errors
/// When nft is missing, or the kernel refuses the text.
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
    // If nft ends early, its own message says why.
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
