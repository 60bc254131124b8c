//! Versions of Kubernetes components, with the build number of a managed variant.

use std::fmt;
use std::str::FromStr;

/// `v1.34.4`, or `v1.22.5-tke.13`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Always 1 so far.
    pub major: u16,
    /// The minor version: 22.
    pub minor: u16,
    /// The patch: 5.
    pub patch: u16,
    /// TKE's build number: 13.
    pub tke: Option<u16>,
}

impl Version {
    /// An upstream version.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch, tke: None }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)?;
        match self.tke {
            Some(build) => write!(f, "-tke.{build}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    /// Parses `v1.22.5-tke.13`, `1.34.4`, `v1.30`, `v1.34.4+k3s1`; drops other suffixes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (numbers, suffix) = text.split_at(end);
        let mut numbers = numbers.split('.').map(|part| part.parse::<u16>());
        let mut next = || numbers.next().transpose().map_err(|_| InvalidVersion);
        let (Some(major), Some(minor)) = (next()?, next()?) else {
            return Err(InvalidVersion);
        };
        let patch = next()?.unwrap_or(0);
        if next()?.is_some() {
            return Err(InvalidVersion);
        }
        let tke = match suffix.strip_prefix("-tke.") {
            Some(build) => {
                let digits = build.find(|c: char| !c.is_ascii_digit()).unwrap_or(build.len());
                Some(build[..digits].parse().map_err(|_| InvalidVersion)?)
            }
            None => None,
        };
        Ok(Self { major, minor, patch, tke })
    }
}

/// The text is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidVersion;

impl fmt::Display for InvalidVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a version: expected something like v1.34.4 or v1.22.5-tke.13")
    }
}

impl std::error::Error for InvalidVersion {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        let tke = Version { tke: Some(13), ..Version::new(1, 22, 5) };
        for (text, version) in [
            ("v1.22.5-tke.13", tke),
            ("1.34.4", Version::new(1, 34, 4)),
            ("v1.30", Version::new(1, 30, 0)),
            ("v1.31.2+k3s1", Version::new(1, 31, 2)),
            ("v1.28.3-eks-a5df82a", Version::new(1, 28, 3)),
        ] {
            assert_eq!(text.parse(), Ok(version), "{text}");
        }
        for bad in ["", "v", "v1", "latest", "v1.x.3", "v1.2.3.4", "v1.22.5-tke."] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
        assert_eq!(tke.to_string(), "v1.22.5-tke.13");
    }
}
