//! Single values as they are written, each with the pattern that a schema has for it.

use serde::{Serialize, Serializer};

macro_rules! texts {
    ($($(#[doc = $doc:literal])* $name:ident $pattern:literal)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(extend("pattern" = $pattern)))]
        #[serde(transparent)]
        pub(in crate::load_balancer) struct $name(pub(in crate::load_balancer) String);
    )*};
}

texts! {
    /// A time: `500ms`, `4s`, `15m`.
    Time r"^[0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h)$"
    /// An IP address.
    Address r"^[0-9A-Fa-f:.]+$"
    /// An address with a port: `10.0.0.11:30080`, `[fd00::1]:30080`.
    Socket r"^([0-9.]+|\[[0-9A-Fa-f:.]+(%[0-9]+)?\]):[0-9]+$"
    /// A range of addresses, or one.
    Network r"^[0-9A-Fa-f:.]+(/[0-9]+)?$"
    /// `kept`, or a range such as `100.127.0.0/16`.
    Seen r"^(kept|[0-9A-Fa-f:.]+/[0-9]+)$"
    /// `vip`, `reserved`, or a range such as `100.64.0.0/10`.
    ProbeWord r"^(vip|reserved|[0-9A-Fa-f:.]+/[0-9]+)$"
    /// A host: a name, `*.` and a name, an IPv6 address in brackets, or a regular expression after
    /// `~`.
    Host r"^(~.+|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])$"
    /// A path that begins with `/`.
    HttpPath r"^/[!-\x22$-~]*$"
    /// The path of a rule: it begins with `/`, or is of the type `ImplementationSpecific`, where it
    /// may be a regular expression after `~` or `~*`, or a prefix after `^~`.
    RulePathText r"^(/[!-\x22$-~]*|(~|\^~).*)$"
    /// `NAMESPACE/NAME`.
    Names r"^[^/]+/[^/]+$"
    /// `all`, or a range of addresses.
    Peer r"^([aA][lL][lL]|[0-9A-Fa-f:.]+(/[0-9]+)?)$"
    /// `tcp`, `udp`, `sctp` or `all`.
    ProtocolWord r"^([tT][cC][pP]|[uU][dD][pP]|[sS][cC][tT][pP]|all|ALL)$"
    /// `stdout`, `off`, or the path of a file.
    LogPlace r"^.+$"
}

macro_rules! words {
    ($($(#[doc = $doc:literal])* $name:ident { $($variant:ident = $word:literal,)* })*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub(in crate::load_balancer) enum $name {
            $(
                #[doc = concat!("`", $word, "`.")]
                #[serde(rename = $word)]
                $variant,
            )*
        }
    )*};
}

words! {
    /// What a rule of a security group does.
    Action { Accept = "accept", Drop = "drop", }
    /// Whether a load balancer is reachable from the internet.
    Scope { Private = "private", Public = "public", }
    /// The protocol of a listener.
    ListenerProtocol {
        Tcp = "TCP", Udp = "UDP", TcpSsl = "TCP_SSL", Http = "HTTP", Https = "HTTPS",
    }
    /// How a target is selected.
    Scheduler { Wrr = "WRR", LeastConn = "LEAST_CONN", IpHash = "IP_HASH", }
    /// A version of the PROXY header.
    ProxyVersion { V1 = "v1", V2 = "v2", }
    /// What becomes of headers that say who asked, and how.
    ForwardedFor { Append = "append", Replace = "replace", }
    /// The protocol towards targets.
    Forward { Http1 = "http1", H2c = "h2c", }
    /// What becomes of a path that can be written in another way.
    PathNormalizationWord { Off = "off", Merge = "merge", Reject = "reject", }
    /// How a path is compared.
    PathType {
        Exact = "Exact", Prefix = "Prefix", ImplementationSpecific = "ImplementationSpecific",
    }
    /// The method of a health check.
    Method { Head = "HEAD", Get = "GET", }
    /// What a transport has for a health check.
    TransportWord { Tcp = "tcp", Udp = "udp", }
    /// That there is none.
    NoneWord { None = "none", }
}

macro_rules! either {
    ($($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $of:literal])* $variant:ident($type:ty),)* })*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(untagged)]
        #[allow(dead_code, reason = "a schema has forms that are not written")]
        pub(in crate::load_balancer) enum $name {
            $($(#[doc = $of])* $variant($type),)*
        }
    )*};
}

either! {
    /// Where the access log goes.
    AccessLog {
        /// `off`, as YAML reads it.
        Off(False),
        /// A word or a path.
        Place(LogPlace),
    }
    /// Where the administrator is answered.
    Admin {
        /// An address alone.
        Address(Socket),
        /// An address with a token.
        Access(AdminAccess),
    }
    /// What becomes of a path that can be written in another way.
    PathNormalization {
        /// `off`, as YAML reads it.
        Off(False),
        /// A word.
        Word(PathNormalizationWord),
    }
    /// Where health checks come from.
    ProbeFrom {
        /// A word or a range.
        Word(ProbeWord),
        /// A range for each family.
        Ranges(ProbeRanges),
    }
    /// A port, a range of ports, or `all`.
    Ports {
        /// One port.
        One(u16),
        /// A range, or `all`.
        Range(PortRange),
    }
    /// A number of bytes.
    Size {
        /// In bytes.
        Bytes(u64),
        /// With a unit.
        Units(Units),
    }
    /// A class of status codes.
    CodeClass {
        /// 2 for 200 to 299.
        Number(CodeNumber),
        /// `2xx`.
        Word(CodeWord),
    }
    /// Bytes.
    Bytes {
        /// A text.
        Text(String),
        /// In hexadecimal digits.
        Hex(Hex),
    }
}

texts! {
    /// A range of ports such as `30000-32768`, or `all`.
    PortRange r"^([0-9]+(\s*-\s*[0-9]+)?|all|ALL)$"
    /// A number of bytes with a unit: `64Ki`, `10Mi`, `1Gi`.
    Units r"^[0-9]+(Ki|Mi|Gi)$"
    /// `1xx` to `5xx`.
    CodeWord r"^[1-5]xx$"
    /// Pairs of hexadecimal digits.
    Digits r"^([0-9A-Fa-f]{2})*$"
}

/// The value `false`.
#[derive(Debug)]
pub(in crate::load_balancer) struct False;

impl Serialize for False {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(false)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for False {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "False".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "const": false })
    }
}

/// A class of status codes as a number.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline, extend("minimum" = 1, "maximum" = 5)))]
#[serde(transparent)]
pub(in crate::load_balancer) struct CodeNumber(pub(in crate::load_balancer) u8);

/// The admin address, and who may read and change what is served there.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::load_balancer) struct AdminAccess {
    /// The address.
    pub(in crate::load_balancer) address: Socket,
    /// The file with the token that reading and changing the configuration takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) token_file: Option<String>,
    /// Other names by which it may be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) hosts: Option<Vec<String>>,
    /// Whether a configuration that comes over HTTP may have targets of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::load_balancer) local_targets: Option<bool>,
}

/// A range for each family of addresses.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(in crate::load_balancer) struct ProbeRanges {
    /// For IPv4.
    pub(in crate::load_balancer) v4: Network,
    /// For IPv6.
    pub(in crate::load_balancer) v6: Network,
}

/// Bytes in hexadecimal digits.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(in crate::load_balancer) struct Hex {
    /// The digits.
    pub(in crate::load_balancer) hex: Digits,
}
