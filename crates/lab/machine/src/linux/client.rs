//! A client of a running machine: another process, or another thread of the process that started
//! the machine.

use std::io::{self, Read, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use super::frame::{Frame, MAX, Message, WINDOW};
use super::{During, job_encoding};
use crate::{Ended, Job, JobOutput, MachineError};

/// A client of the machine that listens on a socket: see [`Machine::with_control`].
///
/// [`Machine::with_control`]: crate::Machine::with_control
#[derive(Clone, Debug)]
pub struct MachineClient {
    socket: PathBuf,
}

impl MachineClient {
    /// Creates a client of the machine that listens on this socket.
    pub fn of(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Runs one more job in the machine. The job reads its `stdin`, and after that `input` if there
    /// is any. Passes the job's output to `hear` as it arrives.
    ///
    /// # Errors
    /// If the machine is gone, if the job cannot be started, or if the machine ends before it.
    pub fn run(
        &self,
        job: &Job,
        input: Option<Box<dyn Read + Send>>,
        hear: &mut dyn FnMut(JobOutput<'_>),
    ) -> Result<Ended, MachineError> {
        let message = Message::Run(job_encoding::write(job));
        let mut stream = Stream::open(&self.socket, message)?;
        let input = input.unwrap_or_else(|| Box::new(io::empty()));
        // Reading may take longer than the job runs, so the thread is not waited for.
        stream.feed(input)?;
        loop {
            match stream.next()? {
                Message::Out(bytes) => {
                    hear(JobOutput::Out(&bytes));
                    stream.taken(bytes.len());
                }
                Message::Err(bytes) => {
                    hear(JobOutput::Err(&bytes));
                    stream.taken(bytes.len());
                }
                Message::Ended(ended) => return Ok(ended),
                Message::Cannot(why) => return Err(MachineError::Inside(why)),
                _ => {}
            }
        }
    }

    /// Connects a connection to a port of the machine's loopback, and passes bytes on until both
    /// ends are closed.
    ///
    /// # Errors
    /// If the machine is gone, if nothing listens on the port, or if the connection breaks.
    pub fn connect(&self, port: u16, connection: &TcpStream) -> Result<(), MachineError> {
        let passed = self.pass(port, connection);
        // Ends the thread that reads the connection.
        let _ = connection.shutdown(Shutdown::Both);
        passed
    }

    fn pass(&self, port: u16, connection: &TcpStream) -> Result<(), MachineError> {
        let during = "relay a connection";
        let mut stream = Stream::open(&self.socket, Message::Connect(port))?;
        let input = connection.try_clone().during(during)?;
        stream.feed(Box::new(input))?;
        let mut output = connection.try_clone().during(during)?;
        loop {
            match stream.next()? {
                Message::Out(bytes) => {
                    output.write_all(&bytes).during(during)?;
                    stream.taken(bytes.len());
                }
                Message::OutputEnds => output.shutdown(Shutdown::Write).during(during)?,
                Message::Ended(_) => return Ok(()),
                Message::Cannot(why) => return Err(MachineError::Inside(why)),
                _ => {}
            }
        }
    }
}

/// A stream of the machine.
struct Stream {
    socket: UnixStream,
    /// The same socket for writing: two threads write to it, and each writes whole frames.
    writes: Arc<Mutex<UnixStream>>,
    incoming: Vec<u8>,
    credit: Arc<Credit>,
}

impl Stream {
    fn open(socket: &Path, message: Message) -> Result<Self, MachineError> {
        let during = "reach the small machine";
        let socket = UnixStream::connect(socket).during(during)?;
        let writes = Arc::new(Mutex::new(socket.try_clone().during(during)?));
        send(&writes, message).during(during)?;
        Ok(Self { socket, writes, incoming: Vec::new(), credit: Arc::new(Credit::full()) })
    }

    /// Sends all input, in a thread of its own.
    fn feed(&mut self, mut input: Box<dyn Read + Send>) -> Result<(), MachineError> {
        let during = "pass input on to the small machine";
        let (writes, credit) = (Arc::clone(&self.writes), Arc::clone(&self.credit));
        let pass = move || -> io::Result<()> {
            let mut bytes = vec![0; MAX];
            loop {
                match input.read(&mut bytes) {
                    Ok(0) => break,
                    Ok(length) => {
                        if !credit.take(length) {
                            return Ok(());
                        }
                        send(&writes, Message::Input(bytes[..length].to_vec()))?;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // The connection was reset.
                    Err(_) => break,
                }
            }
            send(&writes, Message::InputEnds)
        };
        // The reader notices if the machine is gone.
        thread::Builder::new().name("input".into()).spawn(pass).map(drop).during(during)
    }

    /// Waits for the next message.
    fn next(&mut self) -> Result<Message, MachineError> {
        let during = "read what the small machine says";
        let mut bytes = [0; 16 * 1024];
        loop {
            match Frame::take(&mut self.incoming).during(during)? {
                Some(Frame { message: Message::Taken(count), .. }) => {
                    self.credit.add(count as usize);
                }
                Some(frame) => return Ok(frame.message),
                None => match self.socket.read(&mut bytes) {
                    Ok(0) => return Err(MachineError::Died { console: String::new() }),
                    Ok(length) => self.incoming.extend(&bytes[..length]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error).during(during),
                },
            }
        }
    }

    /// Tells the inside that output has been processed.
    fn taken(&mut self, count: usize) {
        // The stream may be over already, and its end not read yet. The reader notices if the
        // machine is gone.
        let _ = send(&self.writes, Message::Taken(count as u32));
    }
}

/// Writes a message as a whole.
fn send(writes: &Mutex<UnixStream>, message: Message) -> io::Result<()> {
    let mut socket = writes.lock().unwrap_or_else(PoisonError::into_inner);
    socket.write_all(&Frame::of_job(message).encode())
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.credit.close();
        // The thread that sends input has a copy of the socket.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// The number of bytes of input that the inside accepts at present. `None` once the stream is over.
#[derive(Debug)]
struct Credit {
    left: Mutex<Option<usize>>,
    more: Condvar,
}

impl Credit {
    fn full() -> Self {
        Self { left: Mutex::new(Some(WINDOW)), more: Condvar::new() }
    }

    /// Waits until this many bytes may be sent. Returns false if the stream is over.
    fn take(&self, count: usize) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let is_short = |left: &mut Option<usize>| left.is_some_and(|left| left < count);
        let waited = self.more.wait_while(left, is_short);
        let mut left = waited.unwrap_or_else(PoisonError::into_inner);
        *left = left.map(|left| left - count);
        left.is_some()
    }

    fn add(&self, count: usize) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.map(|left| left + count);
        self.more.notify_all();
    }

    fn close(&self) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.more.notify_all();
    }
}
