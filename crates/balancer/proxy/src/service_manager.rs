//! Reports the state of the process to systemd by the protocol of sd_notify(3): text in a datagram.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The service manager that started this process, if there is one that wants reports.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    ///
    /// # Errors
    /// When the socket of the service manager cannot be used.
    pub fn from_environment() -> io::Result<Self> {
        let Some(path) = env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else {
            return Ok(Self::default());
        };
        let socket = UnixDatagram::unbound()?;
        // A manager that does not read must not delay the load balancer.
        socket.set_nonblocking(true)?;
        Ok(Self { socket: Some((socket, address(&path)?)), watchdog: watchdog() })
    }

    /// Returns the time within which the manager wants reports that the process is alive; `None` if
    /// it wants none.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Reports that everything is served.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// Reports that the configuration is being changed. [`ServiceManager::ready`] ends that,
    /// whatever the outcome.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u128::try_from(now.tv_sec).unwrap_or_default();
        let nanoseconds = u128::try_from(now.tv_nsec).unwrap_or_default();
        let microseconds = seconds * 1_000_000 + nanoseconds / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
    }

    /// Reports that the process begins to stop, for which it may need `drain`.
    pub fn stopping(&self, drain: Duration) {
        let limit = drain + Duration::from_secs(10);
        let microseconds = limit.as_micros();
        self.send(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={microseconds}\nSTATUS=draining"));
    }

    /// Reports that the process is alive.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.socket {
            // A manager that does not listen misses the message.
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}

/// Returns the address of a path or, after `@`, of an abstract name.
fn address(path: &OsStr) -> io::Result<SocketAddr> {
    match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(path),
    }
}

/// Reads the time within which the manager wants reports from this process.
fn watchdog() -> Option<Duration> {
    let number = |name| env::var(name).ok()?.parse::<u64>().ok();
    let is_meant = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
    let limit = number("WATCHDOG_USEC").filter(|limit| is_meant && *limit > 0)?;
    Some(Duration::from_micros(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_at_paths_and_at_abstract_names() {
        let name = format!("uturn-notify-{}", std::process::id());
        let path = env::temp_dir().join(&name);
        let by_path = UnixDatagram::bind(&path).unwrap();
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&abstract_name).unwrap();
        let named = format!("@{name}");
        for (receiver, text) in [(by_path, path.as_os_str()), (by_name, OsStr::new(&named))] {
            let socket = UnixDatagram::unbound().unwrap();
            let manager =
                ServiceManager { socket: Some((socket, address(text).unwrap())), watchdog: None };
            manager.ready("fine");
            let mut message = [0; 100];
            let count = receiver.recv(&mut message).unwrap();
            assert_eq!(&message[..count], b"READY=1\nSTATUS=fine");
        }
        std::fs::remove_file(path).unwrap();
    }
}
