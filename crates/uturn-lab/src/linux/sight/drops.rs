//! Where the kernel drops packets, and why: the tracepoint `skb:kfree_skb`.
//!
//! It tells of every packet of the machine, without its addresses. Which one it was is found
//! by what the tracepoint `net:netif_receive_skb` says of the same buffer: the link, the
//! length and the time it came, which a tap has seen too.
//!
//! An instance of its own holds what is recorded, in a mount that nobody else sees; both go
//! with it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen,
};

use super::tap::Frame;

/// Room for what is recorded, for each processor.
const BUFFER_KB: &str = "8192";

/// How far the times of a tap and of the tracer may be apart.
const APART: Duration = Duration::from_micros(400);

const HEADER: usize = 14;

/// Records drops as long as it lives.
#[derive(Debug)]
pub(crate) struct Tracer {
    files: Files,
    name: String,
    /// What has to be added to the tracer's times to have the taps'.
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

/// Removes what a run that died has left of this name. Whether there was any.
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
        ] {
            tracer.write(file, value)?;
        }
        tracer.offset = tracer.compare_clocks()?;
        Ok(tracer)
    }

    /// Forgets what was recorded so far.
    pub(crate) fn begin(&self) -> io::Result<()> {
        self.write("trace", "")
    }

    /// What was dropped since.
    pub(crate) fn take(&self) -> io::Result<Drops> {
        Ok(Drops::read(&self.read()?, self.offset))
    }

    /// Notes the time here and there, several times: the closest pair counts.
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
            let line = text.lines().find(|line| line.trim_end().ends_with(&format!("uturn {number}")))?;
            Some((after - before, (before + after) / 2 - time_of(line)?))
        });
        marks.min().map(|(_, offset)| offset).ok_or_else(|| {
            io::Error::other("the tracer does not show what was written into it")
        })
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
        // What could not be removed now, the next sweep finds.
        let _ = fs::remove_dir(self.files.instance(&self.name));
    }
}

/// The packets that were dropped after they had come in by a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drops(Vec<Gone>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Gone {
    came: Came,
    reason: String,
    location: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Came {
    at: Duration,
    link: String,
    length: usize,
}

impl Drops {
    /// Reads the tracer's text.
    fn read(text: &str, offset: Duration) -> Self {
        let mut came: HashMap<&str, Came> = HashMap::new();
        let mut all = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some(at) = time_of(line) else { continue };
            let field = |name| field(line, name);
            if line.contains(": netif_receive_skb: ") {
                let (Some(buffer), Some(link)) = (field(" skbaddr="), field(" dev=")) else {
                    continue;
                };
                let length = field(" len=").and_then(|text| text.parse().ok()).unwrap_or_default();
                came.insert(buffer, Came { at: at + offset, link: link.into(), length });
            } else if line.contains(": kfree_skb: ")
                && let Some(came) = field(" skbaddr=").and_then(|buffer| came.remove(buffer))
            {
                let location = field(" location=").unwrap_or("?");
                let location = location.split(['+', '.']).next().unwrap_or(location).to_owned();
                let reason = field(" reason: ").unwrap_or("no reason told").to_owned();
                all.push(Gone { came, reason, location });
            }
        }
        Self(all)
    }

    /// Why a frame that has come in went no further, and where that was.
    pub(super) fn of(&self, frame: &Frame) -> Option<(&str, &str)> {
        if frame.leaves {
            return None;
        }
        let is_it = |gone: &&Gone| {
            gone.came.link == frame.link && gone.came.length + HEADER == frame.bytes.len()
        };
        let apart = |gone: &Gone| gone.came.at.abs_diff(frame.at);
        let nearest = self.0.iter().filter(is_it).min_by_key(|gone| apart(gone))?;
        (apart(nearest) < APART).then_some((&nearest.reason, &nearest.location))
    }
}

/// ` … 1234.567890: event: …`.
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

    #[test]
    fn a_drop_is_found_by_how_the_packet_came() {
        let offset = Duration::from_secs(1000);
        let drops = Drops::read(TEXT, offset);
        let at = Duration::new(1100, 14_000);
        let frame = Frame { place: 0, link: "eth0".into(), leaves: false, at, bytes: vec![0; 74] };
        assert_eq!(drops.of(&frame), Some(("IP_LOCAL_SOURCE", "ip_rcv_finish_core")));
        let other = |change: fn(&mut Frame)| {
            let mut frame = frame.clone();
            change(&mut frame);
            drops.of(&frame)
        };
        assert_eq!(other(|frame| frame.leaves = true), None);
        assert_eq!(other(|frame| frame.link = "cbr0".into()), None);
        assert_eq!(other(|frame| frame.at += Duration::from_millis(1)), None);
        assert_eq!(other(|frame| frame.bytes.push(0)), None);
    }
}
