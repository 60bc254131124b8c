//! How much input is read: files, folders and archives of a command share one limit.

use std::str::FromStr;

use uturn_model::Origin;

use crate::fault::Fault;

/// How much all files, folders and archives of a command may hold together, archives once they are unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackLimit {
    bytes: u64,
    is_stated: bool,
}

impl UnpackLimit {
    /// The option that states it.
    pub const OPTION: &'static str = "--unpack-limit";
    /// How many times as large as it is an archive may become, unless a limit is stated.
    pub const RATIO: u64 = 100;

    /// The value of the option.
    pub fn value(self) -> String {
        format!("{}MiB", self.bytes >> 20)
    }

    pub(crate) fn bytes(self) -> u64 {
        self.bytes
    }

    /// Whether the user stated it, and so knows how large an archive is.
    pub(crate) fn is_stated(self) -> bool {
        self.is_stated
    }

    /// A limit of this many bytes, with the ratio.
    #[cfg(test)]
    pub(crate) fn of_bytes(bytes: u64) -> Self {
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

    /// A number of MiB, or a number with its unit: `512`, `512MiB`, `2GiB`.
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

/// How many files may be read.
const MAX_FILES: usize = 200_000;

/// The room that is left for input.
#[derive(Debug)]
pub(crate) struct Room {
    limit: UnpackLimit,
    /// Whether the user can state the limit.
    has_option: bool,
    left: u64,
    files: usize,
    is_exceeded: bool,
}

impl Default for Room {
    /// The usual limit, which no option of the command changes.
    fn default() -> Self {
        Self { has_option: false, ..Self::of(UnpackLimit::default()) }
    }
}

impl Room {
    pub(crate) fn of(limit: UnpackLimit) -> Self {
        Self { limit, has_option: true, left: limit.bytes, files: 0, is_exceeded: false }
    }

    pub(crate) fn limit(&self) -> UnpackLimit {
        self.limit
    }

    /// How many bytes may still be read.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Whether there was more than there is room for: what follows is not read.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    /// Counts the bytes of a file or archive that was read.
    pub(crate) fn count(&mut self, bytes: u64) {
        self.is_exceeded |= bytes > self.left || self.files == MAX_FILES;
        self.left = self.left.saturating_sub(bytes);
        self.files += 1;
    }

    /// That there is no room for what is here.
    pub(crate) fn fault(&self, origin: Origin) -> Fault {
        if self.files > MAX_FILES {
            return Fault::new(origin, format!("more than {MAX_FILES} files"));
        }
        let mebibytes = self.limit.bytes >> 20;
        let fault =
            Fault::new(origin, format!("with what was read before, more than {mebibytes} MiB"));
        match self.has_option {
            true => fault.hint(Self::advice()),
            false => fault,
        }
    }

    /// What the user can do where the limit is met.
    pub(crate) fn advice() -> String {
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
