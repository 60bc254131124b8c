//! Layer 4 for kernels without nf_tables, such as the small machine's: iptables rules replace the
//! rules that the load balancer process programs elsewhere. They follow the configuration that the
//! process serves, and its events about the health of targets.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, PipeReader, Read as _, Seek as _};
use std::io::{SeekFrom, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use uturn_lb::event::Event;
use uturn_model::{Family, LoadBalancer};
use uturn_snapshot::{Source, read_load_balancers};

use crate::LabError;
use crate::linux::build::handover::Nodes;
use crate::linux::forward::health::TargetHealths;
use crate::linux::forward::rules::layer_4;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::kernel::tables::{restore_more, restore_more_here};
use crate::linux::run::worker::Worker;

/// The time between two updates.
const INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// The longest time until the load balancer process answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// The load balancer process that is followed, and the log.
#[derive(Debug)]
pub(super) struct Followed {
    /// The admin address of the load balancer process.
    pub(super) admin: SocketAddr,
    /// The token for the admin address.
    pub(super) token: String,
    /// The file with the events of the process.
    pub(super) events: PathBuf,
    /// The file that the latest failure is written to.
    pub(super) log: PathBuf,
}

/// The running stand-in. Its rules stay in the namespace when it ends.
#[derive(Debug)]
pub(super) struct Forwarding {
    _worker: Worker,
}

impl Forwarding {
    pub(super) fn start(space: &Namespace, followed: Followed) -> Result<Self, LabError> {
        let during = "set up layer 4";
        restore_more(space, Family::V4, layer_4::ENTRY, during)?;
        let space = space.handle().during(during)?;
        let follow = move |end: PipeReader| {
            // If the thread cannot enter the namespace, there is nothing to do.
            let _ = space.run(|| {
                Follower::new(followed).follow(&end);
                Ok(())
            });
        };
        Ok(Self { _worker: Worker::start("layer-4", follow).during(during)? })
    }
}

/// Follows the process, from within the namespace.
struct Follower {
    followed: Followed,
    healths: TargetHealths,
    /// The number of bytes of the events that were read.
    read: u64,
    loaded: String,
}

impl Follower {
    fn new(followed: Followed) -> Self {
        Self { followed, healths: TargetHealths::default(), read: 0, loaded: String::new() }
    }

    fn follow(&mut self, end: &PipeReader) {
        loop {
            // A failed round is not final: the next one may succeed.
            if let Err(why) = self.load() {
                let _ = fs::write(&self.followed.log, format!("{why}\n"));
            }
            let mut over = [PollFd::new(end, PollFlags::IN)];
            if poll(&mut over, Some(&INTERVAL)).is_ok() && !over[0].revents().is_empty() {
                return;
            }
        }
    }

    fn load(&mut self) -> io::Result<()> {
        let balancers = self.served()?;
        self.hear()?;
        let text = layer_4::text(
            &balancers,
            Family::V4,
            &self.healths,
            &BTreeSet::new(),
            &Nodes::default(),
        );
        if text != self.loaded {
            restore_more_here(Family::V4, &text)?.map_err(io::Error::other)?;
            self.loaded = text;
        }
        Ok(())
    }

    /// Reads the load balancers that the process serves.
    fn served(&self) -> io::Result<Vec<LoadBalancer>> {
        let Followed { admin, token, .. } = &self.followed;
        let mut connection = TcpStream::connect_timeout(admin, PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        write!(
            connection,
            "GET /config HTTP/1.1\r\nHost: {admin}\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        if !head.starts_with("HTTP/1.1 200 ") {
            let line = head.lines().next().unwrap_or_default();
            return Err(io::Error::other(format!("the load balancers answer {line}")));
        }
        let source = Source { name: "config".into(), text: body.to_owned() };
        // At first the process serves nothing.
        Ok(read_load_balancers(source).unwrap_or_default())
    }

    /// Reads the events since the last round.
    fn hear(&mut self) -> io::Result<()> {
        let mut events = File::open(&self.followed.events)?;
        events.seek(SeekFrom::Start(self.read))?;
        let mut events = BufReader::new(events);
        let mut line = String::new();
        while events.read_line(&mut line)? > 0 && line.ends_with('\n') {
            self.read += line.len() as u64;
            if let Ok(event) = serde_json::from_str::<Event>(&line) {
                self.healths.record(&event);
            }
            line.clear();
        }
        Ok(())
    }
}
