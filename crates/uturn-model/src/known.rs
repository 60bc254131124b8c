//! What is known, and how; what is not, and what would settle it.

use std::fmt;

use crate::{Origin, Text};

/// A value with the ground it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<T> {
    /// The value.
    pub value: T,
    /// Why it is believed.
    pub basis: Basis,
}

/// Why a value is believed, from the surest to the least sure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Somebody wrote it down.
    Stated(Origin),
    /// It follows from something that was written down; the text says from what.
    Derived(Text),
    /// Nothing says it: it is what such clusters usually have; the text says why.
    Supposed(Text),
}

impl<T> Known<T> {
    /// Written down at `origin`.
    pub fn stated(value: T, origin: Origin) -> Self {
        Self { value, basis: Basis::Stated(origin) }
    }

    /// Follows from something that was written down.
    pub fn derived(value: T, from: impl Into<Text>) -> Self {
        Self { value, basis: Basis::Derived(from.into()) }
    }

    /// Nothing says it.
    pub fn supposed(value: T, because: impl Into<Text>) -> Self {
        Self { value, basis: Basis::Supposed(because.into()) }
    }

    /// Whether nothing says it.
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

/// Something that nothing said and that was taken for true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Supposition {
    /// What it is about: `kube-proxy mode`.
    pub about: Text,
    /// What was taken for true: `iptables`.
    pub taken: Text,
    /// Why that and nothing else.
    pub because: Text,
    /// What would settle it: `state spec.kubeProxy.mode in Facts`.
    pub settle: Text,
}

impl fmt::Display for Supposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({}; {})", self.about, self.taken, self.because, self.settle)
    }
}
