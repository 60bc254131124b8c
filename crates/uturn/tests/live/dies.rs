//! An API server that dies in the middle.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::control_plane::{ControlPlane, READER};
use crate::{run, text};

/// How a server ends in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It keeps its connections and answers nothing.
    Stops,
    /// It is killed.
    Dies,
}

pub(crate) fn while_reading(plane: &ControlPlane) {
    for ending in [Ending::Stops, Ending::Dies] {
        halfway(plane, &["collect", "--page", "1", "--request-timeout", "10s"], ending);
    }
    // After that, nothing answers at all.
    let output = run(plane, &["scan"], READER);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("cannot be reached"), "{}", text(&output.stderr));
}

/// Runs `collect` through a relay, and ends the server when half of the bytes have passed that the
/// whole has. Returns what is said about it.
pub(crate) fn halfway(plane: &ControlPlane, words: &[&str], ending: Ending) -> String {
    // All of it, to know what half of it is.
    let relay = Relay::start(plane.port);
    let user = "through";
    let write_config = |port: u16| {
        plane.write_kubeconfig(user, port);
        let config = fs::read_to_string(plane.kubeconfig(user)).unwrap();
        fs::write(plane.kubeconfig(user), config.replace("through-token", "reader-token")).unwrap();
    };
    write_config(relay.port);
    let whole = plane.file("whole.tar.gz");
    let output = run(plane, &[words, &["-o", whole.to_str().unwrap()]].concat(), user);
    assert!(output.status.success(), "{}", text(&output.stderr));
    fs::remove_file(whole).unwrap();
    let bytes = relay.bytes.load(Ordering::SeqCst);

    let relay = Relay::start(plane.port);
    write_config(relay.port);
    relay.limit.store(bytes / 2, Ordering::SeqCst);
    let path = plane.file("half.tar.gz");
    let words = [words, &["-o", path.to_str().unwrap()]].concat();
    let output = thread::scope(|scope| {
        let collecting = scope.spawn(|| run(plane, &words, user));
        relay.reached.recv().unwrap();
        match ending {
            Ending::Stops => plane.stop_server(),
            Ending::Dies => {
                plane.kill_server();
                relay.dead.store(true, Ordering::SeqCst);
            }
        }
        relay.go_on.send(()).unwrap();
        collecting.join().unwrap()
    });
    if ending == Ending::Stops {
        plane.let_server_go_on();
    }
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{why}");
    assert!(why.contains("does not answer any more while reading"), "{why}");
    assert!(!path.exists());
    let names = fs::read_dir(&plane.folder).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().contains("partial")).collect();
    assert!(left.is_empty(), "{left:?}");
    why
}

/// Passes bytes between clients and the API server until a number of bytes was passed.
struct Relay {
    port: u16,
    bytes: Arc<AtomicUsize>,
    limit: Arc<AtomicUsize>,
    dead: Arc<AtomicBool>,
    reached: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
}

impl Relay {
    fn start(to: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (bytes, limit) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(usize::MAX)));
        let dead = Arc::new(AtomicBool::new(false));
        let (tell, reached) = mpsc::channel();
        let (go_on, wait) = mpsc::channel();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let shared = (Arc::clone(&bytes), Arc::clone(&limit), Arc::clone(&dead));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (bytes, limit, dead) =
                    (Arc::clone(&shared.0), Arc::clone(&shared.1), Arc::clone(&shared.2));
                if dead.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)) else { continue };
                let (tell, wait) = (tell.clone(), Arc::clone(&wait));
                let (up, down) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || io::copy(&mut &up, &mut &server));
                thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(count @ 1..) = (&down).read(&mut buffer) {
                        let before = bytes.fetch_add(count, Ordering::SeqCst);
                        let limit = limit.load(Ordering::SeqCst);
                        if before < limit && before + count >= limit {
                            tell.send(()).unwrap();
                            wait.lock().unwrap().recv().unwrap();
                        }
                        if (&client).write_all(&buffer[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        Self { port, bytes, limit, dead, reached, go_on }
    }
}
