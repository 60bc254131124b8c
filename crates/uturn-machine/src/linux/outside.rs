//! The outside: starts the machine, listens to it, ends it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::channel::{Frame, Reader};
use super::find::{Parts, parts};
use super::inside::{INSIDE, WAKE};
use super::{During, job_encoding};
use crate::{Ended, Job, JobOutput, MachineError, Unavailable};

/// How much memory a machine has that nobody gave more or less.
const MEMORY: u32 = 1024;

/// How long a machine that is told to end may take for it.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// How often the tape is looked at when the line is silent.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A machine that can be started, as often as one likes.
#[derive(Clone, Debug)]
pub struct Machine {
    parts: Parts,
    memory: u32,
    limit: Option<Duration>,
    stop: Option<Arc<AtomicBool>>,
    link: Option<Link>,
}

/// A machine's network.
#[derive(Clone, Debug)]
struct Link {
    namespace: String,
    device: String,
}

impl Machine {
    /// Looks for all that it takes.
    ///
    /// # Errors
    /// When something is missing, or this host does not allow it: the error says what.
    pub fn find() -> Result<Self, Unavailable> {
        Ok(Self { parts: parts(MEMORY)?, memory: MEMORY, limit: None, stop: None, link: None })
    }

    /// What its kernel is: `User Mode Linux 6.1.176`.
    pub fn kernel(&self) -> String {
        format!("User Mode Linux {}", self.parts.release)
    }

    /// Gives it so much memory; it takes from the host only what it uses.
    #[must_use]
    pub fn with_memory(self, mib: u32) -> Self {
        Self { memory: mib, ..self }
    }

    /// Ends it after this time, whatever its job does.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Ends it soon after this becomes true.
    #[must_use]
    pub fn with_stop(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Gives it an Ethernet device, `vec0`, which is down at first. Its other end is this TAP
    /// device in a network namespace of the host that has a name. It takes root.
    #[must_use]
    pub fn with_link(self, namespace: &str, device: &str) -> Self {
        Self { link: Some(Link { namespace: namespace.into(), device: device.into() }), ..self }
    }

    /// Starts the machine, runs one job in it, tells `hear` what the job says while it says
    /// it, and waits until all is over. Must be called from a thread that lives at least as
    /// long: the machine ends with it.
    ///
    /// # Errors
    /// When the machine cannot be started, does not live as long as its job, or the time is
    /// over. Whatever happens, it is gone afterwards.
    pub fn run(
        &self,
        job: &Job,
        hear: &mut dyn FnMut(JobOutput<'_>),
    ) -> Result<Ended, MachineError> {
        let until = self.limit.map(|limit| Instant::now() + limit);
        let mut channel = Reader::new(&job_encoding::write(job)).during("write down the job")?;
        let mut machine = self.start(&channel).during("start the small machine")?;
        loop {
            let line =
                machine.listen(self.time_to_wait(until)?).during("wait for the small machine")?;
            // What it said last it said before it ended.
            while let Some(frame) = channel.next().during("read what the small machine says")? {
                match frame {
                    Frame::Out(bytes) => hear(JobOutput::Out(&bytes)),
                    Frame::Err(bytes) => hear(JobOutput::Err(&bytes)),
                    Frame::Ended(how) => return Ok(how),
                    Frame::Cannot(why) => return Err(MachineError::Inside(why)),
                }
            }
            if line == Line::Closed {
                return Err(MachineError::Died { said: machine.last_lines() });
            }
        }
    }

    /// How long to wait for the machine before looking again.
    fn time_to_wait(&self, until: Option<Instant>) -> Result<Duration, MachineError> {
        if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::SeqCst)) {
            return Err(MachineError::Stopped);
        }
        let Some((until, limit)) = until.zip(self.limit) else { return Ok(POLL_INTERVAL) };
        match until.checked_duration_since(Instant::now()) {
            None | Some(Duration::ZERO) => Err(MachineError::Limit(limit)),
            Some(left) => Ok(left.min(POLL_INTERVAL)),
        }
    }

    fn start(&self, channel: &Reader) -> io::Result<Running> {
        let (line, inner) = UnixStream::pair()?;
        line.set_nonblocking(true)?;
        let console = File::from(memfd_create("uturn-machine-says", MemfdFlags::CLOEXEC)?);
        let place = self.link.iter().flat_map(|link| ["ip", "netns", "exec", &link.namespace]);
        let mut words = place.chain(self.parts.launcher.iter().map(String::as_str));
        let program = words.next().ok_or_else(|| io::Error::other("no leash"))?;
        let mut command = Command::new(program);
        command
            .args(words)
            .arg(&self.parts.kernel)
            .args(self.command_line())
            .stdin(channel.memory()?)
            .stdout(OwnedFd::from(inner))
            .stderr(console.try_clone()?)
            .env("TMPDIR", &self.parts.memory)
            // Ctrl-C is for us; the machine ends with us.
            .process_group(0);
        let child = on_one_cpu(|| command.spawn())?;
        Ok(Running { child, line, console, unexpected: Vec::new() })
    }

    fn command_line(&self) -> Vec<String> {
        let words = [
            // Its root are the host's files; it may not write to them.
            "rootfstype=hostfs root=/dev/root rootflags=/ ro",
            // The tape, the line, and where the kernel may complain of the worst.
            "ubda=/proc/self/fd/0 ssl0=fd:1,fd:1 con=null con0=null,fd:2 quiet loglevel=1",
            // A place where it cannot leave files.
            "uml_dir=/proc noreboot",
        ];
        let words = words.iter().flat_map(|words| words.split(' ')).map(String::from);
        let own = [
            format!("mem={}M", self.memory),
            format!("init={}", self.parts.init.display()),
            format!("{INSIDE}={}", self.parts.release),
        ];
        let link = self.link.iter().map(|link| {
            let device = &link.device;
            format!("vec0:transport=tap,ifname={device},depth=64,gro=0")
        });
        words.chain(own).chain(link).collect()
    }
}

/// Starts a process that stays on one CPU. The machine has no more than one, and goes back
/// and forth between its kernel and its processes all the time, which are processes of the
/// host: from one CPU to another that takes three times as long.
fn on_one_cpu(start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let all = sched_getaffinity(None)?;
    let mut cpus = CpuSet::new();
    cpus.set(sched_getcpu());
    sched_setaffinity(None, &cpus)?;
    let child = start();
    sched_setaffinity(None, &all)?;
    child
}

/// How the line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Open,
    /// The machine is gone.
    Closed,
}

/// A machine that runs. Dropping it ends it.
#[derive(Debug)]
struct Running {
    child: Child,
    line: UnixStream,
    console: File,
    /// What came over the line and was not meant to wake.
    unexpected: Vec<u8>,
}

impl Running {
    /// Waits until there may be something new.
    fn listen(&mut self, time_to_wait: Duration) -> io::Result<Line> {
        let time = Timespec {
            tv_sec: time_to_wait.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: time_to_wait.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.line, PollFlags::IN)], Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 4096];
        loop {
            match self.line.read(&mut bytes) {
                Ok(0) => return Ok(Line::Closed),
                Ok(length) => {
                    self.unexpected.extend(bytes[..length].iter().filter(|&&byte| byte != WAKE));
                    let much = self.unexpected.len().saturating_sub(64 * 1024);
                    self.unexpected.drain(..much);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(Line::Open),
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::ConnectionReset => return Ok(Line::Closed),
                    _ => return Err(error),
                },
            }
        }
    }

    /// The last lines that the kernel, or what starts it, said.
    fn last_lines(&mut self) -> String {
        let mut said = std::mem::take(&mut self.unexpected);
        // What cannot be read cannot be said.
        let _ = self.console.seek(SeekFrom::Start(0));
        let _ = self.console.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("remove_umid_dir"))
            .collect();
        lines[lines.len().saturating_sub(10)..].join("; ")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever was killed already needs no killing; the rest of the namespace goes with
        // its first process, and the line is cut when the last of them is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let limit = Instant::now() + SHUTDOWN_LIMIT;
        while Instant::now() < limit && matches!(self.listen(POLL_INTERVAL), Ok(Line::Open)) {}
    }
}
