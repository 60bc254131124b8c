//! Health checks as the API has them.

use serde::{Deserialize, Serialize};

/// How targets are probed.
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
    /// Failures after which it counts as dead.
    pub fall: u8,
    /// What a probe is.
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
    /// The method of an HTTP probe; `None` for what is the default.
    pub http_method: Option<String>,
    /// The version of an HTTP probe on a TCP listener.
    pub http_version: Option<String>,
    /// How the two texts of a custom probe are written: `HEX` or `TEXT`.
    pub context_type: Option<String>,
    /// What a custom probe sends.
    pub send: Option<String>,
    /// What a custom probe expects.
    pub expect: Option<String>,
    /// The gRPC codes that count as healthy.
    pub grpc_codes: Option<String>,
    /// Where probes come from.
    pub source: ProbeSourceType,
}

/// What a probe is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CheckType {
    /// A connection.
    Tcp,
    /// A request.
    Http,
    /// A request over TLS.
    Https,
    /// A gRPC call.
    Grpc,
    /// An echo request.
    Ping,
    /// Bytes sent and bytes expected.
    Custom,
}

/// Where probes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeSourceType {
    /// The load balancer's own address.
    Vip,
    /// An address of the range that is reserved for it.
    Reserved,
}
