//! The builds of TKE's kube-proxy, and which of them bind load-balancer addresses in IPVS mode.
//!
//! Upstream binds every address. TKE stopped this in some builds of each line, and later let a
//! Service ask for it: [`PREVENT_LOOPBACK`]. The builds in between bind no address, whatever the
//! Service asks for.

use uturn_model::{AddressBinding, Vendor, VendorBuild, Version};

use super::annotations::PREVENT_LOOPBACK;
use crate::cloud::KubeProxyBuilds;

/// The vendor's part of the versions of TKE's builds.
pub(super) const VENDOR: Vendor = Vendor::new("tke").expect("small letters");

/// The description of these builds for code outside this folder.
pub(super) static BUILDS: KubeProxyBuilds = KubeProxyBuilds {
    vendor: VENDOR,
    owner: "TKE's",
    name: "TKE's build",
    request: PREVENT_LOOPBACK,
    binding: |version| binding(version).setting(),
    first_honouring: |version| line_of(version).map(Line::first_fixed),
    samples: &["v1.22.5-tke.12", "v1.22.5-tke.13", "v1.26.1-tke.3", "v1.30.0-tke.1"],
};

/// The choice of load-balancer addresses that a build binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// All addresses, as upstream.
    Always,
    /// No address: the build does not know [`PREVENT_LOOPBACK`].
    Never,
    /// The addresses of Services with [`PREVENT_LOOPBACK`].
    OnRequest,
    /// The addresses of Services with [`PREVENT_LOOPBACK`], with a defect: a later build of the
    /// line states that it fixed this, but not what the defect was.
    OnRequestFlawed,
}

impl Binding {
    /// Returns the setting of kube-proxy. The behaviour of a build with the defect is not
    /// documented, so such a build counts as one that binds no address.
    pub fn setting(self) -> AddressBinding {
        match self {
            Self::Always => AddressBinding::All,
            Self::Never | Self::OnRequestFlawed => AddressBinding::None,
            Self::OnRequest => AddressBinding::OnRequest(PREVENT_LOOPBACK),
        }
    }
}

/// The known history of one line of builds, such as v1.22.5-tke.N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The minor number of the upstream version: 22 of v1.22.5.
    pub minor: u16,
    /// The patch number of the upstream version: 5 of v1.22.5.
    pub patch: u16,
    /// The choice of the oldest builds, and of those of earlier patches.
    pub at_first: Binding,
    /// The first build that binds no address; no line is known to have had two such periods.
    pub unbound_since: Option<u32>,
    /// The first build that correctly binds on request.
    pub on_request_since: u32,
}

impl Line {
    /// Returns the first build of the line that correctly binds on request.
    pub fn first_fixed(&self) -> Version {
        let build = VendorBuild { vendor: VENDOR, number: self.on_request_since };
        Version { vendor_build: Some(build), ..Version::new(1, self.minor, self.patch) }
    }
}

/// The lines whose history is known, oldest first.
pub const LINES: [Line; 8] = [
    line(12, 4, Binding::Always, None, 30),
    line(14, 3, Binding::Always, None, 24),
    line(16, 3, Binding::Always, Some(1), 25),
    line(18, 4, Binding::Always, Some(1), 20),
    line(20, 6, Binding::Always, Some(1), 12),
    line(22, 5, Binding::Always, Some(1), 13),
    line(24, 4, Binding::Always, Some(1), 6),
    line(28, 3, Binding::OnRequestFlawed, None, 3),
];

const fn line(
    minor: u16,
    patch: u16,
    at_first: Binding,
    unbound_since: Option<u32>,
    on_request_since: u32,
) -> Line {
    Line { minor, patch, at_first, unbound_since, on_request_since }
}

/// Returns which addresses TKE's build of this version binds.
///
/// A version without a build number counts as the newest build of its line, and so does a later
/// patch of a line. A line that is not in [`LINES`] binds on request, unless it is older than all
/// of them: then it binds every address.
pub fn binding(version: Version) -> Binding {
    let Some(line) = line_of(version) else {
        let is_older = LINES.first().is_some_and(|oldest| version.minor < oldest.minor);
        return if is_older { Binding::Always } else { Binding::OnRequest };
    };
    if version.patch < line.patch {
        return line.at_first;
    }
    let own = version.vendor_build.filter(|build| build.vendor == VENDOR);
    let own = own.filter(|_| version.patch == line.patch);
    let build = own.map_or(u32::MAX, |build| build.number);
    if build >= line.on_request_since {
        Binding::OnRequest
    } else if line.unbound_since.is_some_and(|first| build >= first) {
        Binding::Never
    } else {
        line.at_first
    }
}

/// Returns the line of a version, if its history is known.
pub fn line_of(version: Version) -> Option<&'static Line> {
    LINES.iter().find(|line| version.major == 1 && line.minor == version.minor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Binding::{Always, Never, OnRequest, OnRequestFlawed};

    #[test]
    fn every_known_build() {
        for (text, expected) in [
            ("v1.10.5-tke.9", Always),
            ("v1.12.4-tke.29", Always),
            ("v1.12.4-tke.30", OnRequest),
            ("v1.14.3-tke.23", Always),
            ("v1.14.3-tke.24", OnRequest),
            ("v1.16.3-tke.0", Always),
            ("v1.16.3-tke.1", Never),
            ("v1.16.3-tke.24", Never),
            ("v1.16.3-tke.25", OnRequest),
            ("v1.18.2-tke.7", Always),
            ("v1.18.4-tke.1", Never),
            ("v1.18.4-tke.19", Never),
            ("v1.18.4-tke.20", OnRequest),
            ("v1.20.6-tke.1", Never),
            ("v1.20.6-tke.11", Never),
            ("v1.20.6-tke.12", OnRequest),
            ("v1.22.5-tke.1", Never),
            ("v1.22.5-tke.12", Never),
            ("v1.22.5-tke.13", OnRequest),
            ("v1.22.5", OnRequest),
            ("v1.22.9-tke.1", OnRequest),
            ("v1.24.4-tke.1", Never),
            ("v1.24.4-tke.5", Never),
            ("v1.24.4-tke.6", OnRequest),
            ("v1.26.1-tke.1", OnRequest),
            ("v1.28.3-tke.1", OnRequestFlawed),
            ("v1.28.3-tke.2", OnRequestFlawed),
            ("v1.28.3-tke.3", OnRequest),
            ("v1.30.0-tke.1", OnRequest),
            ("v1.34.4", OnRequest),
        ] {
            assert_eq!(binding(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn the_first_fixed_build_is_the_first() {
        for line in &LINES {
            let fixed = line.first_fixed();
            assert_eq!(line_of(fixed), Some(line));
            assert_eq!(binding(fixed), OnRequest, "{fixed}");
            let build = fixed.vendor_build.unwrap();
            let number = build.number - 1;
            let before = Version { vendor_build: Some(VendorBuild { number, ..build }), ..fixed };
            assert_ne!(binding(before), OnRequest, "{before}");
        }
    }

    #[test]
    fn which_services_are_bound() {
        let asks = [(PREVENT_LOOPBACK, "true")].into_iter().collect();
        let asks_not = [(PREVENT_LOOPBACK, "false")].into_iter().collect();
        for (build, asked, unasked) in [
            (Always, true, true),
            (Never, false, false),
            (OnRequest, true, false),
            (OnRequestFlawed, false, false),
        ] {
            let setting = build.setting();
            let binds = (setting.binds(&asks), setting.binds(&asks_not));
            assert_eq!(binds, (asked, unasked), "{build:?}");
            assert_eq!(setting.honours_request(), asked, "{build:?}");
        }
    }
}
