//! How much an archive may hold once it is unpacked.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;
use std::str::FromStr;

use flate2::read::MultiGzDecoder;

/// How much an archive may hold once it is unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpackLimit {
    bytes: u64,
    /// Whether the user stated it, and so knows how large the archive is.
    is_stated: bool,
}

impl UnpackLimit {
    /// The option that states it.
    pub const OPTION: &'static str = "--unpack-limit";
    /// How many times as large as it is an archive may become, unless a limit is stated.
    pub const RATIO: u64 = 100;
    /// Up to so many bytes, the ratio does not matter: a small text of equal lines is packed very well.
    const SMALL: u64 = 16 << 20;

    /// The value of the option.
    pub fn value(self) -> String {
        format!("{}MiB", self.bytes >> 20)
    }

    pub(super) fn bytes(self) -> u64 {
        self.bytes
    }

    /// A limit of this many bytes, with the ratio.
    #[cfg(test)]
    pub(super) fn of_bytes(bytes: u64) -> Self {
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

/// The limit that an archive met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// It holds more bytes than this.
    Bytes(u64),
    /// It holds more than [`UnpackLimit::RATIO`] times what it is.
    Ratio,
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(most) => write!(f, "more than {} MiB once unpacked", most >> 20),
            Self::Ratio => {
                write!(f, "more than {} times as large once unpacked", UnpackLimit::RATIO)
            }
        }
    }
}

/// What an archive holds, unpacked as it is read, until a limit is met: from then on each reading fails.
pub(super) struct Unpacked<R> {
    from: MultiGzDecoder<Counted<R>>,
    /// How many bytes of the archive were read.
    packed: Rc<Cell<u64>>,
    unpacked: u64,
    limit: UnpackLimit,
    met: Rc<Cell<Option<Met>>>,
}

impl<R: Read> Unpacked<R> {
    pub(super) fn new(from: R, limit: UnpackLimit) -> Self {
        let packed = Rc::new(Cell::new(0));
        let from = MultiGzDecoder::new(Counted { from, count: Rc::clone(&packed) });
        Self { from, packed, unpacked: 0, limit, met: Rc::default() }
    }

    /// Where the limit that was met will stand.
    pub(super) fn met(&self) -> Rc<Cell<Option<Met>>> {
        Rc::clone(&self.met)
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.unpacked += count as u64;
        let grown = self.packed.get().saturating_mul(UnpackLimit::RATIO).max(UnpackLimit::SMALL);
        let met = if self.unpacked > self.limit.bytes {
            Met::Bytes(self.limit.bytes)
        } else if self.unpacked > grown && !self.limit.is_stated {
            Met::Ratio
        } else {
            return Ok(count);
        };
        self.met.set(Some(met));
        Err(io::Error::other(met.to_string()))
    }
}

struct Counted<R> {
    from: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
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
