//! The outside: starts the machine, reads its frames, and ends it.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::boot::Boot;
use super::channel::Outer;
use super::clients::Clients;
use super::console::Console;
use super::find::{Parts, parts};
use super::frame::{Frame, Message};
use super::inside::{INSIDE, WAKE};
use super::preload::{self, Preload};
use super::{During, job_encoding};
use crate::{Ended, Job, JobOutput, MachineError, Unavailable};

/// The default memory of a machine, in MiB.
const MEMORY: u32 = 1024;

/// The longest time that a killed machine may take to end: on a busy host its processes wait for a
/// processor, too.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(60);

/// The interval at which the channel is read when no wake-up arrives.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The number of polls during which the console may grow after a panic before its last lines are
/// taken.
const TRACE_POLLS: usize = 6;

/// A machine that can be started any number of times.
#[derive(Clone, Debug)]
pub struct Machine {
    parts: Parts,
    memory: u32,
    limit: Option<Duration>,
    stop: Option<Arc<AtomicBool>>,
    link: Option<Link>,
    control: Option<Arc<UnixListener>>,
}

/// A machine's network.
#[derive(Clone, Debug)]
struct Link {
    namespace: String,
    device: String,
}

impl Machine {
    /// Looks for everything that the machine needs.
    ///
    /// # Errors
    /// If a program or a kernel module is missing, or the host does not allow what the machine
    /// needs. The error names it.
    pub fn find() -> Result<Self, Unavailable> {
        let parts = parts(MEMORY)?;
        Ok(Self { parts, memory: MEMORY, limit: None, stop: None, link: None, control: None })
    }

    /// Returns the name and release of the machine's kernel: `User Mode Linux 6.1.176`.
    pub fn kernel(&self) -> String {
        format!("User Mode Linux {}", self.parts.release)
    }

    /// Sets the machine's memory, in MiB. The host only provides what the machine uses.
    #[must_use]
    pub fn with_memory(self, mib: u32) -> Self {
        Self { memory: mib, ..self }
    }

    /// Sets a time limit for each job.
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Makes the machine end soon after this becomes true.
    #[must_use]
    pub fn with_stop(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Gives the machine an Ethernet device, `vec0`, which is down at first. The other end of the
    /// link is this TAP device in a named network namespace of the host. Needs root.
    #[must_use]
    pub fn with_link(self, namespace: &str, device: &str) -> Self {
        Self { link: Some(Link { namespace: namespace.into(), device: device.into() }), ..self }
    }

    /// Lets a [`MachineClient`](crate::MachineClient) of this socket run more jobs in the machine
    /// and connect to servers there while the first job runs. The permissions of the socket decide
    /// who may connect.
    #[must_use]
    pub fn with_control(self, socket: UnixListener) -> Self {
        Self { control: Some(Arc::new(socket)), ..self }
    }

    /// Starts the machine, runs one job in it, passes the job's output to `hear` as it arrives,
    /// and waits until the machine has ended. The calling thread must outlive the machine, which
    /// is killed when the thread ends.
    ///
    /// # Errors
    /// If the machine cannot be started, does not get to its job, panics, ends before its job, reaches
    /// its time limit or is stopped. In every case the machine has ended when this returns.
    pub fn run(
        &self,
        job: &Job,
        hear: &mut dyn FnMut(JobOutput<'_>),
    ) -> Result<Ended, MachineError> {
        let until = self.limit.map(|limit| Instant::now() + limit);
        let mut channel = Outer::new(&job_encoding::write(job)).during("write down the job")?;
        let mut clients = Clients::of(self.control.clone()).during("listen for clients")?;
        let mut machine = self.start(&channel).during("start the small machine")?;
        let mut boot = Some(Boot::of(machine.child.id()));
        loop {
            let line = machine
                .listen(self.time_to_wait(until)?, &clients)
                .during("wait for the small machine")?;
            // Read the frames even if the line is closed: the machine may have written some
            // before it ended.
            while let Some(frame) = channel.next().during("read what the small machine says")? {
                match frame {
                    Frame { stream: 0, message } => match message {
                        Message::Out(bytes) => hear(JobOutput::Out(&bytes)),
                        Message::Err(bytes) => hear(JobOutput::Err(&bytes)),
                        Message::Ended(how) => return Ok(how),
                        Message::Cannot(why) => return Err(MachineError::Inside(why)),
                        Message::Begun => boot = None,
                        _ => {}
                    },
                    frame => clients.hear(&frame),
                }
            }
            if line == Line::Closed {
                return Err(MachineError::Died { console: machine.last_lines() });
            }
            if machine.console.has_panic().during("read the small machine's console")? {
                return Err(machine.panicked(boot.is_some()));
            }
            if let Some(why) = boot.as_mut().and_then(Boot::fault) {
                return Err(MachineError::Boot { why, console: machine.last_lines() });
            }
            let mut is_written = false;
            for frame in clients.serve().during("accept a client")? {
                channel.write(&frame).during("write to the small machine")?;
                is_written = true;
            }
            if is_written {
                machine.wake().during("wake the small machine")?;
            }
        }
    }

    /// Returns how long to wait for the machine before checking the limit and the stop flag again.
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

    fn start(&self, channel: &Outer) -> io::Result<Running> {
        let (line, inner) = UnixStream::pair()?;
        line.set_nonblocking(true)?;
        let console = Console::new()?;
        let preload = Preload::open()?;
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
            .stderr(console.writer()?)
            .env("TMPDIR", &self.parts.memory)
            // Ctrl-C is handled by this process; the machine ends with it.
            .process_group(0);
        if let Some(preload) = &preload {
            command.env(preload::VARIABLE, preload.value());
        }
        let child = on_one_cpu(|| command.spawn())?;
        Ok(Running { child, line, console, unexpected: Vec::new() })
    }

    fn command_line(&self) -> Vec<String> {
        let words = [
            // The root is the host's file system, mounted read-only.
            "rootfstype=hostfs root=/dev/root rootflags=/ ro",
            // The channel, the serial line, and a console for the kernel's most serious messages.
            "ubda=/proc/self/fd/0 ssl0=fd:1,fd:1 con=null con0=null,fd:2 quiet loglevel=1",
            // A folder where the machine cannot leave files.
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

/// Starts a process that stays on one CPU. The machine has only one, and keeps switching between
/// its kernel and its processes, which are host processes: switches between CPUs take three times
/// as long.
fn on_one_cpu(start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let all = sched_getaffinity(None)?;
    let mut cpus = CpuSet::new();
    cpus.set(sched_getcpu());
    sched_setaffinity(None, &cpus)?;
    let child = start();
    sched_setaffinity(None, &all)?;
    child
}

/// The state of the serial line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Open,
    /// The machine is gone.
    Closed,
}

/// A running machine. Dropping it ends the machine.
#[derive(Debug)]
struct Running {
    child: Child,
    line: UnixStream,
    console: Console,
    /// Bytes from the line that are not wake-ups.
    unexpected: Vec<u8>,
}

impl Running {
    /// Announces frames in the channel.
    fn wake(&mut self) -> io::Result<()> {
        match self.line.write_all(&[WAKE]) {
            Ok(()) => Ok(()),
            Err(error) => match error.kind() {
                // A full line means that the inside has wake-ups to read already. A closed line is
                // noticed when it is read.
                io::ErrorKind::WouldBlock | io::ErrorKind::BrokenPipe => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Waits for a wake-up or a client, at most this long.
    fn listen(&mut self, time_to_wait: Duration, clients: &Clients) -> io::Result<Line> {
        let time = Timespec {
            tv_sec: time_to_wait.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: time_to_wait.subsec_nanos().into(),
        };
        let own = PollFd::new(&self.line, PollFlags::IN);
        let mut all: Vec<PollFd<'_>> = [own].into_iter().chain(clients.awaited()).collect();
        match poll(&mut all, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        drop(all);
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

    /// Returns the error of a machine whose kernel panicked: a kernel of User Mode Linux does not
    /// end then, but loops.
    fn panicked(&mut self, is_booting: bool) -> MachineError {
        // The trace follows the panic.
        let mut length = None;
        for _ in 0..TRACE_POLLS {
            let now = self.console.length().ok();
            if now == length {
                break;
            }
            length = now;
            // A machine that is gone meanwhile has written all of it.
            if !matches!(self.listen(POLL_INTERVAL, &Clients::default()), Ok(Line::Open)) {
                break;
            }
        }
        let console = self.last_lines();
        if !is_booting {
            return MachineError::Panicked { console };
        }
        let why = match self.console.known_reason() {
            Some(reason) => format!("its kernel panicked, because {reason}"),
            None => "its kernel panicked".to_owned(),
        };
        MachineError::Boot { why, console }
    }

    /// Returns the last lines of the kernel's console and of the command that starts the kernel.
    fn last_lines(&self) -> String {
        self.console.last_lines(&self.unexpected)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The child may have ended already. The rest of the PID namespace ends with its first
        // process, and the line closes when the last process is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let limit = Instant::now() + SHUTDOWN_LIMIT;
        let clients = Clients::default();
        while Instant::now() < limit
            && matches!(self.listen(POLL_INTERVAL, &clients), Ok(Line::Open))
        {}
    }
}
