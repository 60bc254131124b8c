//! The channel: memory that both sides of the machine see, and through which they communicate.
//!
//! Outside it is an anonymous memory file, so that it does not outlive the processes that hold
//! it; inside it is the block device `ubda`, opened for synchronous writes. (The machine's
//! consoles and serial lines are unsuitable: they drop data when the reader is slow.) The outside
//! writes the encoded job, the inside everything else: it appends a frame and then updates the
//! counter of bytes written, so that a reader that honours the counter only sees whole frames.
//!
//! ```text
//!  0       where the frames begin, length of the encoded job
//!  4096    the counter: how many bytes of frames there are, and the same number inverted
//!  8192    the encoded job
//!  …       frames: kind, length (4 bytes), bytes
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use crate::Ended;

const COUNTER: u64 = 4096;
const JOB: u64 = 8192;
const PAGE: u64 = 4096;

/// More than any job prints. The file is sparse: it takes no memory before it is written.
const LENGTH: u64 = 1 << 40;

/// The largest payload of a frame, in bytes.
pub(super) const MOST: usize = 64 * 1024;

/// A message from the inside to the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The job's standard output.
    Out(Vec<u8>),
    /// The job's standard error.
    Err(Vec<u8>),
    /// The job is over.
    Ended(Ended),
    /// The job could not be started, for this reason.
    Cannot(String),
}

/// The outside's end of the channel.
#[derive(Debug)]
pub(super) struct Reader {
    memory: File,
    frames: u64,
    read: u64,
    released: u64,
}

impl Reader {
    /// Makes a channel that holds an encoded job.
    pub(super) fn new(job: &[u8]) -> io::Result<Self> {
        let memory = File::from(memfd_create("uturn-machine", MemfdFlags::CLOEXEC)?);
        memory.set_len(LENGTH)?;
        let length = job.len() as u64;
        let frames = (JOB + length).next_multiple_of(PAGE);
        memory.write_all_at(&[frames.to_le_bytes(), length.to_le_bytes()].concat(), 0)?;
        memory.write_all_at(&counter(0), COUNTER)?;
        memory.write_all_at(job, JOB)?;
        Ok(Self { memory, frames, read: 0, released: 0 })
    }

    /// A handle of the memory to pass to the machine.
    pub(super) fn memory(&self) -> io::Result<File> {
        self.memory.try_clone()
    }

    /// The next frame. Returns `None` if none has been written yet.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        let Some(written) = self.written()? else { return Ok(None) };
        if self.read >= written {
            return Ok(None);
        }
        let at = self.frames + self.read;
        let mut head = [0; 5];
        self.memory.read_exact_at(&mut head, at)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if length > MOST {
            return Err(io::Error::other(format!("a frame of {length} bytes in the channel")));
        }
        let mut bytes = vec![0; length];
        self.memory.read_exact_at(&mut bytes, at + head.len() as u64)?;
        self.read += (head.len() + length) as u64;
        self.release();
        let number = || bytes.as_slice().try_into().map(i32::from_le_bytes).unwrap_or(-1);
        Ok(Some(match kind {
            1 => Frame::Out(bytes),
            2 => Frame::Err(bytes),
            3 => Frame::Ended(Ended::Exit(number())),
            4 => Frame::Ended(Ended::Signal(number())),
            5 => Frame::Cannot(String::from_utf8_lossy(&bytes).into_owned()),
            kind => return Err(io::Error::other(format!("a frame of kind {kind} in the channel"))),
        }))
    }

    /// The counter. Returns `None` while the inside is writing it.
    fn written(&self) -> io::Result<Option<u64>> {
        let mut twice = [0; 16];
        self.memory.read_exact_at(&mut twice, COUNTER)?;
        let (once, again) = twice.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
        Ok((number(once) == !number(again)).then(|| number(once)))
    }

    /// Frees the pages that have been read completely. The inside never reads them.
    fn release(&mut self) {
        let whole = self.read / PAGE * PAGE;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let (from, length) = (self.frames + self.released, whole - self.released);
        if length >= 16 * PAGE && fallocate(&self.memory, flags, from, length).is_ok() {
            self.released = whole;
        }
    }
}

/// The inside's end of the channel.
#[derive(Debug)]
pub(super) struct Writer {
    device: File,
    frames: u64,
    written: u64,
}

impl Writer {
    /// Opens the channel on a device that writes synchronously.
    pub(super) fn new(device: File) -> io::Result<Self> {
        let [frames, _] = head(&device)?;
        Ok(Self { device, frames, written: 0 })
    }

    /// The encoded job.
    pub(super) fn job(&self) -> io::Result<Vec<u8>> {
        let [frames, length] = head(&self.device)?;
        let fits = JOB.checked_add(length).is_some_and(|end| end <= frames);
        let length = usize::try_from(length).ok().filter(|_| fits);
        let length = length.ok_or_else(|| io::Error::other("no job in the channel"))?;
        let mut job = vec![0; length];
        self.device.read_exact_at(&mut job, JOB)?;
        Ok(job)
    }

    /// Appends a frame and truncates its payload to [`MOST`] bytes.
    pub(super) fn write(&mut self, frame: &Frame) -> io::Result<()> {
        let number;
        let (kind, bytes): (u8, &[u8]) = match frame {
            Frame::Out(bytes) => (1, bytes),
            Frame::Err(bytes) => (2, bytes),
            Frame::Ended(Ended::Exit(code)) => {
                number = code.to_le_bytes();
                (3, &number)
            }
            Frame::Ended(Ended::Signal(signal)) => {
                number = signal.to_le_bytes();
                (4, &number)
            }
            Frame::Cannot(why) => (5, why.as_bytes()),
        };
        let bytes = &bytes[..bytes.len().min(MOST)];
        let mut all = vec![kind];
        all.extend((bytes.len() as u32).to_le_bytes());
        all.extend(bytes);
        self.device.write_all_at(&all, self.frames + self.written)?;
        self.written += all.len() as u64;
        self.device.write_all_at(&counter(self.written), COUNTER)
    }
}

fn head(device: &File) -> io::Result<[u64; 2]> {
    let mut bytes = [[0; 8]; 2];
    device.read_exact_at(bytes.as_flattened_mut(), 0)?;
    Ok(bytes.map(u64::from_le_bytes))
}

fn counter(written: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&written.to_le_bytes());
    bytes[8..].copy_from_slice(&(!written).to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(job: &[u8]) -> (Reader, Writer) {
        let reader = Reader::new(job).unwrap();
        let writer = Writer::new(reader.memory().unwrap()).unwrap();
        (reader, writer)
    }

    #[test]
    fn what_is_written_is_read() {
        let (mut reader, mut writer) = pair(b"a job");
        assert_eq!(writer.job().unwrap(), b"a job");
        assert_eq!(reader.next().unwrap(), None);
        let frames = [
            Frame::Out(Vec::new()),
            Frame::Err(vec![7; MOST]),
            Frame::Ended(Ended::Exit(255)),
            Frame::Ended(Ended::Signal(9)),
            Frame::Cannot("no such program".into()),
        ];
        frames.iter().for_each(|frame| writer.write(frame).unwrap());
        for frame in &frames {
            assert_eq!(reader.next().unwrap().as_ref(), Some(frame));
        }
        assert_eq!(reader.next().unwrap(), None);
    }

    #[test]
    fn what_was_read_is_no_memory_any_more() {
        use std::os::unix::fs::MetadataExt;
        let (mut reader, mut writer) = pair(&vec![1; 100_000]);
        for number in 0..500u32 {
            let bytes = number.to_le_bytes().repeat(5000);
            writer.write(&Frame::Out(bytes.clone())).unwrap();
            assert_eq!(reader.next().unwrap(), Some(Frame::Out(bytes)));
        }
        let held = reader.memory.metadata().unwrap().blocks() * 512;
        assert!(held < 1_000_000, "{held} bytes of 10 MB");
        assert_eq!(writer.job().unwrap(), vec![1; 100_000]);
    }

    #[test]
    fn a_mark_that_is_half_written_is_none() {
        let (mut reader, mut writer) = pair(b"");
        writer.write(&Frame::Out(vec![1])).unwrap();
        writer.device.write_all_at(&[9], COUNTER).unwrap();
        assert_eq!(reader.next().unwrap(), None);
    }
}
