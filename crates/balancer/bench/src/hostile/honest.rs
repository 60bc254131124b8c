//! Honest clients: a flow for each kind of listener and client, at a constant rate.

use super::site::Site;
use crate::arguments::Exchange;
use crate::clients::Clients;
use crate::failure::Failure;
use crate::load::Measured;
use crate::ports::{HTTP, HTTPS, PROXIED, TCP, TCP_SSL, UDP};

/// The honest clients of one kind.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) name: &'static str,
    port: u16,
    exchange: Exchange,
    connections: u32,
    /// The rate, in requests per second.
    rate: u32,
    is_new: bool,
    is_tls: bool,
    is_proxied: bool,
    is_ipv6: bool,
}

const KEPT: Flow = Flow {
    name: "HTTP/1.1, kept",
    port: HTTP,
    exchange: Exchange::Http,
    connections: 4,
    rate: 40,
    is_new: false,
    is_tls: false,
    is_proxied: false,
    is_ipv6: false,
};

/// All flows of honest clients.
pub(super) const FLOWS: [Flow; 11] = [
    KEPT,
    Flow { name: "HTTP/1.1, new", rate: 20, is_new: true, ..KEPT },
    Flow { name: "HTTP/1.1, kept, IPv6", rate: 20, is_ipv6: true, ..KEPT },
    Flow { name: "HTTP/1.1 behind a proxy", port: PROXIED, rate: 20, is_proxied: true, ..KEPT },
    Flow { name: "HTTPS, kept", port: HTTPS, is_tls: true, ..KEPT },
    Flow { name: "HTTPS, new", port: HTTPS, rate: 10, is_tls: true, is_new: true, ..KEPT },
    Flow { name: "HTTP/2 under TLS", port: HTTPS, exchange: Exchange::Http2, ..KEPT },
    Flow { name: "TCP_SSL, kept", port: TCP_SSL, rate: 20, is_tls: true, ..KEPT },
    Flow { name: "TCP, kept", port: TCP, exchange: Exchange::Echo, ..KEPT },
    Flow { name: "TCP, new", port: TCP, exchange: Exchange::Echo, rate: 20, is_new: true, ..KEPT },
    Flow { name: "UDP", port: UDP, exchange: Exchange::Datagram, rate: 20, ..KEPT },
];

impl Flow {
    /// Starts the clients, and returns when their connections are open.
    ///
    /// # Errors
    /// When the connections cannot be opened.
    pub(super) fn start(&self, site: &Site, seconds: u32) -> Result<Clients, Failure> {
        let mut command = site.honest_command()?;
        let to = std::net::SocketAddr::new(site.vip(self.is_ipv6), self.port);
        command.args(["load", "--to", &to.to_string()]);
        command.args(["--exchange", self.exchange.word()]);
        command.args(["--connections", &self.connections.to_string()]);
        command.args(["--rate", &self.rate.to_string()]);
        command.args(["--seconds", &seconds.to_string()]);
        for address in site.honest(self.is_ipv6) {
            command.args(["--from", &address.to_string()]);
        }
        for (is_so, word) in
            [(self.is_new, "--new"), (self.is_tls, "--tls"), (self.is_proxied, "--proxied")]
        {
            if is_so {
                command.arg(word);
            }
        }
        Clients::start(&mut command)
    }
}

/// The measurements of the honest clients of a flow, or why they could not begin.
pub(super) type Met = Result<Measured, String>;

/// Returns the numbers of answered and of failed requests of a flow. Clients that could not begin
/// count as one failure.
pub(super) fn counts(met: &Met) -> (u64, u64) {
    match met {
        Ok(measured) => (measured.answered, measured.failed + measured.unanswered),
        Err(_) => (0, 1),
    }
}
