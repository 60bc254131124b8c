//! Watches the file or the folder of the configuration, and the files that it names.
//!
//! The folders that contain the files are watched, and those of every link on the way, because a
//! file may be replaced by a rename, or by a link to another place. The files' contents decide
//! whether something has changed. Changes in quick succession are reported once, when they pause.

mod files;
mod notices;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

pub use files::Seen;

use self::notices::{News, Notices};
use crate::error::StartError;
use crate::lock::locked;
use crate::requests::{Changed, Request};

/// The watched files as they were read: those of the configuration, and those that it names.
type Watched = (Seen, Seen);

/// The handle of the thread that watches files.
#[derive(Debug)]
pub struct Watch {
    /// The files that are to be watched from now on, until the thread takes them.
    next: Arc<Mutex<Option<Watched>>>,
    /// The stream that wakes the thread. When it is closed, the thread ends.
    wake: Option<UnixStream>,
    handle: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the thread. It watches nothing yet.
    ///
    /// # Errors
    /// When the kernel cannot make another watcher.
    pub fn start(requests: Sender<Request>) -> Result<Self, StartError> {
        let failed = |source| StartError { doing: "watch files".into(), source };
        let (wake, woken) = UnixStream::pair().map_err(failed)?;
        wake.set_nonblocking(true).map_err(failed)?;
        woken.set_nonblocking(true).map_err(failed)?;
        let notices = Notices::new(woken).map_err(failed)?;
        let next = Arc::new(Mutex::new(None));
        let of_thread = Arc::clone(&next);
        let handle = thread::Builder::new()
            .name("file watch".into())
            .spawn(move || run(notices, &of_thread, &requests))
            .map_err(failed)?;
        Ok(Self { next, wake: Some(wake), handle: Some(handle) })
    }

    /// Watches these files from now on. A change since they were read is reported too.
    pub fn watch(&self, config: Seen, named: Seen) {
        *locked(&self.next) = Some((config, named));
        if let Some(mut wake) = self.wake.as_ref() {
            // If there is no room, the thread has been woken already.
            let _ = wake.write(&[0]);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

fn run(mut notices: Notices, next: &Mutex<Option<Watched>>, requests: &Sender<Request>) {
    let mut watched: Option<Watched> = None;
    loop {
        if let Some(next) = locked(next).take() {
            watched = Some(next);
        }
        if let Some((config, named)) = &mut watched {
            // The watch begins before the files are read, so that no change in between is missed.
            let paths: Vec<PathBuf> = [config.paths(), named.paths()].concat();
            notices.watch(&paths);
            let changed = match (config.look_again(), named.look_again()) {
                (true, _) => Some(Changed::Config),
                (false, true) => Some(Changed::Named),
                (false, false) => None,
            };
            if let Some(changed) = changed
                && requests.send(Request::Changed(changed)).is_err()
            {
                return;
            }
        }
        if notices.wait() == News::End {
            return;
        }
    }
}

/// Empties a stream. Returns whether something was in it, or `None` if its other end is closed.
fn drain(mut stream: &UnixStream) -> Option<bool> {
    let (mut bytes, mut had_some) = ([0; 64], false);
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return None,
            Ok(_) => had_some = true,
            Err(error) => return (error.kind() == ErrorKind::WouldBlock).then_some(had_some),
        }
    }
}
