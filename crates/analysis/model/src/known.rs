//! Values with the reason for believing them, and assumptions about what is not known.

use std::fmt;

use crate::{NamespacedName, Origin, Text};

/// A value with the reason for believing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<T> {
    /// The value.
    pub value: T,
    /// The reason for believing it.
    pub basis: Basis,
}

/// The reason for believing a value, from the most to the least reliable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Stated in the input.
    Stated(Origin),
    /// Derived from the input; the text states from what.
    Derived(Text),
    /// Not stated: the usual value for such clusters; the text states why.
    Supposed(Text),
}

impl<T> Known<T> {
    /// Makes a value that is stated at `origin`.
    pub fn stated(value: T, origin: Origin) -> Self {
        Self { value, basis: Basis::Stated(origin) }
    }

    /// Makes a value that is derived from the input.
    pub fn derived(value: T, from: impl Into<Text>) -> Self {
        Self { value, basis: Basis::Derived(from.into()) }
    }

    /// Makes an assumed value.
    pub fn supposed(value: T, because: impl Into<Text>) -> Self {
        Self { value, basis: Basis::Supposed(because.into()) }
    }

    /// Returns whether the value is assumed rather than stated.
    pub fn is_supposed(&self) -> bool {
        matches!(self.basis, Basis::Supposed(_))
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stated(origin) => origin.fmt(f),
            Self::Derived(from) => write!(f, "from {from}"),
            Self::Supposed(because) => write!(f, "supposed: {because}"),
        }
    }
}

/// An assumption about something that is not stated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Assumption {
    /// The subject: `kube-proxy mode`.
    pub subject: AssumptionSubject,
    /// The assumed value: `iptables`.
    pub assumed: Text,
    /// The reason for the assumption.
    pub because: Text,
    /// The way to replace it by a fact: `state spec.kubeProxy.mode in Facts`.
    pub settle: Text,
}

/// The subject of an assumption. Findings may depend on those that have a variant of their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AssumptionSubject {
    /// A part of the input that is not read, or has no effect: `a.yaml:1:1: Service web is defined
    /// more than once`.
    Input(Text),
    /// A part of the cluster: `kube-proxy mode`.
    Named(Text),
    /// The behaviour of load balancers of this profile.
    BalancerBehaviour(Text),
    /// Whether the pods of a Service expect a PROXY header; `None` for a Service that is not named.
    ProxyHeader {
        /// The Service.
        service: Option<NamespacedName>,
        /// Whether they are assumed to expect one.
        is_expected: bool,
    },
    /// The target that a client gets from the load balancers of this profile, if they pick by a
    /// hash of its address.
    PickByHash(Text),
    /// A rule that is not modelled: it is walked both ways, half and half.
    RuleWalkedBothWays,
    /// A rule that is not modelled, and decides how calls end.
    RuleThatDecides,
}

impl From<&str> for AssumptionSubject {
    fn from(text: &str) -> Self {
        Self::Named(text.into())
    }
}

impl From<Text> for AssumptionSubject {
    fn from(text: Text) -> Self {
        Self::Named(text)
    }
}

impl From<String> for AssumptionSubject {
    fn from(text: String) -> Self {
        Self::Named(text.into())
    }
}

impl fmt::Display for AssumptionSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text) | Self::Named(text) => f.write_str(text),
            Self::BalancerBehaviour(profile) => {
                write!(f, "how the load balancer behaves: {profile}")
            }
            Self::ProxyHeader { service: Some(service), .. } => {
                write!(f, "whether the pods of svc/{service} expect a PROXY header")
            }
            Self::ProxyHeader { service: None, .. } => {
                f.write_str("whether the pods of the Service expect a PROXY header")
            }
            Self::PickByHash(profile) => write!(f, "which target a client gets from {profile}"),
            Self::RuleWalkedBothWays => f.write_str("a rule that uturn does not model"),
            Self::RuleThatDecides => f.write_str("a rule that decides"),
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}; {})", self.subject, self.assumed, self.because, self.settle)
    }
}
