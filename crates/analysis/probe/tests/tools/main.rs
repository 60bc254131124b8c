//! The programs that make calls, as they are on this machine, against listeners on the loopback
//! interface: how a call ends is read from what they really print.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod listener;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use listener::{Answer, Listener};
use uturn_model::Port;
use uturn_probe::{
    Call, CallEnd, Exec, ExecError, HttpRequest, Limits, MeasuredCall, Ran, Tool, find_tool,
    measure,
};
use uturn_testing::{Requirement, skip};

/// How long a call may take that is answered: longer than any does on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long one may take that is not.
const SHORT: Duration = Duration::from_secs(2);
/// How long the slow server takes.
const SLOW: Duration = Duration::from_millis(1200);

/// Runs commands here.
struct Here {
    path: OsString,
}

impl Exec for Here {
    fn run(&mut self, command: &[String], _: Duration) -> Result<Ran, ExecError> {
        let mut process = Command::new("env");
        // The programs are looked for where the command looks for them.
        process.arg("-i").arg({
            let mut path = OsString::from("PATH=");
            path.push(&self.path);
            path
        });
        // Neither may be heeded.
        process.args(["http_proxy=http://127.0.0.1:1/", "https_proxy=http://127.0.0.1:1/"]);
        process.args(command).stdin(Stdio::null());
        // It ends when everything has ended that has its output: nothing is left behind.
        let output = process.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ran = Ran {
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            exit: output.status.code().unwrap_or(-1),
        };
        match ran.exit {
            127 => Err(ExecError::NoProgram),
            _ => Ok(ran),
        }
    }
}

/// A folder with BusyBox's programs and no others, which goes with the value.
struct BusyBox(PathBuf);

impl BusyBox {
    fn new() -> Option<Self> {
        let program = env::split_paths(&env::var_os("PATH")?)
            .map(|folder| folder.join("busybox"))
            .find(|path| path.exists())?;
        let folder = env::temp_dir().join(format!("uturn-probe-busybox-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        for applet in ["sh", "sleep", "wget"] {
            symlink(&program, folder.join(applet)).unwrap();
        }
        Some(Self(folder))
    }
}

impl Drop for BusyBox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn curl() {
    with(Tool::Curl);
}

#[test]
fn python() {
    with(Tool::Python);
}

#[test]
fn wget() {
    with(Tool::Wget);
}

#[test]
fn node() {
    with(Tool::Node);
}

#[test]
fn bash() {
    with(Tool::Bash);
}

#[test]
fn nc() {
    with(Tool::Nc);
}

#[test]
fn busybox() {
    match BusyBox::new() {
        Some(folder) => every_end(Tool::BusyboxWget, folder.0.as_os_str()),
        None => lacks(Tool::BusyboxWget),
    }
}

fn with(tool: Tool) {
    every_end(tool, &env::var_os("PATH").unwrap());
}

fn lacks(tool: Tool) {
    skip(Requirement::CallTools, "how a call ends", format!("{tool} is not here"));
}

/// Makes calls that end in each way that this tool can tell.
fn every_end(tool: Tool, path: &std::ffi::OsStr) {
    let mut here = Here { path: path.to_owned() };
    let connects = Call::new("127.0.0.1", Port::new(1).unwrap(), None, None).unwrap();
    let asks = asking(&Listener::refusing(), "/");
    let [connects, asks] = [connects, asks].map(|call| tool.can(&call));
    let some =
        if asks { asking(&Listener::refusing(), "/") } else { connecting(&Listener::refusing()) };
    if find_tool(&mut here, &some, &[tool]).unwrap() != Some(tool) {
        return lacks(tool);
    }
    let mut end = |call: &Call, limit: Duration| {
        let limits = Limits { calls: 1, call: limit, total: 2 * PATIENCE };
        let measured = measure(&mut here, tool, call, &limits, &mut |_| {});
        let [only] = &measured.calls[..] else { panic!("{measured:?}") };
        only.clone()
    };
    if connects {
        let listener = Listener::silent();
        assert_end(&end(&connecting(&listener), PATIENCE), &CallEnd::Connected);
        let listener = Listener::refusing();
        assert_end(&end(&connecting(&listener), PATIENCE), &CallEnd::Refused);
        let listener = Listener::full();
        let call = end(&connecting(&listener), SHORT);
        assert_end(&call, &CallEnd::TimedOut);
        assert!(call.waited >= SHORT - Duration::from_millis(200), "{call:?}");
    }
    if !asks {
        return;
    }
    // Nothing in a path is read by a shell.
    for path in ["/", "/a?b=c&d=[e]{f}", "/$(id);`id`'\"|*"] {
        let listener = Listener::answering(Answer::of(200));
        assert_end(&end(&asking(&listener, path), PATIENCE), &CallEnd::Status(200));
        let asked = listener.asked();
        let line = asked.lines().next().unwrap().to_owned();
        assert!(asked.to_ascii_lowercase().contains("user-agent: uturn-probe"), "{asked}");
        assert!(line == format!("GET {path} HTTP/1.1") || escaped(&line, path), "{asked}");
    }
    for status in [204, 404, 503, 504] {
        let listener = Listener::answering(Answer::of(status));
        assert_end(&end(&asking(&listener, "/"), PATIENCE), &CallEnd::Status(status));
    }
    if tool != Tool::BusyboxWget {
        // It is not followed unless that is wanted.
        let answer = Answer { location: Some("http://127.0.0.1:1/".into()), ..Answer::of(302) };
        let listener = Listener::answering(answer);
        assert_end(&end(&asking(&listener, "/"), PATIENCE), &CallEnd::Status(302));
    }
    // By its name, at an address.
    let listener = Listener::answering(Answer::of(200));
    let request = HttpRequest { tls: false, path: "/".into(), follows: false };
    let address = Some([127, 0, 0, 1].into());
    let named = Call::new("shop.example.com", listener.port(), address, Some(request)).unwrap();
    assert_end(&end(&named, PATIENCE), &CallEnd::Status(200));
    let host = format!("host: shop.example.com:{}", listener.port());
    let asked = listener.asked().to_ascii_lowercase();
    assert!(asked.lines().any(|line| line == host), "{asked}");

    let listener = Listener::answering(Answer { delay: SLOW, ..Answer::of(200) });
    let call = end(&asking(&listener, "/"), PATIENCE);
    assert_end(&call, &CallEnd::Status(200));
    assert!(call.waited >= SLOW - Duration::from_millis(20), "{call:?}");

    let listener = Listener::refusing();
    assert_end(&end(&asking(&listener, "/"), PATIENCE), &CallEnd::Refused);
    let listener = Listener::resetting();
    assert_end(&end(&asking(&listener, "/"), PATIENCE), &CallEnd::Reset);
    let listener = Listener::closing();
    assert_end(&end(&asking(&listener, "/"), PATIENCE), &CallEnd::Reset);
    for listener in [Listener::silent(), Listener::full()] {
        let call = end(&asking(&listener, "/"), SHORT);
        assert_end(&call, &CallEnd::TimedOut);
        assert!(call.waited >= SHORT - Duration::from_millis(200), "{call:?}");
    }
    follows(tool, &mut end);
    over_tls(tool, &mut end);
}

/// A redirect of the load balancer itself is followed once where that is predicted.
fn follows(tool: Tool, end: &mut impl FnMut(&Call, Duration) -> MeasuredCall) {
    let there = Listener::answering(Answer::of(418));
    let url = format!("http://shop.example.com:{}/there?a=b", there.port());
    let here = Listener::answering(Answer { location: Some(url), ..Answer::of(302) });
    let request = HttpRequest { tls: false, path: "/".into(), follows: true };
    let address = Some([127, 0, 0, 1].into());
    let call = Call::new("127.0.0.1", here.port(), address, Some(request.clone())).unwrap();
    if !tool.can(&call) {
        return;
    }
    // The name leads nowhere; an address does.
    let url = format!("http://127.0.0.1:{}/there?a=b", there.port());
    let here = Listener::answering(Answer { location: Some(url), ..Answer::of(302) });
    let call = Call::new("127.0.0.1", here.port(), None, Some(request)).unwrap();
    assert_end(&end(&call, PATIENCE), &CallEnd::Status(418));
    assert!(there.asked().starts_with("GET /there?a=b HTTP/1.1"));
}

/// A listener without TLS fails the handshake; one that resets it resets.
fn over_tls(tool: Tool, end: &mut impl FnMut(&Call, Duration) -> MeasuredCall) {
    let secure = |listener: &Listener| {
        let request = HttpRequest { tls: true, path: "/".into(), follows: false };
        Call::new("127.0.0.1", listener.port(), None, Some(request)).unwrap()
    };
    let listener = Listener::answering(Answer::of(400));
    if !tool.can(&secure(&listener)) {
        return;
    }
    assert_end(&end(&secure(&listener), PATIENCE), &CallEnd::TlsError);
    let listener = Listener::refusing();
    assert_end(&end(&secure(&listener), PATIENCE), &CallEnd::Refused);
    let listener = Listener::resetting();
    assert_end(&end(&secure(&listener), PATIENCE), &CallEnd::Reset);
}

#[track_caller]
fn assert_end(call: &MeasuredCall, end: &CallEnd) {
    assert_eq!(&call.end, end, "{call:?}");
}

/// Whether a request's line has the path with some letters escaped.
fn escaped(line: &str, path: &str) -> bool {
    let mut plain = String::new();
    let mut rest = line.trim_start_matches("GET ").trim_end_matches(" HTTP/1.1");
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let code = u8::from_str_radix(&rest[at + 1..at + 3], 16).unwrap();
        plain.push(char::from(code));
        rest = &rest[at + 3..];
    }
    plain.push_str(rest);
    plain == path
}

fn connecting(listener: &Listener) -> Call {
    Call::new("127.0.0.1", listener.port(), None, None).unwrap()
}

fn asking(listener: &Listener, path: &str) -> Call {
    let request = HttpRequest { tls: false, path: path.to_owned(), follows: false };
    Call::new("127.0.0.1", listener.port(), None, Some(request)).unwrap()
}

/// What is not here is not found.
#[test]
fn a_folder_without_programs_has_no_tool() {
    let folder = env::temp_dir().join(format!("uturn-probe-nothing-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let mut here = Here { path: Path::new(&folder).as_os_str().to_owned() };
    let found = find_tool(&mut here, &asking(&Listener::refusing(), "/"), &Tool::ALL);
    fs::remove_dir(&folder).unwrap();
    assert_eq!(found, Ok(None));
}
