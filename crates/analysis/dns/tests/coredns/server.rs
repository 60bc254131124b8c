//! A running CoreDNS.

use std::cell::Cell;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use uturn_dns::{Question, Reply, wire};

pub(crate) struct CoreDns {
    process: Child,
    folder: PathBuf,
    socket: UdpSocket,
    id: Cell<u16>,
}

pub(crate) enum Started {
    Runs(CoreDns),
    /// Its error message.
    Refuses(String),
}

/// The number of attempts before a server that should be silent counts as that.
const TRIES: usize = 15;

/// The same for a server that should answer: on a busy machine it may take long.
const MANY_TRIES: usize = 3000;

pub(crate) fn free_port() -> u16 {
    let there = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    there.local_addr().unwrap().port()
}

impl CoreDns {
    pub(crate) fn start(program: &Path, corefile: &str, port: u16) -> Started {
        let folder = std::env::temp_dir().join(format!("uturn-dns-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("Corefile");
        fs::write(&file, corefile).unwrap();
        let log = folder.join("said");
        let output = fs::File::create(&log).unwrap();
        // Some queries make it loop and fill the memory.
        let mut process = Command::new("sh")
            .args(["-c", "ulimit -v 4000000 && exec \"$0\" \"$@\""])
            .arg(program)
            .arg("-conf")
            .arg(&file)
            .arg("-quiet")
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        loop {
            if process.try_wait().unwrap().is_some() {
                let why = fs::read_to_string(&log).unwrap();
                fs::remove_dir_all(&folder).unwrap();
                return Started::Refuses(why);
            }
            // It opens its TCP port together with its UDP port.
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                break;
            }
            std::thread::yield_now();
        }
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        Started::Runs(Self { process, folder, socket, id: Cell::new(0) })
    }

    /// Its response, or why there is none.
    pub(crate) fn ask(&mut self, question: &Question, answers: bool) -> Result<Reply, String> {
        let mut buffer = [0; 4096];
        // One for all attempts: the answer to an earlier one is an answer.
        let id = self.id.get().wrapping_add(1);
        self.id.set(id);
        for _ in 0..if answers { MANY_TRIES } else { TRIES } {
            if self.process.try_wait().unwrap().is_some() {
                break;
            }
            // Right after the start, the port may not be open yet: try again.
            let query = wire::encode_query(id, question).expect("a question that has a form");
            if self.socket.send(&query).is_err() {
                continue;
            }
            while let Ok(length) = self.socket.recv(&mut buffer) {
                let response = wire::decode_response(&buffer[..length]);
                let response = response.unwrap_or_else(|| panic!("malformed: {buffer:?}"));
                if response.id == id {
                    assert!(!response.truncated, "the reply is cut off");
                    return Ok(response.reply);
                }
            }
        }
        match self.process.try_wait().unwrap() {
            Some(status) => Err(format!("ended with {status}")),
            None => Err("does not answer".into()),
        }
    }
}

impl Drop for CoreDns {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
