//! Listeners.

use serde::Serialize;

use super::rule::{Probe, Rule, Target};
use super::values::*;

/// A listener.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::load_balancer) struct Listener {
    /// Its port.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65535)))]
    pub(in crate::load_balancer) port: u16,
    /// Its protocol.
    pub(in crate::load_balancer) protocol: ListenerProtocol,
    /// The name of its profile, and fields that may stand on the listener too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) profile: Option<NamedProfile>,
    #[serde(flatten)]
    pub(in crate::load_balancer) fields: Profile,
    /// The certificates that TLS ends with, chosen by the name that a client asks for. Without
    /// any, the process makes one. TCP_SSL and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) certificates: Option<Vec<Certificate>>,
    /// What clients' certificates are checked against; without it, clients are not asked for any.
    /// TCP_SSL and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) client_certificates: Option<ClientCertificates>,
    /// Clients whose connections begin with a PROXY header. Not for UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) proxy_from: Option<Vec<Network>>,
    /// The PROXY header that connections to targets begin with. Not for UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) proxy_to: Option<ProxyVersion>,
    /// What connections and requests may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) limits: Option<Limits>,
    /// How long things may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) timeouts: Option<Timeouts>,
    /// Connections to targets that are kept open. HTTP and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) keepalive: Option<Keepalive>,
    /// Whether clients may speak HTTP/2. HTTP and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) http2: Option<bool>,
    /// Whether a request ends when its client closes its side of the connection before the
    /// answer. HTTP and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) abort_on_close: Option<bool>,
    /// The host whose rules serve requests for hosts that no rule is for. HTTP and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) default_host: Option<Host>,
    /// What becomes of headers that say who asked, and how. HTTP and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) forwarded_for: Option<ForwardedFor>,
    /// The targets of a listener with a single rule for everything, in place of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) targets: Option<Vec<Target>>,
    /// Its rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) rules: Option<Vec<Rule>>,
}

/// How a listener decides.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(in crate::load_balancer) struct Profile {
    /// The source that targets see: `kept`, the client's own, or a range of the load balancer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) source: Option<Seen>,
    /// Whether a client is never sent to a target with its own address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) avoids_client: Option<bool>,
    /// Whether connections of clients are taken here, each with one of its own to a target, and not
    /// forwarded packet by packet. TCP only: other listeners but UDP do so in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) ends_connections: Option<bool>,
    /// How long a connection to a target may take to open. Not for UDP, nor for TCP that is forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) connect_timeout: Option<Time>,
    /// Whether another target is tried where that is safe. Not for UDP, nor for TCP that is forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) next_target: Option<bool>,
    /// How a target is selected: in turns by weight, the fewest connections, or by a hash of the
    /// client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) scheduler: Option<Scheduler>,
    /// Whether all targets count as alive when none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) all_dead_all_alive: Option<bool>,
    /// The percentage of alive targets at or below which all count as alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 99)))]
    pub(in crate::load_balancer) panic_threshold: Option<u8>,
    /// The health check, or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) health_check: Option<OrNone<HealthCheck>>,
    /// What failing requests do to a target, or `none`. Not for UDP, nor for TCP that is forwarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) passive_check: Option<OrNone<PassiveCheck>>,
    /// What becomes of paths that can be written in another way. HTTP and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) path_normalization: Option<PathNormalization>,
}

/// Something, or `none`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(untagged)]
pub(in crate::load_balancer) enum OrNone<T> {
    /// `none`.
    None(NoneWord),
    /// It is there.
    Some(T),
}

documents! {
    /// The profile of a listener: its name, and fields that may stand on the listener too.
    pub(in crate::load_balancer) struct NamedProfile {
        /// Its name, as predictions print it.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(flatten)]
        fields: Profile,
    }

    /// A health check.
    pub(in crate::load_balancer) struct HealthCheck {
        /// Where it comes from: `vip`, `reserved` (100.64.0.0/10), a range, or one for each family.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<ProbeFrom>,
        /// The time from the begin of one check to the next.
        #[serde(skip_serializing_if = "Option::is_none")]
        interval: Option<Time>,
        /// How long an answer may take: less than the interval.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<Time>,
        /// How many good checks in a row make a target healthy.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))]
        rise: Option<u32>,
        /// How many bad checks in a row make a target unhealthy.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 100)))]
        fall: Option<u32>,
        /// What is asked, where a rule does not say.
        #[serde(skip_serializing_if = "Option::is_none")]
        probe: Option<Probe>,
    }

    /// What failing requests do to a target.
    pub(in crate::load_balancer) struct PassiveCheck {
        /// How many failures in a row.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        failures: Option<u32>,
        /// How long the target is then left alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        rest: Option<Time>,
    }

    /// A certificate.
    pub(in crate::load_balancer) struct Certificate {
        /// A file with the certificate and those that lead to its authority, in PEM.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        certificate: String,
        /// A file with its private key, in PEM.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        key: String,
    }

    /// What clients' certificates are checked against.
    pub(in crate::load_balancer) struct ClientCertificates {
        /// A file with the certificates of authorities, in PEM.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        authorities: String,
        /// Whether clients without a certificate are served too.
        #[serde(skip_serializing_if = "Option::is_none")]
        optional: Option<bool>,
    }

    /// What connections and requests may take.
    pub(in crate::load_balancer) struct Limits {
        /// The most connections at a time.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000_000)))]
        connections: Option<usize>,
        /// The most connections at a time from one IPv4 address, or from one /64 of IPv6.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000_000)))]
        connections_per_client: Option<usize>,
        /// The most new connections a second.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000_000)))]
        connections_per_second: Option<u32>,
        /// The most requests a second. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000_000)))]
        requests_per_second: Option<u32>,
        /// The most bytes of a request's line and headers. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 256, max = 1_048_576)))]
        header_bytes: Option<Size>,
        /// The most headers of a request. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        headers: Option<usize>,
        /// The most bytes of a request's body. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        body_bytes: Option<Size>,
        /// The fewest bytes a second of a request's body; 0 for any. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(max = 1_073_741_824)))]
        body_bytes_per_second: Option<u64>,
    }

    /// How long things may take.
    pub(in crate::load_balancer) struct Timeouts {
        /// Until a request's headers are complete. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        header: Option<Time>,
        /// Between two parts of a body or an answer. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        read: Option<Time>,
        /// A client's connection without a request, or on layer 4 without a packet.
        #[serde(skip_serializing_if = "Option::is_none")]
        idle: Option<Time>,
        /// A connection that has switched protocols, without a byte either way. HTTP and HTTPS
        /// only.
        #[serde(skip_serializing_if = "Option::is_none")]
        tunnel: Option<Time>,
    }

    /// Connections to targets that are kept open.
    pub(in crate::load_balancer) struct Keepalive {
        /// How many idle ones a worker keeps to a target; 0 for none.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 10_000)))]
        connections: Option<usize>,
        /// How long one is kept idle.
        #[serde(skip_serializing_if = "Option::is_none")]
        idle: Option<Time>,
    }
}
