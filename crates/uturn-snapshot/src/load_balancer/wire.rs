//! The documents as they are written, with every default in its place. Their types are also what
//! the JSON Schema of the file is made from, so the comments here are its descriptions, and what
//! may be left out is an `Option`.

mod values;

use serde::Serialize;

pub(super) use values::*;

/// A document of the file that `uturn lb run` takes. `uturn lb check -o json` prints a List of
/// them, with every default in its place.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct LbFile(pub(super) Document);

/// A document.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum Document {
    /// Several documents.
    List(List),
    /// A load balancer.
    LoadBalancer(Box<LoadBalancer>),
    /// The process.
    DataPlane(DataPlane),
    /// A security group.
    SecurityGroup(SecurityGroup),
}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(inline))]
        pub(super) enum $name {
            #[doc = concat!("`", $word, "`.")]
            #[serde(rename = $word)]
            It,
        }
    };
}

word!(#[doc = "The version of Lists."] V1 "v1");
word!(#[doc = "The version of uturn's documents."] Ours "uturn.dev/v1alpha1");
word!(#[doc = "A List."] ListKind "List");
word!(#[doc = "A LoadBalancer."] LoadBalancerKind "LoadBalancer");
word!(#[doc = "A DataPlane."] DataPlaneKind "DataPlane");
word!(#[doc = "A SecurityGroup."] SecurityGroupKind "SecurityGroup");

macro_rules! documents {
    ($($(#[$doc:meta])* $visibility:vis struct $name:ident {
        $($(#[$attribute:meta])* $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        $visibility struct $name {
            $($(#[$attribute])* pub(in crate::load_balancer) $field: $type,)*
        }
    )*};
}

documents! {
    /// Several documents.
    pub(super) struct List {
        /// `v1`.
        api_version: V1,
        /// `List`.
        kind: ListKind,
        /// The documents.
        items: Vec<Document>,
    }

    /// The name of a document.
    pub(super) struct Metadata {
        /// The name.
        name: String,
    }

    /// The name of a document that may have none.
    pub(super) struct OptionalMetadata {
        /// The name.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }

    /// The settings of the process. At most one document.
    pub(super) struct DataPlane {
        /// `uturn.dev/v1alpha1`.
        api_version: Ours,
        /// `DataPlane`.
        kind: DataPlaneKind,
        /// Its name, which nothing uses.
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<OptionalMetadata>,
        /// The settings.
        spec: DataPlaneSpec,
    }

    /// The settings of the process.
    pub(super) struct DataPlaneSpec {
        /// The number of threads that serve; one a core where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1024)))]
        workers: Option<usize>,
        /// Where metrics, the state of targets and the process's own health are served.
        #[serde(skip_serializing_if = "Option::is_none")]
        admin: Option<Socket>,
        /// Where the access log goes: `off`, `stdout`, or the path of a file.
        #[serde(skip_serializing_if = "Option::is_none")]
        access_log: Option<AccessLog>,
        /// How long connections may take to end when a listener or the process stops.
        #[serde(skip_serializing_if = "Option::is_none")]
        drain: Option<Time>,
        /// The most connections from clients at a time, over all listeners.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000_000)))]
        connections: Option<usize>,
    }

    /// A security group: who may call the load balancers that name it.
    pub(super) struct SecurityGroup {
        /// `uturn.dev/v1alpha1`.
        api_version: Ours,
        /// `SecurityGroup`.
        kind: SecurityGroupKind,
        /// Its name.
        metadata: Metadata,
        /// Its rules.
        spec: SecurityGroupSpec,
    }

    /// The rules of a security group. What none matches is dropped.
    pub(super) struct SecurityGroupSpec {
        /// For what enters; the first that matches decides.
        #[serde(skip_serializing_if = "Option::is_none")]
        inbound: Option<Vec<SecurityRule>>,
        /// For what leaves; not used for load balancers.
        #[serde(skip_serializing_if = "Option::is_none")]
        outbound: Option<Vec<SecurityRule>>,
    }

    /// A rule of a security group.
    pub(super) struct SecurityRule {
        /// `accept` or `drop`.
        action: Action,
        /// `tcp`, `udp`, `sctp` or `all`; all where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        protocol: Option<ProtocolWord>,
        /// A port, a range such as `30000-32768`, or `all`; all where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        ports: Option<Ports>,
        /// The range of clients, or `all`; all where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        peer: Option<Peer>,
    }

    /// A load balancer.
    pub(super) struct LoadBalancer {
        /// `uturn.dev/v1alpha1`.
        api_version: Ours,
        /// `LoadBalancer`.
        kind: LoadBalancerKind,
        /// Its name, which metrics and logs print.
        metadata: Metadata,
        /// What it is.
        spec: LoadBalancerSpec,
    }

    /// A load balancer.
    pub(super) struct LoadBalancerSpec {
        /// Its address.
        vip: Address,
        /// `private` or `public`: whether it is reachable from the internet. For predictions.
        #[serde(skip_serializing_if = "Option::is_none")]
        scope: Option<Scope>,
        /// The names of SecurityGroup documents; without any, every client may call.
        #[serde(skip_serializing_if = "Option::is_none")]
        security_groups: Option<Vec<String>>,
        /// Written by programs that derive load balancers from a cluster: what only people get
        /// wrong is not checked.
        #[serde(skip_serializing_if = "Option::is_none")]
        derived: Option<bool>,
        /// Its listeners.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        listeners: Vec<Listener>,
    }

    /// The profile of a listener: its name, and fields that may stand on the listener too.
    pub(super) struct NamedProfile {
        /// Its name, as predictions print it.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(flatten)]
        fields: Profile,
    }

    /// A health check.
    pub(super) struct HealthCheck {
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
    pub(super) struct PassiveCheck {
        /// How many failures in a row.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        failures: Option<u32>,
        /// How long the target is then left alone.
        #[serde(skip_serializing_if = "Option::is_none")]
        rest: Option<Time>,
    }

    /// A certificate.
    pub(super) struct Certificate {
        /// A file with the certificate and those that lead to its authority, in PEM.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        certificate: String,
        /// A file with its private key, in PEM.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        key: String,
    }

    /// What connections and requests may take.
    pub(super) struct Limits {
        /// The most connections at a time.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000_000)))]
        connections: Option<usize>,
        /// The most connections at a time from one address.
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
    }

    /// How long things may take.
    pub(super) struct Timeouts {
        /// Until a request's headers are complete. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        header: Option<Time>,
        /// Between two parts of a body or an answer. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        read: Option<Time>,
        /// A client's connection without a request, or on layer 4 without a packet.
        #[serde(skip_serializing_if = "Option::is_none")]
        idle: Option<Time>,
    }

    /// Connections to targets that are kept open.
    pub(super) struct Keepalive {
        /// How many idle ones a worker keeps to a target; 0 for none.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 10_000)))]
        connections: Option<usize>,
        /// How long one is kept idle.
        #[serde(skip_serializing_if = "Option::is_none")]
        idle: Option<Time>,
    }

    /// Which requests, and what becomes of them.
    pub(super) struct Rule {
        /// The host: a name, or `*.` and a name. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<Host>,
        /// The path. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<RulePath>,
        /// The Service that it stands for. For predictions.
        #[serde(skip_serializing_if = "Option::is_none")]
        service: Option<Names>,
        /// The object that it was made from. For predictions.
        #[serde(skip_serializing_if = "Option::is_none")]
        owner: Option<Object>,
        /// Where requests are sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        targets: Option<Vec<Target>>,
        /// An answer in place of targets. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        redirect: Option<Redirect>,
        /// The protocol towards targets. HTTP and HTTPS only.
        #[serde(skip_serializing_if = "Option::is_none")]
        forward: Option<Forward>,
        /// How a client stays with its target.
        #[serde(skip_serializing_if = "Option::is_none")]
        stickiness: Option<Stickiness>,
        /// What health checks ask of its targets.
        #[serde(skip_serializing_if = "Option::is_none")]
        probe: Option<Probe>,
    }

    /// A path with its type.
    pub(super) struct TypedPath {
        /// The path.
        path: HttpPath,
        /// How it is compared.
        #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
        kind: Option<PathType>,
    }

    /// An object of a cluster.
    pub(super) struct Object {
        /// Its kind.
        kind: String,
        /// Its namespace.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// Its name.
        name: String,
    }

    /// A target with its weight.
    pub(super) struct WeightedTarget {
        /// Its address and port.
        address: Socket,
        /// Its weight; 0 receives nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
        weight: Option<u32>,
        /// The node whose port it is. For predictions.
        #[serde(skip_serializing_if = "Option::is_none")]
        node_port: Option<String>,
        /// The pod that it is. For predictions.
        #[serde(skip_serializing_if = "Option::is_none")]
        pod: Option<Names>,
        /// The pod's node. For predictions.
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<String>,
    }

    /// An answer that sends clients elsewhere.
    pub(super) struct Redirect {
        /// The status code.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(extend("enum" = [301, 302, 307, 308, null])))]
        status: Option<u16>,
        /// Whether the new URL begins with https.
        #[serde(skip_serializing_if = "Option::is_none")]
        tls: Option<bool>,
        /// Its host; that of the request where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<Host>,
        /// Its port; 443 with TLS, else 80.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65535)))]
        port: Option<u16>,
        /// Its path; that of the request where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<HttpPath>,
    }

    /// By its address.
    pub(super) struct BySource {
        /// For so long after its latest connection.
        source: Time,
    }

    /// By a cookie that the load balancer sets. HTTP and HTTPS only.
    pub(super) struct ByCookie {
        /// The cookie's name.
        #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[A-Za-z0-9._-]+$")))]
        cookie: String,
        /// Its age at most, in whole seconds; the client's session where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_age: Option<Time>,
    }

    /// A request.
    pub(super) struct HttpProbe {
        /// The request.
        http: HttpRequest,
    }

    /// A request of a health check.
    pub(super) struct HttpRequest {
        /// `HEAD` or `GET`.
        #[serde(skip_serializing_if = "Option::is_none")]
        method: Option<Method>,
        /// The path.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<HttpPath>,
        /// The host; the target's address where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        host: Option<String>,
        /// The classes of status codes that count as healthy: 2 is 200 to 299.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        codes: Option<Vec<CodeClass>>,
    }

    /// Bytes that are sent, and how the answer begins.
    pub(super) struct ExchangeProbe {
        /// The bytes.
        exchange: Exchange,
    }

    /// Bytes that are sent, and how the answer begins.
    pub(super) struct Exchange {
        /// What is sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        send: Option<Bytes>,
        /// What the answer begins with.
        #[serde(skip_serializing_if = "Option::is_none")]
        expect: Option<Bytes>,
    }
}

/// How a listener decides.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct Profile {
    /// The source that targets see: `kept`, the client's own, or a range of the load balancer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<Seen>,
    /// Whether a client is never sent to a target with its own address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) avoids_client: Option<bool>,
    /// How long a connection to a target may take to open. Not for TCP and UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connect_timeout: Option<Time>,
    /// Whether another target is tried where that is safe. Not for TCP and UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_target: Option<bool>,
    /// How a target is selected: in turns by weight, the fewest connections, or by a hash of the
    /// client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scheduler: Option<Scheduler>,
    /// Whether all targets count as alive when none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) all_dead_all_alive: Option<bool>,
    /// The percentage of alive targets at or below which all count as alive.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 99)))]
    pub(super) panic_threshold: Option<u8>,
    /// The health check, or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) health_check: Option<OrNone<HealthCheck>>,
    /// What failing requests do to a target, or `none`. Not for TCP and UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) passive_check: Option<OrNone<PassiveCheck>>,
}

/// A listener.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Listener {
    /// Its port.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65535)))]
    pub(super) port: u16,
    /// Its protocol.
    pub(super) protocol: ListenerProtocol,
    /// The name of its profile, and fields that may stand on the listener too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<NamedProfile>,
    #[serde(flatten)]
    pub(super) fields: Profile,
    /// The certificates that TLS ends with, chosen by the name that a client asks for. Without
    /// any, the process makes one. TCP_SSL and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) certificates: Option<Vec<Certificate>>,
    /// Clients whose connections begin with a PROXY header. Not for UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proxy_from: Option<Vec<Network>>,
    /// The PROXY header that connections to targets begin with. Not for UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proxy_to: Option<ProxyVersion>,
    /// What connections and requests may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limits: Option<Limits>,
    /// How long things may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timeouts: Option<Timeouts>,
    /// Connections to targets that are kept open. HTTP and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) keepalive: Option<Keepalive>,
    /// Whether clients may speak HTTP/2. HTTP and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) http2: Option<bool>,
    /// The host whose rules serve requests for hosts that no rule is for. HTTP and HTTPS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) default_host: Option<Host>,
    /// The targets of a listener with a single rule for everything, in place of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) targets: Option<Vec<Target>>,
    /// Its rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rules: Option<Vec<Rule>>,
}

/// Something, or `none`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(untagged)]
pub(super) enum OrNone<T> {
    /// `none`.
    None(NoneWord),
    /// It is there.
    Some(T),
}

/// A path: a text is a prefix.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum RulePath {
    /// A prefix, element by element.
    #[expect(dead_code, reason = "read, and not written")]
    Prefix(HttpPath),
    /// With its type.
    Typed(TypedPath),
}

/// A target: an address and port is one of weight 10.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum Target {
    /// Of weight 10.
    #[expect(dead_code, reason = "read, and not written")]
    Address(Socket),
    /// With its weight.
    Weighted(WeightedTarget),
}

/// How a client stays with its target.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum Stickiness {
    /// By its address.
    Source(BySource),
    /// By a cookie.
    Cookie(ByCookie),
}

/// What a health check asks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum Probe {
    /// `tcp`: a connection. `udp`: a datagram and an echo request.
    Transport(TransportWord),
    /// A request.
    Http(HttpProbe),
    /// Bytes that are sent, and how the answer begins.
    Exchange(ExchangeProbe),
}
