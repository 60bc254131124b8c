//! The limit on the size of input, which all files, folders and archives of a command share.

use std::str::FromStr;

use uturn_model::Origin;

use crate::fault::Fault;

/// The maximum size of all files, folders and archives of a command together. An archive counts
/// with its unpacked size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackLimit {
    bytes: u64,
    is_stated: bool,
}

impl UnpackLimit {
    /// The command-line option that sets the limit.
    pub const OPTION: &'static str = "--unpack-limit";
    /// The maximum ratio of an archive's unpacked size to its size, unless the user states a limit.
    pub const RATIO: u64 = 100;

    /// Returns the limit as a value of [`Self::OPTION`].
    pub fn value(self) -> String {
        format!("{}MiB", self.bytes >> 20)
    }

    /// Returns the number of bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// Returns whether the user stated the limit, and so knows how large the archives are.
    pub fn is_stated(self) -> bool {
        self.is_stated
    }

    /// Creates a default limit of this many bytes, to which [`Self::RATIO`] applies.
    pub fn of_bytes(bytes: u64) -> Self {
        Self { bytes, is_stated: false }
    }
}

impl Default for UnpackLimit {
    fn default() -> Self {
        Self { bytes: 256 << 20, is_stated: false }
    }
}

impl FromStr for UnpackLimit {
    type Err = String;

    /// Parses a number of MiB, or a number with a unit: `512`, `512MiB`, `2GiB`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || "expected a size such as 512MiB or 2GiB".to_owned();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let shift = match unit {
            "" | "M" | "Mi" | "MiB" => 20,
            "G" | "Gi" | "GiB" => 30,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let bytes = number.checked_mul(1 << shift).filter(|bytes| (1..1 << 50).contains(bytes));
        Ok(Self { bytes: bytes.ok_or_else(wrong)?, is_stated: true })
    }
}

/// The maximum number of files that are read.
const MAX_FILES: usize = 200_000;

/// The number of bytes and files that may still be read.
#[derive(Debug)]
pub struct Room {
    limit: UnpackLimit,
    /// Whether the command has an option that changes the limit.
    has_option: bool,
    left: u64,
    files: usize,
    is_exceeded: bool,
}

impl Default for Room {
    /// Creates the default limit for commands that have no option to change it.
    fn default() -> Self {
        Self { has_option: false, ..Self::of(UnpackLimit::default()) }
    }
}

impl Room {
    /// Creates the room of a command that has [`UnpackLimit::OPTION`].
    pub fn of(limit: UnpackLimit) -> Self {
        Self { limit, has_option: true, left: limit.bytes, files: 0, is_exceeded: false }
    }

    /// Returns the limit of the whole command.
    pub fn limit(&self) -> UnpackLimit {
        self.limit
    }

    /// Returns the number of bytes that may still be read.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Returns whether the input exceeded the limit. The input that follows is not read.
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    /// Counts the bytes of a file or archive that was read.
    pub fn count(&mut self, bytes: u64) {
        self.is_exceeded |= bytes > self.left || self.files == MAX_FILES;
        self.left = self.left.saturating_sub(bytes);
        self.files += 1;
    }

    /// Returns the fault of an input at `origin` that exceeds the limit.
    pub fn fault(&self, origin: Origin) -> Fault {
        if self.files > MAX_FILES {
            return Fault::new(origin, format!("more than {MAX_FILES} files"));
        }
        let mebibytes = self.limit.bytes >> 20;
        let fault = Fault::new(
            origin,
            format!("more than {mebibytes} MiB together with what was read before"),
        );
        if self.has_option { fault.hint(Self::advice()) } else { fault }
    }

    /// Returns the hint that names the option which raises the limit.
    pub fn advice() -> String {
        let option = UnpackLimit::OPTION;
        format!("if you trust it, state how much may be read: {option} 1GiB")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let bytes = |text: &str| text.parse::<UnpackLimit>().map(|limit| limit.bytes);
        assert_eq!(bytes("512"), Ok(512 << 20));
        assert_eq!(bytes("512MiB"), bytes("512M"));
        assert_eq!(bytes("2GiB"), Ok(2 << 30));
        for text in ["", "0", "-1", "2TiB", "1.5G", "99999999999999999999", "9999999999G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
