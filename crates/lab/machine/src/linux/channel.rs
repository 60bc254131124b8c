//! The channel: memory that both sides of the machine see, and through which they communicate.
//!
//! Outside, the channel is an anonymous memory file, so that it does not outlive the processes that
//! hold it. Inside, it is the block device `ubda`, opened for synchronous writes and for reads that
//! bypass the cache. (The machine's consoles and serial lines are unsuitable: they drop data when
//! the reader is slow.) The outside writes the encoded job. Then each side has a half of its own:
//! it appends a frame and then updates the counter of bytes written, so that a reader that honours
//! the counter only sees whole frames.
//!
//! ```text
//!  0       where the inside's frames begin, length of the encoded job
//!  4096    the inside's counter: how many bytes of frames there are, and that number inverted
//!  8192    the encoded job
//!  …       the inside's frames
//!  2^40    the outside's counter
//!  + 4096  how many bytes of the outside's frames the inside has read
//!  + 8192  the outside's frames
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use super::frame::{Frame, HEAD};

const COUNTER: u64 = 4096;
const JOB: u64 = 8192;
const PAGE: u64 = 4096;

/// The position of the outside's half: after more than any job prints. The file is sparse: it takes
/// no memory before it is written.
const OUTSIDE: u64 = 1 << 40;
const OUTSIDE_READ: u64 = OUTSIDE + PAGE;
const OUTSIDE_FRAMES: u64 = OUTSIDE_READ + PAGE;

/// The number of bytes that are freed at a time.
const RELEASE: u64 = 16 * PAGE;

/// The alignment, in bytes, of the start and the end of reads that bypass the cache.
const BLOCK: usize = 512;

/// The outside's end of the channel.
#[derive(Debug)]
pub(super) struct Outer {
    memory: File,
    frames: u64,
    read: u64,
    released: u64,
    written: u64,
    released_own: u64,
}

impl Outer {
    /// Makes a channel that holds an encoded job.
    pub(super) fn new(job: &[u8]) -> io::Result<Self> {
        let memory = File::from(memfd_create("uturn-machine", MemfdFlags::CLOEXEC)?);
        memory.set_len(OUTSIDE * 2)?;
        let length = job.len() as u64;
        let frames = (JOB + length).next_multiple_of(PAGE);
        memory.write_all_at(&[frames.to_le_bytes(), length.to_le_bytes()].concat(), 0)?;
        for counter in [COUNTER, OUTSIDE, OUTSIDE_READ] {
            memory.write_all_at(&encode_counter(0), counter)?;
        }
        memory.write_all_at(job, JOB)?;
        Ok(Self { memory, frames, read: 0, released: 0, written: 0, released_own: 0 })
    }

    /// Returns a handle of the memory to pass to the machine.
    pub(super) fn memory(&self) -> io::Result<File> {
        self.memory.try_clone()
    }

    /// Reads the next frame. Returns `None` if none has been written yet.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        let frame = next(&self.memory, COUNTER, self.frames, &mut self.read)?;
        self.released = self.release(self.frames, self.released, self.read);
        Ok(frame)
    }

    /// Appends a frame.
    pub(super) fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.written = append(&self.memory, OUTSIDE, OUTSIDE_FRAMES, self.written, frame)?;
        if self.written - self.released_own >= RELEASE
            && let Some(read) = counter(&self.memory, OUTSIDE_READ)?
        {
            self.released_own = self.release(OUTSIDE_FRAMES, self.released_own, read);
        }
        Ok(())
    }

    /// Frees the pages that have been read completely. Nothing reads them again. Returns the
    /// position up to which pages are free.
    fn release(&self, frames: u64, released: u64, read: u64) -> u64 {
        let whole = read / PAGE * PAGE;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let (from, length) = (frames + released, whole.saturating_sub(released));
        let is_free = length >= RELEASE && fallocate(&self.memory, flags, from, length).is_ok();
        if is_free { whole } else { released }
    }
}

/// The inside's end of the channel.
#[derive(Debug)]
pub(super) struct Inner {
    /// The device, for synchronous writes.
    device: File,
    /// The same device, for reads that bypass the cache.
    direct: File,
    frames: u64,
    written: u64,
    read: u64,
    reported: u64,
}

impl Inner {
    /// Opens the channel on a device that writes synchronously, and on the same device for reads
    /// that bypass the cache.
    pub(super) fn new(device: File, direct: File) -> io::Result<Self> {
        let [frames, _] = head(&device)?;
        Ok(Self { device, direct, frames, written: 0, read: 0, reported: 0 })
    }

    /// Reads the encoded job.
    pub(super) fn job(&self) -> io::Result<Vec<u8>> {
        let [frames, length] = head(&self.device)?;
        let fits = JOB.checked_add(length).is_some_and(|end| end <= frames);
        let length = usize::try_from(length).ok().filter(|_| fits);
        let length = length.ok_or_else(|| io::Error::other("no job in the channel"))?;
        let mut job = vec![0; length];
        self.device.read_exact_at(&mut job, JOB)?;
        Ok(job)
    }

    /// Appends a frame.
    pub(super) fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.written = append(&self.device, COUNTER, self.frames, self.written, frame)?;
        Ok(())
    }

    /// Reads the next frame. Returns `None` if none has been written yet.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        let frame = next(&self.direct, OUTSIDE, OUTSIDE_FRAMES, &mut self.read)?;
        if self.read - self.reported >= RELEASE {
            self.device.write_all_at(&encode_counter(self.read), OUTSIDE_READ)?;
            self.reported = self.read;
        }
        Ok(frame)
    }
}

/// Reads the frame after the first `read` bytes of frames, which `read` then counts.
fn next(file: &File, counter_at: u64, frames: u64, read: &mut u64) -> io::Result<Option<Frame>> {
    if counter(file, counter_at)?.is_none_or(|written| *read >= written) {
        return Ok(None);
    }
    let at = frames + *read;
    let head = read_blocks(file, at, HEAD)?;
    let head = head.first_chunk::<HEAD>().copied();
    let head = head.ok_or(io::ErrorKind::UnexpectedEof)?;
    let length = Frame::length(&head)?;
    let payload = read_blocks(file, at + HEAD as u64, length)?;
    *read += (HEAD + length) as u64;
    Frame::decode(&head, payload).map(Some)
}

/// Writes a frame after the first `written` bytes of frames. Returns the number of bytes of frames
/// then.
fn append(
    file: &File,
    counter_at: u64,
    frames: u64,
    written: u64,
    frame: &Frame,
) -> io::Result<u64> {
    let bytes = frame.encode();
    file.write_all_at(&bytes, frames + written)?;
    let written = written + bytes.len() as u64;
    file.write_all_at(&encode_counter(written), counter_at)?;
    Ok(written)
}

/// Reads whole blocks into memory that begins at a block's boundary, as reads that bypass the cache
/// require.
fn read_blocks(file: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let skipped = (at % BLOCK as u64) as usize;
    let whole = (skipped + length).next_multiple_of(BLOCK);
    let mut memory = vec![0; whole + BLOCK];
    let first = memory.as_ptr().align_offset(BLOCK);
    let blocks = memory.get_mut(first..).and_then(|memory| memory.get_mut(..whole));
    let blocks = blocks.ok_or(io::ErrorKind::OutOfMemory)?;
    file.read_exact_at(blocks, at - skipped as u64)?;
    Ok(blocks[skipped..skipped + length].to_vec())
}

/// Reads a counter. Returns `None` while the counter is being written.
fn counter(file: &File, at: u64) -> io::Result<Option<u64>> {
    let twice = read_blocks(file, at, 16)?;
    let (once, again) = twice.split_at(8);
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
    Ok((number(once) == !number(again)).then(|| number(once)))
}

fn encode_counter(written: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&written.to_le_bytes());
    bytes[8..].copy_from_slice(&(!written).to_le_bytes());
    bytes
}

fn head(device: &File) -> io::Result<[u64; 2]> {
    let mut bytes = [[0; 8]; 2];
    device.read_exact_at(bytes.as_flattened_mut(), 0)?;
    Ok(bytes.map(u64::from_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::super::frame::{MAX, Message};
    use super::*;
    use crate::Ended;

    fn pair(job: &[u8]) -> (Outer, Inner) {
        let outer = Outer::new(job).unwrap();
        let inner = Inner::new(outer.memory().unwrap(), outer.memory().unwrap()).unwrap();
        (outer, inner)
    }

    fn held(outer: &Outer) -> u64 {
        use std::os::unix::fs::MetadataExt;
        outer.memory.metadata().unwrap().blocks() * 512
    }

    #[test]
    fn what_is_written_is_read() {
        let (mut outer, mut inner) = pair(b"a job");
        assert_eq!(inner.job().unwrap(), b"a job");
        assert_eq!(outer.next().unwrap(), None);
        assert_eq!(inner.next().unwrap(), None);
        let frames = [
            Message::Out(Vec::new()),
            Message::Err(vec![7; MAX]),
            Message::Ended(Ended::Exit(255)),
            Message::Cannot("no such program".into()),
        ];
        let frames = frames.map(Frame::of_job);
        frames.iter().for_each(|frame| inner.write(frame).unwrap());
        frames.iter().for_each(|frame| outer.write(frame).unwrap());
        for frame in &frames {
            assert_eq!(outer.next().unwrap().as_ref(), Some(frame));
            assert_eq!(inner.next().unwrap().as_ref(), Some(frame));
        }
        assert_eq!(outer.next().unwrap(), None);
        assert_eq!(inner.next().unwrap(), None);
    }

    #[test]
    fn what_was_read_is_no_memory_any_more() {
        let (mut outer, mut inner) = pair(&vec![1; 100_000]);
        for number in 0..500u32 {
            let bytes = number.to_le_bytes().repeat(5000);
            let frame = Frame { stream: number, message: Message::Out(bytes) };
            inner.write(&frame).unwrap();
            assert_eq!(outer.next().unwrap().as_ref(), Some(&frame));
            outer.write(&frame).unwrap();
            assert_eq!(inner.next().unwrap().as_ref(), Some(&frame));
        }
        let held = held(&outer);
        assert!(held < 1_000_000, "{held} bytes of 20 MB");
        assert_eq!(inner.job().unwrap(), vec![1; 100_000]);
    }

    #[test]
    fn a_mark_that_is_half_written_is_none() {
        let (mut outer, mut inner) = pair(b"");
        inner.write(&Frame::of_job(Message::Out(vec![1]))).unwrap();
        inner.device.write_all_at(&[9], COUNTER).unwrap();
        assert_eq!(outer.next().unwrap(), None);
    }
}
