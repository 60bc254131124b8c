//! Versions of Kubernetes components, with the build number of a vendor.

use std::fmt;
use std::str::FromStr;

/// A version: `v1.34.4`, or a vendor's build of it such as `v1.34.4-vendor.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Always 1 so far.
    pub major: u16,
    /// The minor version: 22.
    pub minor: u16,
    /// The patch: 5.
    pub patch: u16,
    /// The vendor's build, if the version names one.
    pub vendor_build: Option<VendorBuild>,
}

/// A vendor's build of an upstream version: `-vendor.13`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VendorBuild {
    /// The vendor.
    pub vendor: Vendor,
    /// Its number: 13.
    pub number: u32,
}

/// The word of a vendor in a version: up to 12 small letters, stored in place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vendor([u8; Self::LONGEST]);

impl Vendor {
    const LONGEST: usize = 12;

    /// Makes a vendor's word. Returns `None` if it is empty, too long, or not of small letters
    /// only.
    pub const fn new(word: &str) -> Option<Self> {
        let word = word.as_bytes();
        if word.is_empty() || word.len() > Self::LONGEST {
            return None;
        }
        let mut letters = [0; Self::LONGEST];
        let mut at = 0;
        while at < word.len() {
            if !word[at].is_ascii_lowercase() {
                return None;
            }
            letters[at] = word[at];
            at += 1;
        }
        Some(Self(letters))
    }

    /// Returns the word.
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|letter| *letter == 0).unwrap_or(Self::LONGEST);
        std::str::from_utf8(&self.0[..end]).expect("small letters only")
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vendor({self})")
    }
}

impl Version {
    /// Makes an upstream version.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch, vendor_build: None }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)?;
        match self.vendor_build {
            Some(VendorBuild { vendor, number }) => write!(f, "-{vendor}.{number}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Version {
    type Err = InvalidVersion;

    /// Reads `v1.22.5-vendor.13`, `1.34.4`, `v1.30`, `v1.34.4+k3s1`; drops other suffixes.
    ///
    /// # Errors
    /// Returns [`InvalidVersion`] if the text does not begin with two or three numbers, or
    /// ends where the number of a vendor's build should be.
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
        Ok(Self { major, minor, patch, vendor_build: vendor_build(suffix)? })
    }
}

/// Returns the build that a suffix such as `-vendor.13` names.
fn vendor_build(suffix: &str) -> Result<Option<VendorBuild>, InvalidVersion> {
    let parts = suffix.strip_prefix('-').and_then(|rest| rest.split_once('.'));
    let Some((word, number)) = parts else { return Ok(None) };
    let Some(vendor) = Vendor::new(word) else { return Ok(None) };
    if number.is_empty() {
        return Err(InvalidVersion);
    }
    let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    Ok(number[..digits].parse().ok().map(|number| VendorBuild { vendor, number }))
}

/// The error that a text is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidVersion;

impl fmt::Display for InvalidVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a version: expected something like v1.34.4")
    }
}

impl std::error::Error for InvalidVersion {}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(vendor: &str, number: u32, version: Version) -> Version {
        let vendor = Vendor::new(vendor).unwrap();
        Version { vendor_build: Some(VendorBuild { vendor, number }), ..version }
    }

    #[test]
    fn reads_what_people_write() {
        let tke = built("tke", 13, Version::new(1, 22, 5));
        for (text, version) in [
            ("v1.22.5-tke.13", tke),
            ("v1.28.3-gke.1067004", built("gke", 1_067_004, Version::new(1, 28, 3))),
            ("1.34.4", Version::new(1, 34, 4)),
            ("v1.30", Version::new(1, 30, 0)),
            ("v1.31.2+k3s1", Version::new(1, 31, 2)),
            ("v1.28.3-eks-a5df82a", Version::new(1, 28, 3)),
            ("v1.28.3-own.build", Version::new(1, 28, 3)),
        ] {
            assert_eq!(text.parse(), Ok(version), "{text}");
        }
        for bad in ["", "v", "v1", "latest", "v1.x.3", "v1.2.3.4", "v1.22.5-tke."] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
        assert_eq!(tke.to_string(), "v1.22.5-tke.13");
    }

    #[test]
    fn a_vendor_is_a_short_word_of_small_letters() {
        assert_eq!(Vendor::new("tke").unwrap().as_str(), "tke");
        assert_eq!(Vendor::new("abcdefghijkl").unwrap().as_str(), "abcdefghijkl");
        for none in ["", "abcdefghijklm", "Tke", "k3s", "a-b"] {
            assert_eq!(Vendor::new(none), None, "{none}");
        }
    }
}
