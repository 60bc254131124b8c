//! Reasons why a load balancer or a listener is not served, worded for tenants: the texts name no
//! machine, no other tenant's resources, and no detail of the data plane's setup.
//!
//! The API shows a reason in two places: the task of the write fails with its text, and the load
//! balancer or listener has the flag [`Unserved::flag`] for as long as it is not served.

use std::net::{IpAddr, SocketAddr};

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

    /// Returns the reason that a data plane's message on a refused load balancer gives.
    pub fn of_refusal(message: &str) -> Self {
        let has = |part: &str| message.contains(part);
        match () {
            () if has("cannot send the health checks") => Self::NoProbeSource,
            () if has("cannot set up layer 4") || has("cannot start layer 4") => Self::NoLayer4,
            () if has("cannot listen on") && has("not available") => Self::NoAddress,
            () if has("cannot listen on") && has("assign requested address") => Self::NoAddress,
            () if has("cannot listen on") && has("in use") => Self::PortInUse,
            () if has("takes no certificates") => Self::NoCertificates,
            () => Self::Refused,
        }
    }

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

/// Returns the failure text of the task of a refused load balancer with these addresses. Names the
/// address that could not be listened on only if it is the load balancer's own.
pub fn refusal(message: &str, own: &[IpAddr]) -> String {
    let why = Unserved::of_refusal(message);
    let listened = message.split("cannot listen on ").nth(1);
    let listened = listened.and_then(|rest| rest.split_whitespace().next());
    let listened =
        listened.and_then(|address| address.trim_end_matches(':').parse::<SocketAddr>().ok());
    match listened.filter(|address| own.contains(&address.ip())) {
        Some(address) => format!("it cannot listen on {address}: {}", why.words()),
        None => why.words().to_owned(),
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

    #[test]
    fn tenants_learn_why_and_nothing_of_the_data_plane() {
        let own = ["127.10.0.1".parse().unwrap()];
        for (message, expected) in [
            (
                "cannot listen on 127.10.0.1:80 of lb-1: Address already in use (os error 98)",
                "it cannot listen on 127.10.0.1:80: another program has one of its ports on the \
                 data plane",
            ),
            (
                "cannot listen on 10.9.9.9:80, the admin address: Address already in use (os error 98)",
                "another program has one of its ports on the data plane",
            ),
            (
                "cannot listen on 127.10.0.1:80: Cannot assign requested address (os error 99)",
                "it cannot listen on 127.10.0.1:80: the data plane does not have its address",
            ),
            (
                "cannot send the health checks of 127.10.0.1:80 from 100.64.0.1: Cannot assign \
                 requested address (os error 99)",
                "the data plane does not have the address that its health checks come from",
            ),
            (
                "cannot set up layer 4: Operation not permitted (os error 1)",
                "the data plane cannot serve TCP and UDP",
            ),
            (
                "/var/lib/keys/secret.pem: no such file, says http://10.0.0.1:9900",
                "the data plane refuses it; its operator can see why",
            ),
            ("", "the data plane refuses it; its operator can see why"),
        ] {
            assert_eq!(refusal(message, &own), expected, "{message}");
        }
    }
}
