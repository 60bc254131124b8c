//! The streams of a running machine's clients, inside: jobs that run beside the first one, and
//! connections to servers of the machine's loopback.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::{Outside, spawn};
use crate::Ended;
use crate::linux::frame::{Frame, MAX, Message, WINDOW};
use crate::linux::job_encoding;

/// The longest time that a server of the loopback may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// All streams by their numbers.
#[derive(Default)]
pub(super) struct Streams(BTreeMap<u32, Stream>);

/// A job or a connection of a client.
struct Stream {
    /// The destination of the client's input, or `None` if there is no more input or nothing reads
    /// it.
    input: Option<OwnedFd>,
    /// Input that has not been taken yet.
    pending: VecDeque<u8>,
    input_ends: bool,
    out: Option<OwnedFd>,
    err: Option<OwnedFd>,
    /// The number of bytes of output that the client accepts at present.
    credit: usize,
    source: Source,
}

enum Source {
    Process { pid: Pid, over: OwnedFd, ended: Option<Ended> },
    Server(TcpStream),
}

impl Streams {
    /// Handles a frame of a client.
    pub(super) fn take(&mut self, frame: Frame, outside: &mut Outside) -> io::Result<()> {
        let Frame { stream: number, message } = frame;
        let opened = match message {
            Message::Run(job) => Stream::run(&job),
            Message::Connect(port) => Stream::connect(port),
            message => {
                // Frames in flight may arrive for a stream that is over.
                if let Some(stream) = self.0.get_mut(&number) {
                    match message {
                        Message::Input(bytes) => stream.pending.extend(bytes),
                        Message::InputEnds => stream.input_ends = true,
                        Message::Taken(count) => stream.credit += count as usize,
                        _ => drop(self.0.remove(&number)),
                    }
                }
                return Ok(());
            }
        };
        match opened {
            Ok(stream) => {
                self.0.insert(number, stream);
                Ok(())
            }
            Err(why) => {
                outside.send(&Frame { stream: number, message: Message::Cannot(why.to_string()) })
            }
        }
    }

    /// Returns the file descriptors that have to be polled.
    pub(super) fn awaited(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.0.values().flat_map(Stream::awaited)
    }

    /// Records how a process ended.
    pub(super) fn ended(&mut self, who: Pid, how: Ended) {
        for stream in self.0.values_mut() {
            if let Source::Process { pid, ended, .. } = &mut stream.source
                && *pid == who
            {
                *ended = Some(how);
            }
        }
    }

    /// Passes on available input and output, and closes streams that are over.
    pub(super) fn serve(&mut self, outside: &mut Outside) -> io::Result<()> {
        let mut over = Vec::new();
        for (number, stream) in &mut self.0 {
            if let Some(ended) = stream.serve(*number, outside)? {
                outside.send(&Frame { stream: *number, message: Message::Ended(ended) })?;
                over.push(*number);
            }
        }
        for number in over {
            self.0.remove(&number);
        }
        Ok(())
    }
}

impl Stream {
    fn run(job: &[u8]) -> io::Result<Self> {
        let job = job_encoding::read(job);
        let job = job.ok_or_else(|| io::Error::other("the job cannot be read"))?;
        let mut child = spawn(&job, Stdio::piped())?;
        let pid = Pid::from_child(&child);
        let over = pidfd_open(pid, PidfdFlags::empty())?;
        let input = child.stdin.take().map(OwnedFd::from);
        let out = child.stdout.take().map(OwnedFd::from);
        let err = child.stderr.take().map(OwnedFd::from);
        Self::of(input, out, err, job.stdin, Source::Process { pid, over, ended: None })
    }

    fn connect(port: u16) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server = TcpStream::connect_timeout(&address, CONNECT)?;
        // Small pieces are passed on without delay.
        server.set_nodelay(true)?;
        let (input, out) = (server.try_clone()?, server.try_clone()?);
        Self::of(Some(input.into()), Some(out.into()), None, Vec::new(), Source::Server(server))
    }

    fn of(
        input: Option<OwnedFd>,
        out: Option<OwnedFd>,
        err: Option<OwnedFd>,
        stdin: Vec<u8>,
        source: Source,
    ) -> io::Result<Self> {
        for open in [&input, &out, &err].into_iter().flatten() {
            ioctl_fionbio(open, true)?;
        }
        let pending = stdin.into();
        Ok(Self { input, pending, input_ends: false, out, err, credit: WINDOW, source })
    }

    fn awaited(&self) -> impl Iterator<Item = PollFd<'_>> {
        let outputs = [&self.out, &self.err].into_iter().flatten().filter(|_| self.credit > 0);
        let input = self.input.iter().filter(|_| !self.pending.is_empty());
        let over = match &self.source {
            Source::Process { over, ended: None, .. } => Some(over.as_fd()),
            _ => None,
        };
        let reads = outputs.map(AsFd::as_fd).chain(over);
        let reads = reads.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        reads.chain(input.map(|fd| PollFd::new(fd, PollFlags::OUT)))
    }

    /// Passes on available input and output. Returns how the stream ended once it is over.
    fn serve(&mut self, number: u32, outside: &mut Outside) -> io::Result<Option<Ended>> {
        let taken = self.feed();
        if taken > 0 {
            outside.send(&Frame { stream: number, message: Message::Taken(taken as u32) })?;
        }
        let was_open = self.out.is_some();
        let credit = &mut self.credit;
        let is_empty = drain(&mut self.out, credit, &mut |bytes| {
            outside.send(&Frame { stream: number, message: Message::Out(bytes) })
        })? & drain(&mut self.err, credit, &mut |bytes| {
            outside.send(&Frame { stream: number, message: Message::Err(bytes) })
        })?;
        if was_open && self.out.is_none() {
            outside.send(&Frame { stream: number, message: Message::OutputEnds })?;
        }
        Ok(match self.source {
            Source::Process { ended, .. } => ended.filter(|_| is_empty),
            Source::Server(_) => {
                (self.out.is_none() && self.input.is_none()).then_some(Ended::Exit(0))
            }
        })
    }

    /// Passes input on. Returns how many bytes were taken.
    fn feed(&mut self) -> usize {
        let before = self.pending.len();
        while let (Some(input), (bytes, _)) = (&self.input, self.pending.as_slices()) {
            if bytes.is_empty() {
                break;
            }
            match rustix::io::write(input, bytes) {
                Ok(length) => drop(self.pending.drain(..length)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // Nothing reads the input any more.
                Err(_) => self.input = None,
            }
        }
        if self.input.is_none() {
            self.pending.clear();
        }
        if self.input_ends
            && self.pending.is_empty()
            && self.input.take().is_some()
            && let Source::Server(server) = &self.source
        {
            // The server may have closed the connection already.
            let _ = server.shutdown(Shutdown::Write);
        }
        before - self.pending.len()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Source::Process { pid, ended: None, .. } = &self.source {
            // The process may have ended meanwhile. It is not reaped yet, so no other process has
            // its number.
            let _ = kill_process(*pid, Signal::KILL);
        }
    }
}

/// Passes on available output, as far as the client accepts it. Sets `from` to `None` at its end.
/// Returns whether there is nothing more to read at present.
fn drain(
    from: &mut Option<OwnedFd>,
    credit: &mut usize,
    send: &mut dyn FnMut(Vec<u8>) -> io::Result<()>,
) -> io::Result<bool> {
    while let Some(open) = from {
        if *credit == 0 {
            return Ok(false);
        }
        let mut bytes = vec![0; MAX.min(*credit)];
        match rustix::io::read(&*open, &mut bytes) {
            Ok(0) => *from = None,
            Ok(length) => {
                bytes.truncate(length);
                *credit -= length;
                send(bytes)?;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(true),
            // The connection was reset.
            Err(_) => *from = None,
        }
    }
    Ok(true)
}
