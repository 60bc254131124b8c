//! Rules and targets, and what health checks ask.

use serde::Serialize;

use super::values::*;

documents! {
    /// Which requests, and what becomes of them.
    pub(in crate::load_balancer) struct Rule {
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
    pub(in crate::load_balancer) struct TypedPath {
        /// The path.
        path: RulePathText,
        /// How it is compared.
        #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
        kind: Option<PathType>,
    }

    /// An object of a cluster.
    pub(in crate::load_balancer) struct Object {
        /// Its kind.
        kind: String,
        /// Its namespace.
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// Its name.
        name: String,
    }

    /// A target with its weight.
    pub(in crate::load_balancer) struct WeightedTarget {
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
    pub(in crate::load_balancer) struct Redirect {
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
    pub(in crate::load_balancer) struct BySource {
        /// For so long after its latest connection.
        source: Time,
    }

    /// By a cookie that the load balancer sets. HTTP and HTTPS only.
    pub(in crate::load_balancer) struct ByCookie {
        /// The cookie's name.
        #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[A-Za-z0-9._-]+$")))]
        cookie: String,
        /// Its age at most, in whole seconds; the client's session where it is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_age: Option<Time>,
    }

    /// A request.
    pub(in crate::load_balancer) struct HttpProbe {
        /// The request.
        http: HttpRequest,
    }

    /// A request of a health check.
    pub(in crate::load_balancer) struct HttpRequest {
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
    pub(in crate::load_balancer) struct ExchangeProbe {
        /// The bytes.
        exchange: Exchange,
    }

    /// Bytes that are sent, and how the answer begins.
    pub(in crate::load_balancer) struct Exchange {
        /// What is sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        send: Option<Bytes>,
        /// What the answer begins with.
        #[serde(skip_serializing_if = "Option::is_none")]
        expect: Option<Bytes>,
    }
}

/// A path: a text is a prefix.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(in crate::load_balancer) enum RulePath {
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
pub(in crate::load_balancer) enum Target {
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
pub(in crate::load_balancer) enum Stickiness {
    /// By its address.
    Source(BySource),
    /// By a cookie.
    Cookie(ByCookie),
}

/// What a health check asks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(in crate::load_balancer) enum Probe {
    /// `tcp`: a connection. `udp`: a datagram and an echo request.
    Transport(TransportWord),
    /// A request.
    Http(HttpProbe),
    /// Bytes that are sent, and how the answer begins.
    Exchange(ExchangeProbe),
}
