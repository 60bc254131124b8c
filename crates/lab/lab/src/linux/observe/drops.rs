//! Reads where and why the kernel drops packets, from the tracepoint `skb:kfree_skb`.
//!
//! The tracepoint reports every packet of the machine, without its addresses. The tracepoint
//! `net:netif_receive_skb` reports the link, length and time of arrival of the same buffer, which
//! identify the frame that a tap has seen.
//!
//! The tracer uses its own tracing instance in a private mount of tracefs, and removes both.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::tap::Frame;

/// The size of the trace buffer of each processor.
const BUFFER_KB: &str = "8192";

/// The largest difference between the times of taps and tracer, at first and after packets have
/// aligned the clocks.
const APART: Duration = Duration::from_millis(1);
const CLOSE: Duration = Duration::from_micros(100);

const HEADER: usize = 14;

/// The reason for the unread data of a closed socket, which was delivered.
const PURGED: &str = "QUEUE_PURGE";

/// Records drops until it is dropped.
#[derive(Debug)]
pub(crate) struct Tracer {
    files: Files,
    name: String,
    /// The difference between the taps' clock and the tracer's.
    offset: Duration,
}

/// The kernel's tracing files.
#[derive(Debug)]
struct Files(OwnedFd);

impl Files {
    fn mount() -> io::Result<Self> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        Ok(Self(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?))
    }

    fn instance(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/instances/{name}", self.0.as_raw_fd()))
    }
}

/// Removes the tracing instance of a dead run. Returns whether there was one.
pub(crate) fn forget(name: &str) -> io::Result<bool> {
    let Ok(files) = Files::mount() else { return Ok(false) };
    match fs::remove_dir(files.instance(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

impl Tracer {
    /// Starts to record.
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let files = Files::mount()?;
        fs::create_dir(files.instance(name))?;
        let mut tracer = Self { files, name: name.into(), offset: Duration::ZERO };
        for (file, value) in [
            ("trace_clock", "mono"),
            ("buffer_size_kb", BUFFER_KB),
            ("events/net/netif_receive_skb/enable", "1"),
            ("events/skb/kfree_skb/enable", "1"),
            ("events/skb/consume_skb/enable", "1"),
        ] {
            tracer.write(file, value)?;
        }
        tracer.offset = tracer.compare_clocks()?;
        Ok(tracer)
    }

    /// Discards what was recorded so far.
    pub(crate) fn begin(&self) -> io::Result<()> {
        self.write("trace", "")
    }

    /// Returns the drops since [`Tracer::begin`].
    pub(crate) fn take(&self) -> io::Result<Drops> {
        Ok(Drops::read(&self.read()?, self.offset))
    }

    /// Reads both clocks several times and takes the closest pair.
    fn compare_clocks(&self) -> io::Result<Duration> {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut around = Vec::new();
        for number in 0..8 {
            let before = now();
            self.write("trace_marker", &format!("uturn {number}"))?;
            around.push((before, now()));
        }
        let text = self.read()?;
        let marks = around.into_iter().enumerate().filter_map(|(number, (before, after))| {
            let line =
                text.lines().find(|line| line.trim_end().ends_with(&format!("uturn {number}")))?;
            Some((after - before, (before + after) / 2 - time_of(line)?))
        });
        marks
            .min()
            .map(|(_, offset)| offset)
            .ok_or_else(|| io::Error::other("the tracer does not show what was written into it"))
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.files.instance(&self.name).join(file), value)
    }

    fn read(&self) -> io::Result<String> {
        let bytes = fs::read(self.files.instance(&self.name).join("trace"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // The next sweep removes what could not be removed now.
        let _ = fs::remove_dir(self.files.instance(&self.name));
    }
}

/// The packets that the tracer saw arriving, and those of them that were dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drops {
    arrivals: Vec<Arrival>,
    discards: Vec<Discard>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Discard {
    /// The index of the packet in `arrivals`.
    arrival: usize,
    reason: String,
    location: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Arrival {
    at: Duration,
    link: String,
    length: usize,
}

impl Drops {
    /// Reads the tracer's text.
    fn read(text: &str, offset: Duration) -> Self {
        let mut latest: HashMap<&str, usize> = HashMap::new();
        let mut all = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some(at) = time_of(line) else { continue };
            let field = |name| field(line, name);
            if line.contains(": netif_receive_skb: ") {
                let (Some(buffer), Some(link)) = (field(" skbaddr="), field(" dev=")) else {
                    continue;
                };
                let length = field(" len=").and_then(|text| text.parse().ok()).unwrap_or_default();
                latest.insert(buffer, all.arrivals.len());
                all.arrivals.push(Arrival { at: at + offset, link: link.into(), length });
            } else if line.contains(": consume_skb: ") {
                // The packet was consumed, and its buffer may be reused.
                field(" skbaddr=").and_then(|buffer| latest.remove(buffer));
            } else if line.contains(": kfree_skb: ")
                && let Some(arrival) = field(" skbaddr=").and_then(|buffer| latest.remove(buffer))
            {
                let location = field(" location=").unwrap_or("?");
                let location = location.split(['+', '.']).next().unwrap_or(location).to_owned();
                let reason = field(" reason: ").unwrap_or("no reason given").to_owned();
                if reason != PURGED {
                    all.discards.push(Discard { arrival, reason, location });
                }
            }
        }
        all
    }

    /// Returns the frames that were dropped where they arrived, with reason and location.
    pub(super) fn ends(&self, frames: &[Frame]) -> HashMap<usize, (&str, &str)> {
        // The packets themselves give the best estimate of the clocks' difference.
        let mut late: Vec<i128> = frames
            .iter()
            .filter_map(|frame| {
                let same = self.arrivals.iter().filter(|arrival| arrival.is(frame));
                let all =
                    same.map(|arrival| arrival.at.as_nanos() as i128 - frame.at.as_nanos() as i128);
                all.min_by_key(|late| late.abs())
            })
            .filter(|late| late.unsigned_abs() < APART.as_nanos())
            .collect();
        late.sort_unstable();
        let late = late.get(late.len() / 2).copied().unwrap_or_default();
        let mut ends = HashMap::new();
        for discard in &self.discards {
            let arrival = &self.arrivals[discard.arrival];
            let apart = |frame: &Frame| {
                let late_by = arrival.at.as_nanos() as i128 - frame.at.as_nanos() as i128;
                (late_by - late).unsigned_abs()
            };
            let same = frames.iter().enumerate().filter(|(_, frame)| arrival.is(frame));
            if let Some((at, frame)) = same.min_by_key(|(_, frame)| apart(frame))
                && apart(frame) < CLOSE.as_nanos()
            {
                ends.insert(at, (&*discard.reason, &*discard.location));
            }
        }
        ends
    }
}

impl Arrival {
    /// Returns whether the arrival matches a frame in everything but the time.
    fn is(&self, frame: &Frame) -> bool {
        !frame.leaves && self.link == frame.link && self.length + HEADER == frame.bytes.len()
    }
}

/// Returns the time of a line: ` … 1234.567890: event: …`.
fn time_of(line: &str) -> Option<Duration> {
    let (before, _) = line.split_once(": ")?;
    let (seconds, micros) = before.rsplit_once(' ')?.1.split_once('.')?;
    Some(Duration::new(seconds.parse().ok()?, micros.parse::<u32>().ok()? * 1000))
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(name)?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# tracer: nop
 ksoftirqd/0-15  [000] ..s2.   100.000010: netif_receive_skb: dev=eth0 skbaddr=00aa len=60
          <idle>-0  [000] ..s2.   100.000012: kfree_skb: skbaddr=00aa rx_sk=0 protocol=2048 location=ip_rcv_finish_core.isra.0+0x1/0x2 reason: IP_LOCAL_SOURCE
          <idle>-0  [000] ..s2.   100.000013: kfree_skb: skbaddr=00bb rx_sk=0 protocol=2048 location=x+0x1/0x2 reason: NO_SOCKET
";

    fn frame(micros: u64, link: &str, leaves: bool, length: usize) -> Frame {
        let at = Duration::from_secs(1100) + Duration::from_micros(micros);
        Frame { place: 0, link: link.into(), leaves, at, bytes: vec![0; length] }
    }

    #[test]
    fn a_drop_is_found_by_how_the_packet_came() {
        let drops = Drops::read(TEXT, Duration::from_secs(1000));
        let end = ("IP_LOCAL_SOURCE", "ip_rcv_finish_core");
        // Only the nearest frame matches, and none that went another way.
        let frames = [frame(30, "eth0", false, 74), frame(9, "eth0", false, 74)];
        assert_eq!(drops.ends(&frames), HashMap::from([(1, end)]));
        for other in [
            frame(9, "eth0", true, 74),
            frame(9, "cbr0", false, 74),
            frame(9, "eth0", false, 75),
            frame(5000, "eth0", false, 74),
        ] {
            assert_eq!(drops.ends(&[other]), HashMap::new());
        }
    }

    #[test]
    fn what_was_delivered_was_not_dropped() {
        let line = |what: &str| format!(" x-1 [000] ..s2. 100.000010: {what}\n");
        let arrival = line("netif_receive_skb: dev=eth0 skbaddr=a len=60");
        let discard = |why: &str| {
            line(&format!("kfree_skb: skbaddr=a protocol=2048 location=f+0x1 reason: {why}"))
        };
        let consumed = line("consume_skb: skbaddr=a location=tcp_ack+0x1/0x2");
        let read = |text: &[&str]| Drops::read(&text.concat(), Duration::ZERO).discards.len();
        assert_eq!(read(&[&arrival, &discard("NO_SOCKET")]), 1);
        assert_eq!(read(&[&arrival, &consumed, &discard("NO_SOCKET")]), 0);
        assert_eq!(read(&[&arrival, &discard(PURGED)]), 0);
    }

    #[test]
    fn clocks_are_compared_by_the_packets() {
        let line = |at: &str, what: &str| format!(" x-1 [000] ..s2. {at}: {what}\n");
        let arrival =
            |at, buffer| line(at, &format!("netif_receive_skb: dev=eth0 skbaddr={buffer} len=60"));
        let text = [
            arrival("100.000100", "a"),
            arrival("100.000200", "b"),
            arrival("100.000300", "c"),
            line("100.000301", "kfree_skb: skbaddr=c protocol=2048 location=f+0x1 reason: X"),
        ];
        let drops = Drops::read(&text.concat(), Duration::from_secs(1000));
        let frames = [140, 240, 340].map(|at| frame(at, "eth0", false, 74));
        assert_eq!(drops.ends(&frames), HashMap::from([(2, ("X", "f"))]));
    }
}
