//! The codes of findings. They are stable, one for each fault that people have to act on.
//!
//! Only the table below knows the numbers. A new code is one entry in it and one page in `pages/`,
//! named after the number.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use uturn_model::route::StepKind;
use uturn_model::shell::Command;
use uturn_model::{Mechanism, ObjectKind, Verdict};
use uturn_path::is_unseen;

/// Writes [`Code`] and its table. An entry has the number, the title and the severity of a code,
/// then the mechanisms that the code stands for (`for`), and the less specific codes about the same
/// object that it replaces (`replaces`).
macro_rules! codes {
    ($(
        #[doc = $doc:literal]
        $code:ident = $number:literal, $title:literal, $severity:ident
        $(, for $($mechanism:ident)+)?
        $(, replaces $($less:ident)+)?;
    )*) => {
        /// The code of a finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $doc] $code,)*
        }

        /// An entry for each code, in the order of the codes.
        const TABLE: &[Entry] = &[$(Entry {
            code: Code::$code,
            name: concat!("UT", $number),
            title: $title,
            severity: Severity::$severity,
            page: include_str!(concat!("../pages/UT", $number, ".md")),
            mechanisms: &[$($(Mechanism::$mechanism,)+)?],
            replaces: &[$($(Code::$less,)+)?],
        },)*];
    };
}

codes! {
    /// An Ingress sends a request back to the node of its own client.
    IngressLoopback = 101, "Ingress loopback", Error, for AsymmetricReturn;
    /// The load balancer of a Service sends a request back to the node of its own client.
    ServiceLoopback = 102, "Service loopback", Error, for AsymmetricReturn;
    /// A load balancer may pick none of its targets.
    NoCandidate = 103, "no candidate", Error, for NoCandidate;
    /// A node drops packets whose source is an address of its own.
    LocalSourceDropped = 104, "local source dropped", Error, for LocalSourceDrop;
    /// A node drops packets that arrive on another interface than replies would leave by.
    ReversePathFilter = 105, "reverse-path filter", Error, for ReversePathFilter;
    /// Calls bypass the load balancer that would have ended TLS.
    TlsBypassed = 106, "TLS bypassed", Error, for TlsBypassed;
    /// Calls bypass a load balancer that would have done something to them.
    BalancerBypassed = 107, "load balancer bypassed", Info;
    /// A server expects the PROXY header of a load balancer that calls bypass.
    ProxyHeaderLost = 108, "PROXY header lost", Error, for ProxyHeader;
    /// A load balancer hands on packets with its own address to nodes that do not know it.
    VipUnknown = 109, "load balancer's address unknown to its nodes", Error, for VipUnknown;
    /// Health checks get no answer from healthy targets.
    ProbeBlackhole = 201, "probe blackhole", Warning, for ProbeBlackhole;
    /// kube-proxy does not know the annotation that asks it to prevent loopback.
    RequestUnheard = 202, "prevent-loopback has no effect", Warning;
    /// A load balancer has no targets.
    NoTargets = 203, "load balancer without targets", Error, for NoTarget, replaces NoCandidate NoEndpoints;
    /// Nodes without an endpoint are targets although the policy is Local.
    AllNodesRegistered = 204, "policy Local with every node registered", Info;
    /// Two Services claim one listener.
    TwoOwners = 205, "two owners of one listener", Warning;
    /// A load balancer ejects a healthy target because calls of one client fail.
    HealthyTargetEjected = 206, "healthy target ejected", Warning;
    /// Health checks ask for what no healthy target answers.
    CheckCannotPass = 207, "health check that cannot pass", Warning, replaces NoCandidate;
    /// A load balancer has an address in a zone without a target.
    ZoneWithoutTarget = 208, "zone without a target", Warning;
    /// The load balancer of a Service has no address yet.
    Pending = 209, "load balancer without an address", Error;
    /// A Service has an address that belongs to a node or to another load balancer.
    AddressTaken = 210, "address that belongs to another machine", Error, for AddressTaken;
    /// A Service has no endpoints.
    NoEndpoints = 311, "Service without endpoints", Warning, for NoEndpoint;
    /// No process listens on the port.
    WrongPort = 312, "wrong port", Error, for WrongPort;
    /// No selected pod has a port of that name.
    NamedPortMissing = 313, "named port missing", Error, replaces NoEndpoints WrongPort;
    /// kube-proxy does not serve node ports at loopback addresses.
    NotOnLoopback = 314, "node port not served on loopback", Warning, for NotOnLoopback;
    /// A Service has addresses of one family, although nodes and its pods have both.
    OneFamily = 315, "Service of one family", Info;
    /// No rule of an Ingress matches the host and path.
    NoRuleForPath = 401, "no rule for this host and path", Error, for NoRuleForPath;
    /// An Ingress leads to a Service or port that does not exist.
    BackendMissing = 402, "backend missing", Error, replaces NoCandidate NoEndpoints;
    /// No controller serves an Ingress.
    IngressIgnored = 403, "Ingress that nothing serves", Error;
    /// A Gateway of a mesh opens no port that a Service leads to.
    GatewayOpensNothing = 404, "Gateway that opens no port", Error;
    /// A name has no address.
    NameNotFound = 501, "name not found", Error, for NameUnresolved;
    /// A name leads elsewhere than to the object that has it.
    NameElsewhere = 502, "name that leads elsewhere", Error;
    /// A rule of a node's own firewall stops packets.
    NodeFirewall = 601, "node firewall", Error, for Firewall;
    /// A node lacks the rules of a Service.
    RulesMissing = 602, "rules missing on a node", Error, for RuleMissing;
    /// A bridge passes replies without the rules that would translate them back.
    ReplyUnseen = 603, "answers that no rule sees", Error, for AsymmetricReturn;
    /// A node does not forward packets.
    NotForwarding = 604, "the node does not forward", Error;
    /// A node's rules lead to other endpoints than the cluster has.
    EndpointsDiffer = 605, "other endpoints than the cluster's", Error;
    /// A node has rules of a Service that is gone.
    StaleService = 606, "rules of a Service that is gone", Warning;
    /// Two kube-proxies have left rules on a node.
    TwoKubeProxies = 607, "rules of two kube-proxies", Warning;
    /// kube-proxy runs in another mode than the one it is configured for.
    OtherMode = 608, "kube-proxy in another mode", Warning;
    /// The device of IPVS mode has other addresses than the cluster's Services.
    BoundAddresses = 609, "other addresses on kube-ipvs0", Error;
    /// A sysctl that kube-proxy sets has another value.
    KernelSetting = 610, "a sysctl that kube-proxy sets differs", Warning;
    /// Connection tracking has no room for more connections, or nearly none.
    ConntrackFull = 611, "connection tracking is nearly full", Warning;
    /// A node's agent masquerades other traffic than Facts state.
    MasqueradeDiffers = 612, "masqueraded otherwise than stated", Warning;
    /// A bridge does not send a pod's frames back to it.
    HairpinOff = 613, "hairpin mode off", Error, for HairpinOff;
    /// Nothing forwards a port of the node to the pod that asks for it.
    HostPortOff = 614, "host port that nothing forwards", Error, for HostPortOff;
    /// A kube-proxy takes itself for that of another node.
    ProxyNamedOther = 615, "kube-proxy under another node's name", Error;
    /// kube-proxy's own filter rejects an address of a Service.
    ProxyFilter = 616, "kube-proxy's own filter", Error, for ProxyFilter;
    /// No route leads to the destination.
    NoRoute = 701, "no route", Error, for NoRoute;
    /// A security group stops packets.
    SecurityGroup = 702, "security group", Error, for SecurityGroup;
    /// A node has no bandwidth to the internet.
    NoBandwidth = 703, "no bandwidth to the internet", Error, for NoBandwidth;
    /// Nodes cannot reach each other's pods.
    CrossNode = 704, "nodes cannot reach each other's pods", Error, for CrossNode;
    /// NetworkPolicies forbid a call.
    NetworkPolicy = 705, "call that a NetworkPolicy forbids", Error, for NetworkPolicy;
    /// A node is down, and calls lead to it.
    NodeDown = 706, "node that is down", Error, for NodeDown;
    /// The API server cannot call a webhook or an API that a Service has to serve.
    ApiServerCallFails = 801, "call of the API server fails", Error;
    /// Flows that were not walked because the cluster is too large.
    NotExamined = 901, "not checked", Info;
    /// Flows that have no verdict because something is not given or not modelled.
    NotJudged = 902, "not judged", Info, for NotModelled NotGiven;
}

/// The table entry of a code.
struct Entry {
    code: Code,
    name: &'static str,
    title: &'static str,
    severity: Severity,
    page: &'static str,
    mechanisms: &'static [Mechanism],
    replaces: &'static [Code],
}

impl Code {
    /// Iterates over all codes, in the order of the numbers.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        TABLE.iter().map(|entry| entry.code)
    }

    /// Returns the code for a mechanism that affects clients of a kind of object.
    pub fn of(mechanism: Mechanism, target: ObjectKind) -> Self {
        if mechanism == Mechanism::AsymmetricReturn && target != ObjectKind::Ingress {
            return Self::ServiceLoopback;
        }
        let entry = TABLE.iter().find(|entry| entry.mechanisms.contains(&mechanism));
        entry.expect("a test finds a code for each mechanism").code
    }

    /// Returns the code for health checks that fail by these mechanisms. Checks that can never pass
    /// are distinguished from those that get lost.
    pub(crate) fn of_checks(mechanisms: &[Mechanism]) -> Self {
        match mechanisms {
            [Mechanism::ProxyHeader | Mechanism::NoRuleForPath] => Self::CheckCannotPass,
            _ => Self::ProbeBlackhole,
        }
    }

    /// Returns the codes for the failures in a verdict that has its steps.
    pub fn of_verdict(verdict: &Verdict, target: ObjectKind) -> Vec<Self> {
        let is_unseen = Self::is_reply_unseen(verdict);
        let mechanisms = verdict.mechanisms.iter();
        mechanisms.map(|mechanism| Self::of_reply(*mechanism, target, is_unseen)).collect()
    }

    /// Returns the code for a mechanism, if it is known whether a bridge hides replies from rules.
    pub(crate) fn of_reply(mechanism: Mechanism, target: ObjectKind, is_unseen: bool) -> Self {
        match mechanism {
            Mechanism::AsymmetricReturn if is_unseen => Self::ReplyUnseen,
            _ => Self::of(mechanism, target),
        }
    }

    /// Returns whether replies bypass the load balancer because a bridge hides them from rules.
    pub(crate) fn is_reply_unseen(verdict: &Verdict) -> bool {
        let hops = verdict.routes.iter().flat_map(|route| &route.hops);
        let mut steps = hops.flat_map(|hop| &hop.steps);
        steps.any(|step| step.kind == StepKind::Turn && is_unseen(&step.by))
    }

    /// Returns the name of the code: `UT101`.
    pub fn as_str(self) -> &'static str {
        self.entry().name
    }

    /// Returns the title of the code.
    pub fn title(self) -> &'static str {
        self.entry().title
    }

    /// Returns the usual severity of findings with this code.
    pub fn severity(self) -> Severity {
        self.entry().severity
    }

    /// Returns the page that explains the code.
    pub fn page(self) -> &'static str {
        self.entry().page
    }

    /// Returns the mechanisms that the code stands for.
    pub fn mechanisms(self) -> &'static [Mechanism] {
        self.entry().mechanisms
    }

    /// Returns the less specific codes about the same object that this code replaces.
    pub fn replaces(self) -> &'static [Self] {
        self.entry().replaces
    }

    /// Returns the command that prints the code's page.
    pub fn explain(self) -> Command {
        Command::new("uturn explain").value(self)
    }

    fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::all().find(|code| code.as_str().eq_ignore_ascii_case(text)).ok_or(UnknownCode)
    }
}

/// The error that a text is not the code of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a code of a finding")]
pub struct UnknownCode;

/// How severe a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// No call fails yet.
    Warning,
    /// Calls fail or take seconds.
    Error,
}

impl Severity {
    /// Returns the severity as the command line spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_in_the_order_of_codes_and_numbers() {
        for (at, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.code as usize, at);
        }
        assert!(TABLE.is_sorted_by(|entry, next| entry.name < next.name));
        assert_eq!(Code::IngressLoopback.to_string(), "UT101");
        assert_eq!("ut603".parse(), Ok(Code::ReplyUnseen));
        assert_eq!("UT999".parse::<Code>(), Err(UnknownCode));
    }

    #[test]
    fn each_mechanism_has_one_code() {
        for mechanism in Mechanism::ALL {
            let codes: Vec<Code> =
                Code::all().filter(|code| code.mechanisms().contains(&mechanism)).collect();
            match mechanism {
                Mechanism::AsymmetricReturn => assert_eq!(
                    codes,
                    [Code::IngressLoopback, Code::ServiceLoopback, Code::ReplyUnseen]
                ),
                _ => assert_eq!(codes, [Code::of(mechanism, ObjectKind::Service)], "{mechanism}"),
            }
        }
        let of_ingress = Code::of(Mechanism::AsymmetricReturn, ObjectKind::Ingress);
        assert_eq!(of_ingress, Code::IngressLoopback);
    }

    /// A code that replaces others is not replaced itself, so one pass is enough.
    #[test]
    fn what_replaces_is_not_replaced() {
        for code in Code::all() {
            for less in code.replaces() {
                assert!(less.replaces().is_empty(), "{code} replaces {less}");
            }
        }
    }
}
