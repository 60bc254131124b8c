//! Tests of reading outputs that tools only print with a network.

use uturn_model::Port;

use super::*;
use crate::call::HttpRequest;

fn call() -> Call {
    let request = HttpRequest { tls: false, path: "/".to_owned(), follows: false };
    Call::new("nowhere.example", Port::new(80).unwrap(), None, Some(request)).unwrap()
}

fn read(tool: Tool, stdout: &str, stderr: &str, exit: i32) -> MeasuredCall {
    tool.read(&call(), &Ran { stdout: stdout.to_owned(), stderr: stderr.to_owned(), exit })
}

#[test]
fn a_name_without_an_address() {
    let timed = "uturn 100.00 100.25 1\n";
    for (tool, stdout, stderr, exit) in [
        (
            Tool::Curl,
            "uturn 000 0.000000 0.250000 \n",
            "* Could not resolve host: nowhere.example\ncurl: (6) Could not resolve host: nowhere.example\n",
            6,
        ),
        (Tool::Python, "uturn name-not-found 0 0.250\n", "", 0),
        (Tool::Node, "uturn name-not-found 0 0.250\n", "", 0),
        (Tool::Wget, timed, "wget: unable to resolve host address 'nowhere.example'\n", 0),
        (Tool::BusyboxWget, timed, "wget: bad address 'nowhere.example'\n", 0),
        (
            Tool::Bash,
            "uturn-probe: nowhere.example: Name or service not known\n\
             uturn-probe: line 4: /dev/tcp/nowhere.example/80: Invalid argument\nuturn 100.00 100.25 1\n",
            "",
            0,
        ),
        (
            Tool::Nc,
            timed,
            "nc: getaddrinfo for host \"nowhere.example\" port 80: Name or service not known\n",
            0,
        ),
    ] {
        let measured = read(tool, stdout, stderr, exit);
        assert_eq!(measured.end, CallEnd::NameNotFound, "{tool}");
        assert_eq!(measured.waited, Duration::from_millis(250), "{tool}");
    }
}

#[test]
fn an_icmp_error() {
    let timed = "uturn 1.00 4.07 1\n";
    for (tool, stdout, stderr, exit) in [
        (
            Tool::Curl,
            "uturn 000 0.000000 3.070000 \n",
            "* connect to 10.9.9.9 port 80 failed: No route to host\n\
             curl: (7) Failed to connect to 10.9.9.9 port 80 after 3070 ms: Couldn't connect to server\n",
            7,
        ),
        (Tool::Wget, timed, "Connecting to 10.9.9.9:80... failed: Network is unreachable.\n", 0),
        (
            Tool::BusyboxWget,
            timed,
            "wget: can't connect to remote host (10.9.9.9): Host is unreachable\n",
            0,
        ),
        (Tool::Nc, timed, "nc: connect to 10.9.9.9 port 80 (tcp) failed: No route to host\n", 0),
    ] {
        let measured = read(tool, stdout, stderr, exit);
        assert_eq!(measured.end, CallEnd::Unreachable, "{tool}");
        assert_eq!(measured.waited, Duration::from_millis(3070), "{tool}");
    }
}

#[test]
fn the_address_that_was_called() {
    let measured = read(Tool::Curl, "uturn 200 4.012000 4.013000 10.0.0.100\n", "", 0);
    assert_eq!(measured.address, Some([10, 0, 0, 100].into()));
    assert_eq!(measured.waited, Duration::from_millis(4012));
    // An answer whose body does not end in time is an answer.
    let cut = read(Tool::Curl, "uturn 200 0.012000 10.000000 10.0.0.100\n", "curl: (28) …\n", 28);
    assert_eq!((cut.end, cut.waited), (CallEnd::Status(200), Duration::from_millis(12)));
}

#[test]
fn what_cannot_be_read_says_nothing() {
    for (tool, stdout, stderr) in [
        (Tool::Curl, "", "Segmentation fault\n"),
        (Tool::Curl, "uturn x y z\n", ""),
        (Tool::Python, "uturn dancing 0 0.1\n", ""),
        (Tool::Python, "", "Traceback\nModuleNotFoundError: No module named 'ssl'\n"),
        (Tool::Wget, "uturn 1.00 1.00 2\n", "wget: unrecognized option '--no-hsts'\n"),
        (Tool::Nc, "uturn 1.00 1.00 1\n", ""),
        (Tool::Bash, "uturn 1.00 1.00 1\n", ""),
    ] {
        let measured = read(tool, stdout, stderr, 2);
        let CallEnd::Failed(why) = measured.end else { panic!("{tool}: {measured:?}") };
        let last = stderr.lines().last().unwrap_or_default();
        assert!(why.starts_with(&tool.to_string()) && why.contains(last), "{why}");
    }
}

#[test]
fn tools_are_told_apart() {
    let shown = |tool: Tool, stdout: &str, stderr: &str| {
        tool.is_shown_by(&Ran { stdout: stdout.into(), stderr: stderr.into(), exit: 0 })
    };
    let busybox = "BusyBox v1.36.1 multi-call binary.\n\nUsage: wget [-cqS] [--spider] …";
    assert!(shown(Tool::BusyboxWget, "", busybox) && !shown(Tool::Wget, "", busybox));
    let gnu = "GNU Wget 1.21.3, a non-interactive network retriever.\n";
    assert!(shown(Tool::Wget, gnu, "") && !shown(Tool::BusyboxWget, gnu, ""));
    for (usage, has_it) in [
        ("usage: nc [-46CDdFhklNnrStUuvZz] [-I length] [-i interval]", true),
        ("BusyBox\n\nUsage: nc [OPTIONS] HOST PORT\n\t-z\tZero-I/O mode (scanning)", true),
        ("  -z                         Zero-I/O mode, report connection status only", true),
        ("Usage: nc [-iN] [-wN] [-l] [-p PORT] [-f FILE|IPADDR PORT] [-e PROG]", false),
        ("sh: nc: not found", false),
    ] {
        assert_eq!(shown(Tool::Nc, "", usage), has_it, "{usage}");
    }
}
