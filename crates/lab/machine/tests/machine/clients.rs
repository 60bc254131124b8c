//! Clients of a running machine: their jobs, and connections to servers inside.

use std::env;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use uturn_machine::{Ended, Job, JobOutput, Machine, MachineClient, MachineError};

use super::checks::shell;

/// The argument that makes this program a server in the machine that sends back what it receives.
pub(super) const ECHOES: &str = "--echo";

/// The argument that makes this program a client of a machine.
pub(super) const CALLS: &str = "--call";

pub(super) fn clients_run_jobs_and_reach_servers(machine: &Machine) {
    let folder = env::temp_dir().join(format!("uturn-machine-{}-control", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let socket = folder.join("socket");
    let stop = Arc::new(AtomicBool::new(false));
    let machine = machine.clone().with_control(UnixListener::bind(&socket).unwrap());
    let machine = machine.with_stop(Arc::clone(&stop));
    let own = env::current_exe().unwrap();
    let (tell, told) = channel();
    let serving = thread::spawn(move || {
        let script = format!("ip link set lo up; exec {} {ECHOES}", own.display());
        run_and_tell(&machine, &shell(&script), &tell)
    });
    let line: String = told.recv().unwrap();
    let port: u16 = line.trim().parse().unwrap();
    let client = MachineClient::of(&socket);

    let job = Job { stdin: b"first ".to_vec(), ..shell("cat; echo to err >&2; exit 7") };
    let input: Vec<u8> = (0..2_000_000u32).flat_map(u32::to_le_bytes).collect();
    let (mut out, mut err) = (Vec::<u8>::new(), Vec::new());
    let ended =
        client.run(
            &job,
            Some(Box::new(io::Cursor::new(input.clone()))),
            &mut |output| match output {
                JobOutput::Out(bytes) => out.extend(bytes),
                JobOutput::Err(bytes) => err.extend(bytes),
            },
        );
    assert_eq!((err.as_slice(), ended.unwrap()), (&b"to err\n"[..], Ended::Exit(7)));
    assert!(out == [b"first ", input.as_slice()].concat(), "{} bytes", out.len());
    let missing = Job { program: "/no/such/program".into(), ..shell("") };
    let refused = client.run(&missing, None, &mut |_| {});
    assert!(matches!(refused, Err(MachineError::Inside(why)) if why.contains("/no/such")));

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, relay) = (listener.accept().unwrap().0, client.clone());
    let relaying = thread::spawn(move || relay.connect(port, &far));
    let (mut writes, sent) = (near.try_clone().unwrap(), input.clone());
    let writing = thread::spawn(move || {
        writes.write_all(&sent).unwrap();
        writes.shutdown(Shutdown::Write).unwrap();
    });
    let mut echoed = Vec::new();
    let read = near.read_to_end(&mut echoed);
    relaying.join().unwrap().unwrap();
    read.unwrap();
    writing.join().unwrap();
    assert!(echoed == input, "{} bytes", echoed.len());
    // Nothing listens on the port of IPP.
    let refused = client.connect(631, &near);
    assert!(matches!(refused, Err(MachineError::Inside(_))), "{refused:?}");

    // A job of a client ends with the client.
    let mut calls = Command::new(env::current_exe().unwrap())
        .args([CALLS, socket.to_str().unwrap(), "echo $$; exec sleep 1000"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(calls.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    calls.kill().unwrap();
    calls.wait().unwrap();
    let waits = shell(&format!("tail --pid={} -f /dev/null", line.trim()));
    assert_eq!(client.run(&waits, None, &mut |_| {}).unwrap(), Ended::Exit(0));

    stop.store(true, Ordering::SeqCst);
    assert!(matches!(serving.join().unwrap(), Err(MachineError::Stopped)));
    assert!(client.run(&shell("true"), None, &mut |_| {}).is_err());
    fs::remove_dir_all(&folder).unwrap();
}

/// Runs a job, and sends the lines of its output to the channel.
fn run_and_tell(
    machine: &Machine,
    job: &Job,
    tell: &Sender<String>,
) -> Result<Ended, MachineError> {
    machine.run(job, &mut |output| {
        if let JobOutput::Out(bytes) = output {
            tell.send(String::from_utf8(bytes.to_vec()).unwrap()).unwrap();
        }
    })
}

/// Prints the port of a server, and sends back what each client sends.
pub(super) fn echo() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    for connection in listener.incoming() {
        let connection = connection.unwrap();
        io::copy(&mut &connection, &mut &connection).unwrap();
        connection.shutdown(Shutdown::Write).unwrap();
    }
}

/// Runs a script in the machine that listens on this socket.
pub(super) fn call(socket: &str, script: &str) {
    let ended = MachineClient::of(Path::new(socket)).run(&shell(script), None, &mut |output| {
        if let JobOutput::Out(bytes) = output {
            io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()).unwrap();
        }
    });
    println!("{ended:?}");
}
