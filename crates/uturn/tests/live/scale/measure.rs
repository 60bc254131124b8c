//! How long a program runs, and how much memory it has at most.

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// What a program took.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    seconds: f64,
    peak: u64,
    /// Time on processors, in hundredths of a second.
    busy: u64,
    /// What it took until it printed the line that the measurement waits for.
    first: Option<(f64, u64)>,
}

impl Measured {
    /// Runs a program to its end. A line of stderr that begins with `mark` ends its first part.
    pub(super) fn of(mut command: Command, mark: &str) -> Self {
        let mark = mark.to_owned();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (start, id) = (Instant::now(), child.id());
        let (mut stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let output = thread::spawn(move || {
            let mut all = Vec::new();
            stdout.read_to_end(&mut all).unwrap();
            String::from_utf8_lossy(&all).into_owned()
        });
        let messages = thread::spawn(move || {
            let (mut all, mut first) = (String::new(), None);
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if !mark.is_empty() && line.starts_with(&mark) {
                    let peak = memory_of(id, "VmHWM:").unwrap_or_default();
                    first.get_or_insert((start.elapsed().as_secs_f64(), peak));
                }
                all += &(line + "\n");
            }
            (all, first)
        });
        // The kernel keeps the peak until the process ends: the last look is the one that counts.
        let (done, is_done) = mpsc::channel::<()>();
        let peak = thread::spawn(move || {
            let (mut peak, mut busy) = (0, 0);
            loop {
                peak = memory_of(id, "VmHWM:").unwrap_or(peak).max(peak);
                busy = busy_of(id).unwrap_or(busy).max(busy);
                match is_done.recv_timeout(Duration::from_millis(5)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return (peak, busy),
                }
            }
        });
        let code = child.wait().unwrap().code();
        let seconds = start.elapsed().as_secs_f64();
        drop(done);
        let (stderr, first) = messages.join().unwrap();
        let (stdout, (peak, busy)) = (output.join().unwrap(), peak.join().unwrap());
        Self { code, stdout, stderr, seconds, peak, busy, first }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let busy = self.busy as f64 / 100.0;
        write!(f, "{:>7.1} s  {:>6} MB  {busy:>6.1} s of CPU", self.seconds, self.peak >> 20)?;
        match self.first {
            Some((seconds, peak)) => write!(f, "  (read: {seconds:.1} s, {} MB)", peak >> 20),
            None => Ok(()),
        }
    }
}

/// The time on processors of a process, in the kernel's hundredths of a second.
fn busy_of(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // After the name, which may have spaces in it.
    let fields = stat.rsplit(')').next()?.split_whitespace().skip(11).take(2);
    fields.map(|field| field.parse::<u64>().ok()).sum()
}

/// A field of `/proc/ID/status`, in bytes.
pub(super) fn memory_of(id: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}
