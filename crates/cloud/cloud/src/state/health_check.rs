//! Health checks as the API has them.

use serde::{Deserialize, Serialize};

/// The settings by which targets are probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthCheck {
    /// Whether targets are probed at all.
    pub enabled: bool,
    /// Seconds a probe may take.
    pub timeout: u16,
    /// Seconds between probes.
    pub interval: u16,
    /// Successes after which a target counts as alive.
    pub rise: u8,
    /// Failures after which a target counts as dead.
    pub fall: u8,
    /// The kind of probe.
    pub check_type: CheckType,
    /// The port that is probed; `None` for the target's own.
    pub port: Option<u16>,
    /// The classes of HTTP status that count as healthy, a bit for each: 1 for 1xx, 2 for 2xx and
    /// so on.
    pub http_codes: u8,
    /// The path of an HTTP probe.
    pub http_path: Option<String>,
    /// The host of an HTTP probe.
    pub http_domain: Option<String>,
    /// The method of an HTTP probe; `None` for the default.
    pub http_method: Option<String>,
    /// The version of an HTTP probe on a TCP listener.
    pub http_version: Option<String>,
    /// The notation of [`Self::send`] and [`Self::expect`]: `HEX` or `TEXT`.
    pub context_type: Option<String>,
    /// The bytes that a custom probe sends.
    pub send: Option<String>,
    /// The bytes that a custom probe expects.
    pub expect: Option<String>,
    /// The gRPC codes that count as healthy.
    pub grpc_codes: Option<String>,
    /// The source address of probes.
    pub source: ProbeSourceType,
}

/// The kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CheckType {
    /// A TCP connection.
    Tcp,
    /// An HTTP request.
    Http,
    /// An HTTP request over TLS.
    Https,
    /// A gRPC call.
    Grpc,
    /// An ICMP echo request.
    Ping,
    /// Bytes that are sent, and bytes that are expected in return.
    Custom,
}

/// The source address of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeSourceType {
    /// The load balancer's own address.
    Vip,
    /// An address of the range that is reserved for probes.
    Reserved,
}
