//! Values with the reason for believing them, and assumptions about what is not known.

use std::fmt;

use crate::{Origin, Text};

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
    /// Derived from the input; the text says from what.
    Derived(Text),
    /// Not stated: the usual value for such clusters; the text says why.
    Supposed(Text),
}

impl<T> Known<T> {
    /// A value stated at `origin`.
    pub fn stated(value: T, origin: Origin) -> Self {
        Self { value, basis: Basis::Stated(origin) }
    }

    /// A value derived from the input.
    pub fn derived(value: T, from: impl Into<Text>) -> Self {
        Self { value, basis: Basis::Derived(from.into()) }
    }

    /// A supposed value.
    pub fn supposed(value: T, because: impl Into<Text>) -> Self {
        Self { value, basis: Basis::Supposed(because.into()) }
    }

    /// Whether the value is not stated.
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
    pub subject: Text,
    /// The assumed value: `iptables`.
    pub assumed: Text,
    /// The reason for the assumption.
    pub because: Text,
    /// How to replace it by a fact: `state spec.kubeProxy.mode in Facts`.
    pub settle: Text,
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}; {})", self.subject, self.assumed, self.because, self.settle)
    }
}
