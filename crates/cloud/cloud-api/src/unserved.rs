//! Reasons why a load balancer or a listener is not served, worded for tenants: the texts name no
//! machine, no other tenant's resources, and no detail of the data plane's setup.
//!
//! The API shows a reason in two places: the task of the write fails with its text, and the load
//! balancer or listener has the flag [`Unserved::flag`] for as long as it is not served.

use serde::Serialize;

/// The prefix of flags.
const FLAG: &str = "NotServed";

/// The reason why a load balancer or a listener is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Unserved {
    /// Another program listens on one of its ports.
    PortInUse,
    /// The data plane does not have its address.
    NoAddress,
    /// The data plane lacks the address that its health checks come from.
    NoProbeSource,
    /// The data plane keeps no certificates.
    NoCertificates,
    /// The data plane cannot serve TCP and UDP.
    NoLayer4,
    /// The data plane refuses it for another reason.
    Refused,
    /// No data plane can be reached.
    Unreachable,
    /// An older load balancer has the address and port.
    Conflict,
    /// Data planes cannot serve this kind of listener, or it lacks a certificate with a key.
    LeftOut,
    /// Some of its rules cannot be served.
    RuleLeftOut,
}

impl Unserved {
    const ALL: [Self; 10] = [
        Self::PortInUse,
        Self::NoAddress,
        Self::NoProbeSource,
        Self::NoCertificates,
        Self::NoLayer4,
        Self::Refused,
        Self::Unreachable,
        Self::Conflict,
        Self::LeftOut,
        Self::RuleLeftOut,
    ];

    /// Returns the flag that the API shows.
    pub fn flag(self) -> String {
        format!("{FLAG}.{}", self.name())
    }

    /// Reads a flag; `None` for a flag that is not about serving.
    pub fn of_flag(flag: &str) -> Option<Self> {
        let name = flag.strip_prefix(FLAG)?;
        if name.is_empty() {
            return Some(Self::Refused);
        }
        let name = name.strip_prefix('.')?;
        // An unknown reason comes from a later version; the resource is not served all the same.
        Some(Self::ALL.into_iter().find(|why| why.name() == name).unwrap_or(Self::Refused))
    }

    /// The flag of a load balancer some listeners of which are not served. The listeners' own flags
    /// give the reasons, but lists of load balancers do not have those.
    pub const SOME_LISTENERS: &str = "ListenersNotServed";

    /// Returns the name of the reason in flags and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::PortInUse => "PortInUse",
            Self::NoAddress => "NoAddress",
            Self::NoProbeSource => "NoProbeSource",
            Self::NoCertificates => "NoCertificates",
            Self::NoLayer4 => "NoLayer4",
            Self::Refused => "Refused",
            Self::Unreachable => "Unreachable",
            Self::Conflict => "Conflict",
            Self::LeftOut => "LeftOut",
            Self::RuleLeftOut => "RuleLeftOut",
        }
    }

    /// Returns the text for tenants.
    pub fn words(self) -> &'static str {
        match self {
            Self::PortInUse => "another program has one of its ports on the data plane",
            Self::NoAddress => "the data plane does not have its address",
            Self::NoProbeSource => {
                "the data plane does not have the address that its health checks come from"
            }
            Self::NoCertificates => "the data plane keeps no certificates",
            Self::NoLayer4 => "the data plane cannot serve TCP and UDP",
            Self::Refused => "the data plane refuses it; its operator can see why",
            Self::Unreachable => "no data plane can be reached",
            Self::Conflict => "an older load balancer has its address and port",
            Self::LeftOut => {
                "no data plane can serve this kind of listener, or it has no certificate with a \
                 private key"
            }
            Self::RuleLeftOut => "some of its rules cannot be served by a data plane",
        }
    }

    /// Returns whether the operator of the cloud has to act, not the tenant.
    pub fn is_of_data_plane(self) -> bool {
        !matches!(self, Self::Conflict | Self::LeftOut | Self::RuleLeftOut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_back() {
        for why in Unserved::ALL {
            assert_eq!(Unserved::of_flag(&why.flag()), Some(why));
        }
        assert_eq!(Unserved::of_flag("NotServed.SomethingNew"), Some(Unserved::Refused));
        assert_eq!(Unserved::of_flag("NotServed"), Some(Unserved::Refused));
        for other in ["Stop", "SnatEnable", "NotServedAtAll", Unserved::SOME_LISTENERS, ""] {
            assert_eq!(Unserved::of_flag(other), None, "{other}");
        }
    }
}
