//! Unpacks an archive until a limit is exceeded.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use uturn_document::{Room, UnpackLimit};

/// The unpacked size up to which the ratio does not matter: a small text of equal lines packs very
/// well.
const SMALL: u64 = 16 << 20;

/// The limit that an archive exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// The archive and the input before it have more than this many bytes.
    Bytes(u64),
    /// The unpacked archive is more than [`UnpackLimit::RATIO`] times as large as the archive.
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

/// An archive that is unpacked as it is read. Once a limit is exceeded, each read fails.
pub(super) struct Unpacked<R> {
    from: MultiGzDecoder<Counted<R>>,
    /// The number of bytes of the archive that were read.
    packed: Rc<Cell<u64>>,
    unpacked: Rc<Cell<u64>>,
    limit: UnpackLimit,
    /// The number of bytes that the archive may have once unpacked.
    left: u64,
    met: Rc<Cell<Option<Met>>>,
}

impl<R: Read> Unpacked<R> {
    pub(super) fn new(from: R, room: &Room) -> Self {
        let packed = Rc::new(Cell::new(0));
        let from = MultiGzDecoder::new(Counted { from, count: Rc::clone(&packed) });
        Self {
            from,
            packed,
            unpacked: Rc::default(),
            limit: room.limit(),
            left: room.left(),
            met: Rc::default(),
        }
    }

    /// Returns the cell that will hold the exceeded limit.
    pub(super) fn met(&self) -> Rc<Cell<Option<Met>>> {
        Rc::clone(&self.met)
    }

    /// Returns the cell that holds the number of bytes unpacked so far.
    pub(super) fn unpacked(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.unpacked)
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        let unpacked = self.unpacked.get() + count as u64;
        self.unpacked.set(unpacked);
        let grown = self.packed.get().saturating_mul(UnpackLimit::RATIO).max(SMALL);
        let met = if unpacked > self.left {
            Met::Bytes(self.limit.bytes())
        } else if unpacked > grown && !self.limit.is_stated() {
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
