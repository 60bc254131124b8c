//! The inside: the machine's first process.
//!
//! It sets the machine up ([`root`], [`tools`]), runs the job that the channel holds, passes on
//! the job's output, and powers the machine off when the job ends or when the outside closes the
//! serial line, because then the caller is gone. Meanwhile it serves other clients of the machine
//! ([`streams`]).

mod streams;

use std::convert::Infallible;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus, getpid, pidfd_open, wait};
use rustix::system::{RebootCommand, reboot, sethostname};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use self::streams::Streams;
use super::channel::Inner;
use super::frame::{Frame, MAX, Message};
use super::{job_encoding, root, tools};
use crate::{Ended, Job};

/// The environment variable of the first process, set on the kernel's command line to the
/// kernel's release.
pub(super) const INSIDE: &str = "UTURN_MACHINE";

/// The host name inside the machine.
const HOSTNAME: &str = "uturn-machine";

/// The byte on the serial line that announces a new frame in the channel.
pub(super) const WAKE: u8 = 6;

/// The interval at which orphaned processes are reaped.
const REAP_INTERVAL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Returns whether this process is the first process of a machine. If so, it must call [`inside`]
/// before anything else.
pub fn is_inside() -> bool {
    getpid().is_init() && env::var_os(INSIDE).is_some()
}

/// Runs the machine's first process. The machine ends when this function returns.
pub fn inside() -> ExitCode {
    let Err(why) = serve();
    // A report can only go to the kernel's console, which may not be read.
    let _ = fs::write("/dev/console", format!("uturn: {why}\n"));
    let _ = reboot(RebootCommand::PowerOff);
    ExitCode::FAILURE
}

/// Powers the machine off. Returns only if a failure could not be reported to the outside.
fn serve() -> io::Result<Infallible> {
    let mut outside = Outside::find()?;
    let over = match begin(&outside) {
        Ok(running) => {
            outside.send(&Frame::of_job(Message::Begun))?;
            running.serve(&mut outside)?
        }
        Err(why) => Frame::of_job(Message::Cannot(why.to_string())),
    };
    outside.send(&over)?;
    reboot(RebootCommand::PowerOff)?;
    Err(io::Error::other("the machine would not end"))
}

fn begin(outside: &Outside) -> io::Result<Running> {
    let release = env::var(INSIDE).map_err(io::Error::other)?;
    sethostname(HOSTNAME.as_bytes())?;
    root::set_up(&release)?;
    tools::set_up(&release)?;
    let job = outside.channel.job()?;
    let job = job_encoding::read(&job).ok_or_else(|| io::Error::other("the job cannot be read"))?;
    job.shared.iter().try_for_each(|folder| root::share(folder))?;
    Running::start(job)
}

/// The connection to the outside: the channel and the serial line.
struct Outside {
    channel: Inner,
    line: File,
}

impl Outside {
    fn find() -> io::Result<Self> {
        let through = OFlags::DSYNC.bits() as i32;
        let device =
            OpenOptions::new().read(true).write(true).custom_flags(through).open("/dev/ubda")?;
        let direct = OFlags::DIRECT.bits() as i32;
        let direct = OpenOptions::new().read(true).custom_flags(direct).open("/dev/ubda")?;
        let silent = (OFlags::NOCTTY | OFlags::NONBLOCK).bits() as i32;
        let line =
            OpenOptions::new().read(true).write(true).custom_flags(silent).open("/dev/ttyS0")?;
        let mut raw = tcgetattr(&line)?;
        raw.make_raw();
        tcsetattr(&line, OptionalActions::Now, &raw)?;
        Ok(Self { channel: Inner::new(device, direct)?, line })
    }

    fn send(&mut self, frame: &Frame) -> io::Result<()> {
        self.channel.write(frame)?;
        // A full line means that the outside has wake-ups to read already.
        let _ = self.line.write(&[WAKE]);
        Ok(())
    }

    /// Reads the wake-ups on the line. Returns whether the outside has closed it.
    fn is_closed(&mut self) -> bool {
        loop {
            match self.line.read(&mut [0; 64]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            }
        }
    }
}

/// The running job.
struct Running {
    job: Pid,
    over: OwnedFd,
    out: Option<OwnedFd>,
    err: Option<OwnedFd>,
}

impl Running {
    fn start(job: Job) -> io::Result<Self> {
        let stdin = if job.stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
        let mut child = spawn(&job, stdin)?;
        if let Some(stdin) = child.stdin.take() {
            feed(stdin, job.stdin)?;
        }
        Self::of(child)
    }

    fn of(mut child: Child) -> io::Result<Self> {
        let job = Pid::from_child(&child);
        let over = pidfd_open(job, PidfdFlags::empty())?;
        let out = child.stdout.take().map(OwnedFd::from);
        let err = child.stderr.take().map(OwnedFd::from);
        for pipe in [&out, &err].into_iter().flatten() {
            ioctl_fionbio(pipe, true)?;
        }
        Ok(Self { job, over, out, err })
    }

    /// Passes on the job's output until the job ends. Returns how it ended.
    fn serve(mut self, outside: &mut Outside) -> io::Result<Frame> {
        let mut streams = Streams::default();
        let mut ended = None;
        loop {
            // Output that is in the pipes when the job ends is still passed on. Output of
            // processes that the job left running is not.
            pass_on(&mut self.out, Message::Out, outside)?;
            pass_on(&mut self.err, Message::Err, outside)?;
            if let Some(ended) = ended {
                return Ok(Frame::of_job(Message::Ended(ended)));
            }
            streams.serve(outside)?;
            self.wait(outside, &streams)?;
            if outside.is_closed() {
                reboot(RebootCommand::PowerOff)?;
            }
            while let Some(frame) = outside.channel.next()? {
                streams.take(frame, outside)?;
            }
            ended = self.reap(&mut streams)?;
        }
    }

    fn wait(&self, outside: &Outside, streams: &Streams) -> io::Result<()> {
        let pipes = [&self.out, &self.err].into_iter().flatten().map(AsFd::as_fd);
        let all = pipes.chain([self.over.as_fd(), outside.line.as_fd()]);
        let all = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let mut all: Vec<PollFd<'_>> = all.chain(streams.awaited()).collect();
        match poll(&mut all, Some(&REAP_INTERVAL)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reaps processes that have ended. Returns how the job ended if it is among them.
    fn reap(&self, streams: &mut Streams) -> io::Result<Option<Ended>> {
        let mut ended = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((who, how))) if who == self.job => ended = Some(end(how)),
                Ok(Some((who, how))) => streams.ended(who, end(how)),
                Err(Errno::INTR) => {}
                Ok(None) | Err(Errno::CHILD) => return Ok(ended),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Starts a job, with pipes for its output.
fn spawn(job: &Job, stdin: Stdio) -> io::Result<Child> {
    let environment = tools::environment(&job.environment);
    let program = tools::find(&job.program, &environment)
        .ok_or_else(|| io::Error::other(format!("no program {}", job.program.display())))?;
    Command::new(&program)
        .args(&job.arguments)
        .env_clear()
        .envs(environment)
        .current_dir(&job.folder)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| io::Error::other(format!("cannot start {}: {why}", program.display())))
}

fn end(how: WaitStatus) -> Ended {
    match (how.exit_status(), how.terminating_signal()) {
        (_, Some(signal)) => Ended::Signal(signal),
        (code, None) => Ended::Exit(code.unwrap_or(-1)),
    }
}

/// Passes on the available data of a pipe. Sets the pipe to `None` at its end.
fn pass_on(
    pipe: &mut Option<OwnedFd>,
    message: impl Fn(Vec<u8>) -> Message,
    outside: &mut Outside,
) -> io::Result<()> {
    let mut bytes = vec![0; MAX];
    while let Some(open) = pipe {
        match rustix::io::read(&*open, &mut bytes) {
            Ok(0) => *pipe = None,
            Ok(length) => outside.send(&Frame::of_job(message(bytes[..length].to_vec())))?,
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn feed(mut stdin: ChildStdin, bytes: Vec<u8>) -> io::Result<()> {
    // A job need not read its whole input, so a failed write is no error.
    let write = move || drop(stdin.write_all(&bytes));
    thread::Builder::new().spawn(write).map(drop)
}
