//! The codes of findings: stable, one for each thing that people have to act on.

use std::fmt;
use std::str::FromStr;

use uturn_model::route::StepKind;
use uturn_model::{Kind, Mechanism, Verdict};
use uturn_path::is_unseen;

/// What a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u16);

impl Code {
    /// The Ingress turns its client's request back into the client's own node.
    pub const INGRESS_LOOPBACK: Self = Self(101);
    /// The Service's load balancer does.
    pub const SERVICE_LOOPBACK: Self = Self(102);
    /// A bridge shows answers to no rule that would translate them back.
    pub const REPLY_UNSEEN: Self = Self(603);

    /// All of them, with what they are called.
    pub const ALL: [(Self, &'static str); 28] = [
        (Self(101), "Ingress loopback"),
        (Self(102), "Service loopback"),
        (Self(103), "no candidate"),
        (Self(104), "local source dropped"),
        (Self(105), "reverse-path filter"),
        (Self(106), "TLS bypassed"),
        (Self(107), "load balancer bypassed"),
        (Self(201), "probe blackhole"),
        (Self(202), "prevent-loopback unheard"),
        (Self(203), "load balancer without targets"),
        (Self(204), "policy Local with every node registered"),
        (Self(205), "two owners of one listener"),
        (Self(206), "healthy target set aside"),
        (Self(311), "Service without endpoints"),
        (Self(312), "wrong port"),
        (Self(313), "named port missing"),
        (Self(401), "no rule for this host and path"),
        (Self(402), "backend missing"),
        (Self(501), "name not found"),
        (Self(601), "node firewall"),
        (Self(602), "rules missing on a node"),
        (Self(603), "answers that no rule sees"),
        (Self(701), "no route"),
        (Self(702), "security group"),
        (Self(703), "no bandwidth to the internet"),
        (Self(704), "nodes cannot reach each other's pods"),
        (Self(901), "not looked at"),
        (Self(902), "not judged"),
    ];

    /// The code for a mechanism that hits clients of a kind of object.
    pub fn of(mechanism: Mechanism, target: Kind) -> Self {
        match mechanism {
            Mechanism::AsymmetricReturn if target == Kind::Ingress => Self::INGRESS_LOOPBACK,
            Mechanism::AsymmetricReturn => Self::SERVICE_LOOPBACK,
            Mechanism::NoCandidate => Self(103),
            Mechanism::LocalSourceDrop => Self(104),
            Mechanism::ReversePathFilter => Self(105),
            Mechanism::TlsBypassed => Self(106),
            Mechanism::ProbeBlackhole => Self(201),
            Mechanism::NoEndpoint => Self(311),
            Mechanism::WrongPort => Self(312),
            Mechanism::NoRuleForPath => Self(401),
            Mechanism::NameUnresolved => Self(501),
            Mechanism::Firewall => Self(601),
            Mechanism::RuleMissing => Self(602),
            Mechanism::NoRoute => Self(701),
            Mechanism::SecurityGroup => Self(702),
            Mechanism::NoBandwidth => Self(703),
            Mechanism::CrossNode => Self(704),
            Mechanism::NotModelled | Mechanism::NotGiven => Self(902),
        }
    }

    /// The codes for what goes wrong in a verdict, told with its steps.
    pub fn of_verdict(verdict: &Verdict, target: Kind) -> Vec<Self> {
        let is_unseen = Self::is_reply_unseen(verdict);
        verdict.mechanisms.iter().map(|one| Self::of_reply(*one, target, is_unseen)).collect()
    }

    /// The code for a mechanism, where it is known whether a bridge shows answers to no rule.
    pub(crate) fn of_reply(mechanism: Mechanism, target: Kind, is_unseen: bool) -> Self {
        match mechanism {
            Mechanism::AsymmetricReturn if is_unseen => Self::REPLY_UNSEEN,
            _ => Self::of(mechanism, target),
        }
    }

    /// Whether answers go astray because a bridge shows them to no rule.
    pub(crate) fn is_reply_unseen(verdict: &Verdict) -> bool {
        let hops = verdict.routes.iter().flat_map(|route| &route.hops);
        let mut steps = hops.flat_map(|hop| &hop.steps);
        steps.any(|step| step.kind == StepKind::Turn && is_unseen(&step.by))
    }

    pub(crate) const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Codes that say less of the same object: this one is put in their place.
    pub(crate) fn replaces(self) -> &'static [Self] {
        match self.0 {
            203 => &[Self(103), Self(311)],
            313 => &[Self(311), Self(312)],
            402 => &[Self(103), Self(311)],
            _ => &[],
        }
    }

    /// Whether it is about what a load balancer does: UT1xx and UT2xx.
    pub(crate) fn is_of_balancer(self) -> bool {
        self.0 < 300
    }

    /// What it is called.
    pub fn title(self) -> &'static str {
        Self::ALL.into_iter().find(|(code, _)| *code == self).map_or("", |(_, title)| title)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("UT{}", self.0))
    }
}

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .map(|(code, _)| code)
            .find(|code| code.to_string().eq_ignore_ascii_case(text))
            .ok_or(UnknownCode)
    }
}

/// The text is no code of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCode;

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a code of a finding")
    }
}

impl std::error::Error for UnknownCode {}

/// How much harm is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Nobody is hurt yet.
    Warning,
    /// Somebody's calls fail or take seconds.
    Error,
}

impl Severity {
    /// As the command line spells it.
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
