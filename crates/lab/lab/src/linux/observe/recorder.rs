//! Reads all taps on a thread: into capture files, and into memory while a connection is followed.

use std::io::{self, PipeReader, PipeWriter};
use std::mem::{self, MaybeUninit};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::pcap::{Captures, LONGEST};
use super::places::{FileName, places};
use super::tap::{Frame, Tap};
use crate::LabError;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::system::During;
use crate::linux::kernel::wait::QUIET_PERIOD;

/// The maximum number of frames kept while one connection is followed. Further ones are discarded.
const MAX: usize = 200_000;

/// All taps of a lab. Reading ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Recorder {
    memory: Arc<Memory>,
    life: Option<PipeWriter>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Debug, Default)]
struct Memory {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_kept: bool,
    frames: Vec<Frame>,
}

impl Recorder {
    pub(crate) fn start(
        lab_cluster: &LabCluster,
        captures: Option<PathBuf>,
    ) -> Result<Self, LabError> {
        let doing = "watch the links";
        let captures = captures.map(Captures::new).transpose().during("write captures")?;
        let (mut taps, mut names) = (Vec::new(), Vec::new());
        for (number, place) in places(lab_cluster).into_iter().enumerate() {
            taps.push(Tap::open(number, place.space).during(doing)?);
            names.push(place.file);
        }
        let memory = Arc::new(Memory::default());
        let (end, life) = io::pipe().during(doing)?;
        let reading = Reading { taps, names, captures, memory: Arc::clone(&memory), end };
        let thread = thread::Builder::new().name("recorder".into());
        let thread = thread.spawn(move || reading.run()).during(doing)?;
        Ok(Self { memory, life: Some(life), thread: Some(thread) })
    }

    /// Discards the frames so far, and keeps frames from now on.
    pub(crate) fn begin(&self) {
        *self.memory.lock() = State { is_kept: true, frames: Vec::new() };
    }

    /// Waits until no more frames come, and returns the frames since [`Recorder::begin`] in the
    /// order of time.
    pub(crate) fn take(&self) -> Vec<Frame> {
        let mut state = self.memory.lock();
        loop {
            let seen = state.frames.len();
            let waited = self.memory.news.wait_timeout(state, QUIET_PERIOD);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.frames.len() == seen {
                break;
            }
        }
        let mut frames = mem::take(&mut *state).frames;
        frames.sort_by_key(|frame| frame.at);
        frames
    }

    /// Stops recording.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        self.end().during("write captures")
    }

    fn end(&mut self) -> io::Result<()> {
        drop(self.life.take());
        let ended = self.thread.take().map(JoinHandle::join);
        ended.map_or(Ok(()), |ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // [`Recorder::finish`] reports errors.
        let _ = self.end();
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of the recording thread.
struct Reading {
    taps: Vec<Tap>,
    /// The naming of each place's capture files.
    names: Vec<FileName>,
    captures: Option<Captures>,
    memory: Arc<Memory>,
    end: PipeReader,
}

impl Reading {
    fn run(mut self) -> io::Result<()> {
        let mut room = vec![MaybeUninit::uninit(); LONGEST as usize];
        loop {
            let mut waiting: Vec<PollFd<'_>> =
                self.taps.iter().map(|tap| PollFd::new(tap, PollFlags::IN)).collect();
            waiting.push(PollFd::new(&self.end, PollFlags::IN));
            match poll(&mut waiting, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let ready: Vec<bool> = waiting.iter().map(|fd| !fd.revents().is_empty()).collect();
            drop(waiting);
            let (taps, end) = ready.split_at(self.taps.len());
            for (at, _) in taps.iter().enumerate().filter(|(_, ready)| **ready) {
                self.read(at, &mut room)?;
            }
            if end.contains(&true) {
                return self.captures.as_mut().map_or(Ok(()), Captures::flush);
            }
        }
    }

    fn read(&mut self, at: usize, room: &mut [MaybeUninit<u8>]) -> io::Result<()> {
        while let Some(frame) = self.taps[at].next(room)? {
            if let Some(captures) = &mut self.captures {
                captures.add(&self.names[at](&frame.link), frame.at, &frame.bytes)?;
            }
            let mut state = self.memory.lock();
            if state.is_kept && state.frames.len() < MAX {
                state.frames.push(frame);
                self.memory.news.notify_all();
            }
        }
        if let Some(captures) = &mut self.captures {
            captures.flush()?;
        }
        Ok(())
    }
}
