//! The console of the machine's kernel: an anonymous file that the kernel appends to.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, memfd_create};

/// The words that a kernel writes when it panics.
const PANIC: &str = "Kernel panic";

/// A function of the machine's kernel that is in the trace of a panic if the host refuses to set the
/// registers of a process.
const REFUSED_REGISTERS: &str = "put_fp_registers";

/// The number of lines that are shown.
const LINES: usize = 10;

/// The number of bytes at the console's end that are read for these lines.
const TAIL: u64 = 64 * 1024;

#[derive(Debug)]
pub(super) struct Console {
    file: File,
    /// The position up to which the console has been searched.
    seen: u64,
}

impl Console {
    pub(super) fn new() -> io::Result<Self> {
        let file = File::from(memfd_create("uturn-machine-says", MemfdFlags::CLOEXEC)?);
        Ok(Self { file, seen: 0 })
    }

    /// Returns a handle for the kernel to write to.
    pub(super) fn writer(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Returns the number of bytes that have been written.
    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Returns whether a panic has been written since the last call.
    pub(super) fn has_panic(&mut self) -> io::Result<bool> {
        let length = self.length()?;
        if length == self.seen {
            return Ok(false);
        }
        // The words may have been written in two pieces.
        let from = self.seen.saturating_sub(PANIC.len() as u64).max(length.saturating_sub(TAIL));
        self.seen = length;
        Ok(self.read(from)?.contains(PANIC))
    }

    /// Returns why the kernel panicked, if its trace shows a known reason.
    pub(super) fn known_reason(&self) -> Option<&'static str> {
        let text = self.read(self.tail()).unwrap_or_default();
        text.contains(REFUSED_REGISTERS).then_some(
            "the host refused to set the registers of a process, as it does if the processor's \
             extended state is larger than this kernel of User Mode Linux keeps",
        )
    }

    /// Returns the panic if there is one, and the last lines of `before` and the console.
    pub(super) fn last_lines(&self, before: &[u8]) -> String {
        // A console that cannot be read is left out of the message.
        let console = self.read(self.tail()).unwrap_or_default();
        let before = String::from_utf8_lossy(before);
        let all = before.lines().chain(console.lines());
        let lines: Vec<&str> = all
            .map(str::trim)
            .filter(|line| !line.starts_with("remove_umid_dir") && !is_stack(line))
            .collect();
        let panic = lines.iter().position(|line| line.contains(PANIC));
        let last = lines.len().saturating_sub(LINES);
        let panic = panic.filter(|&at| at < last).map(|at| lines[at]);
        panic.into_iter().chain(lines[last..].iter().copied()).collect::<Vec<_>>().join("; ")
    }

    fn tail(&self) -> u64 {
        self.length().unwrap_or_default().saturating_sub(TAIL)
    }

    /// Reads from a position to the end, without moving the position at which the kernel writes.
    fn read(&self, from: u64) -> io::Result<String> {
        let length = self.length()?.saturating_sub(from).min(TAIL);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        let mut read = 0;
        while read < bytes.len() {
            match self.file.read_at(&mut bytes[read..], from + read as u64)? {
                0 => break,
                length => read += length,
            }
        }
        bytes.truncate(read);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Returns whether a line is empty, or a piece of a stack: numbers of eight hexadecimal digits.
fn is_stack(line: &str) -> bool {
    let is_number = |word: &str| word.len() == 8 && word.chars().all(|c| c.is_ascii_hexdigit());
    line.split(' ').all(|word| word.is_empty() || is_number(word))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn with(text: &str) -> Console {
        let console = Console::new().unwrap();
        console.writer().unwrap().write_all(text.as_bytes()).unwrap();
        console
    }

    #[test]
    fn a_panic_is_found_once_however_it_is_written() {
        let mut console = with("checking\nKernel pa");
        assert!(!console.has_panic().unwrap());
        console.writer().unwrap().write_all(b"nic - not syncing: no init\n").unwrap();
        assert!(console.has_panic().unwrap());
        assert!(!console.has_panic().unwrap());
        console.writer().unwrap().write_all(b" [<6002c0dd>] userspace+0x1\n").unwrap();
        assert!(!console.has_panic().unwrap());
        assert_eq!(console.known_reason(), None);
        console.writer().unwrap().write_all(b" [<0>] ? put_fp_registers+0x10\n").unwrap();
        assert!(console.known_reason().is_some());
    }

    #[test]
    fn the_panic_comes_before_the_last_lines() {
        let trace: String =
            (0..50).map(|n| format!(" [<{n}>] f+0x{n}\n 00000000 606944ba\n\n")).collect();
        let console = with(&format!("up\nKernel panic - not syncing: no init\n{trace}"));
        let lines = console.last_lines(b"of the launcher\n");
        let shown: Vec<&str> = lines.split("; ").collect();
        assert_eq!(shown.len(), LINES + 1, "{lines}");
        assert_eq!(shown[0], "Kernel panic - not syncing: no init");
        assert_eq!((shown[1], shown[10]), ("[<40>] f+0x40", "[<49>] f+0x49"));
        let short = with("a\n\nKernel panic\nb\n");
        assert_eq!(short.last_lines(b""), "a; Kernel panic; b");
        assert_eq!(with("").last_lines(b""), "");
    }

    #[test]
    fn of_a_long_console_the_end_is_read() {
        let mut console = with(&"x".repeat(200_000));
        console.writer().unwrap().write_all(b"\nKernel panic - late\n").unwrap();
        assert!(console.has_panic().unwrap());
        assert!(console.last_lines(b"").ends_with("Kernel panic - late"));
    }
}
