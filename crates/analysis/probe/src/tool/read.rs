//! Reads the output of the programs.

use std::time::Duration;

use super::{CallEnd, MeasuredCall, Tool};
use crate::call::Call;
use crate::exec::Ran;

/// The prefix of the line that scripts and curl print for this module.
const MARK: &str = "uturn ";
/// The exit status of a shell for a command that SIGTERM ended.
const TERMINATED: i32 = 128 + 15;
/// The maximum number of characters to show of an unreadable output.
const MAX_SHOWN: usize = 200;

pub(super) fn is_shown(tool: Tool, ran: &Ran) -> bool {
    let (out, err) = (&ran.stdout, &ran.stderr);
    let is_busybox = || out.contains("BusyBox") || err.contains("BusyBox");
    match tool {
        Tool::Curl => out.starts_with("curl "),
        Tool::Python => out.starts_with("Python 3") || err.starts_with("Python 3"),
        Tool::Node => out.starts_with('v') && ran.exit == 0,
        Tool::Wget => out.contains("GNU Wget"),
        Tool::BusyboxWget => is_busybox() && (out.contains("wget") || err.contains("wget")),
        Tool::Bash => out.contains("GNU bash"),
        // Debian's, Alpine's, nmap's and the original list their options in different ways.
        Tool::Nc => [out, err].into_iter().any(|text| lists_scan_option(text)),
    }
}

/// Returns whether a usage text of nc lists the option -z: `usage: nc [-46CDdFhklNnrStUuvZz] …`, or
/// ` -z …`.
fn lists_scan_option(usage: &str) -> bool {
    usage.split_whitespace().any(|word| {
        let letters = word.trim_matches(['[', ']', ',']);
        let flags = letters.strip_prefix('-').unwrap_or_default();
        flags.contains('z') && flags.bytes().all(|byte| byte.is_ascii_alphanumeric()) && {
            flags == "z" || word.starts_with('[')
        }
    })
}

pub(super) fn read(tool: Tool, call: &Call, ran: &Ran) -> MeasuredCall {
    let marked = ran.stdout.lines().rev().find_map(|line| line.strip_prefix(MARK));
    let Some(marked) = marked else {
        return MeasuredCall {
            end: failed(tool, ran, "it printed no result"),
            waited: Duration::ZERO,
            address: None,
        };
    };
    let fields: Vec<&str> = marked.split_whitespace().collect();
    let read = match tool {
        Tool::Curl => curl(call, ran, &fields),
        Tool::Python | Tool::Node => script(tool, ran, &fields),
        Tool::Wget | Tool::BusyboxWget | Tool::Bash | Tool::Nc => {
            timed(&fields).map(|(waited, exit)| {
                let end = match tool {
                    _ if exit == TERMINATED => CallEnd::TimedOut,
                    Tool::Bash => bash(ran),
                    Tool::Nc if exit == 0 => CallEnd::Connected,
                    Tool::Nc => nc(ran),
                    _ => wget(tool, ran, exit),
                };
                MeasuredCall { end, waited, address: None }
            })
        }
    };
    read.unwrap_or_else(|| MeasuredCall {
        end: failed(tool, ran, "its output cannot be read"),
        waited: Duration::ZERO,
        address: None,
    })
}

/// Reads seconds with decimals.
fn seconds(text: &str) -> Option<Duration> {
    text.replace(',', ".").parse().ok().and_then(|number| Duration::try_from_secs_f64(number).ok())
}

/// Reads the beginning, the end and the exit status of a command. Returns its duration and the
/// status.
fn timed(fields: &[&str]) -> Option<(Duration, i32)> {
    let [began, ended, exit] = fields else { return None };
    Some((seconds(ended)?.saturating_sub(seconds(began)?), exit.parse().ok()?))
}

fn script(tool: Tool, ran: &Ran, fields: &[&str]) -> Option<MeasuredCall> {
    let [word, detail, waited] = fields else { return None };
    let end = match *word {
        "connected" => CallEnd::Connected,
        "status" => CallEnd::Status(detail.parse().ok()?),
        "refused" => CallEnd::Refused,
        "reset" => CallEnd::Reset,
        "unreachable" => CallEnd::Unreachable,
        "tls-error" => CallEnd::TlsError,
        "hangs" => CallEnd::TimedOut,
        "name-not-found" => CallEnd::NameNotFound,
        "other" => not_http(),
        "failed" => failed(tool, ran, detail),
        _ => return None,
    };
    Some(MeasuredCall { end, waited: seconds(waited)?, address: None })
}

fn curl(call: &Call, ran: &Ran, fields: &[&str]) -> Option<MeasuredCall> {
    let [status, began, total, rest @ ..] = fields else { return None };
    let status: u16 = status.parse().ok()?;
    let follows = call.request().is_some_and(|request| request.follows);
    let (began, total) = (seconds(began)?, seconds(total)?);
    let waited = if status == 0 || follows { total } else { began };
    let address = rest.first().and_then(|text| text.parse().ok());
    let end = match (status, ran.exit) {
        (1.., _) => CallEnd::Status(status),
        (_, 6) => CallEnd::NameNotFound,
        (_, 28) => CallEnd::TimedOut,
        (_, 7) => match connection_error(&ran.stderr) {
            Some(end) => end,
            None => failed(Tool::Curl, ran, "it could not connect"),
        },
        (_, 35) if is_reset(&ran.stderr) => CallEnd::Reset,
        (_, 35) => CallEnd::TlsError,
        (_, 52 | 55 | 56) => CallEnd::Reset,
        (_, 1) if ran.stderr.contains("HTTP/0.9") => not_http(),
        (_, exit) => failed(Tool::Curl, ran, &format!("it ended with status {exit}")),
    };
    Some(MeasuredCall { end, waited, address })
}

fn wget(tool: Tool, ran: &Ran, exit: i32) -> CallEnd {
    let text = &ran.stderr;
    if let Some(status) = http_status(text) {
        return CallEnd::Status(status);
    }
    if let Some(end) = connection_error(text) {
        return end;
    }
    let is_closed = text.contains("No data received") || text.contains("error getting response");
    if is_closed || is_reset(text) {
        return CallEnd::Reset;
    }
    if text.contains("SSL connection") || text.contains("GnuTLS") || text.contains("OpenSSL") {
        return CallEnd::TlsError;
    }
    failed(tool, ran, &format!("it ended with status {exit}"))
}

/// Returns the status of the last answer: a line `HTTP/1.1 200 OK`.
fn http_status(text: &str) -> Option<u16> {
    let lines = text.lines().rev().map(str::trim_start);
    let mut answers = lines.filter_map(|line| line.strip_prefix("HTTP/"));
    answers.find_map(|rest| rest.split_whitespace().nth(1)?.get(..3)?.parse().ok())
}

fn bash(ran: &Ran) -> CallEnd {
    let lines = || ran.stdout.lines().filter(|line| !line.starts_with(MARK));
    if let Some(status) = lines().find_map(http_status) {
        return CallEnd::Status(status);
    }
    match lines().next() {
        Some("connected") => CallEnd::Connected,
        Some("closed") => CallEnd::Reset,
        Some(_) => match connection_error(&ran.stdout) {
            Some(end) => end,
            None if is_reset(&ran.stdout) => CallEnd::Reset,
            None if ran.stdout.contains("/dev/tcp/") => {
                failed(Tool::Bash, ran, "it cannot connect")
            }
            None => not_http(),
        },
        None => failed(Tool::Bash, ran, "it printed nothing"),
    }
}

fn nc(ran: &Ran) -> CallEnd {
    match connection_error(&ran.stderr) {
        Some(end) => end,
        // Without -v, nc may print nothing.
        None => failed(Tool::Nc, ran, "it could not connect and does not say why"),
    }
}

/// Reads the error of a connection, in the words of the C library.
fn connection_error(text: &str) -> Option<CallEnd> {
    let of_line = |line: &str| {
        let line = line.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
        if has(&["connection refused"]) {
            Some(CallEnd::Refused)
        } else if has(&[
            "no route to host",
            "is unreachable",
            "permission denied",
            "operation not permitted",
            "protocol not available",
        ]) {
            Some(CallEnd::Unreachable)
        } else if has(&["timed out", "operation now in progress", "temporarily unavailable"]) {
            Some(CallEnd::TimedOut)
        } else if has(&[
            "unable to resolve",
            "bad address",
            "name or service not known",
            "name does not resolve",
            "name resolution",
            "not resolve host",
            "no address associated",
            "forward host lookup failed",
        ]) {
            Some(CallEnd::NameNotFound)
        } else {
            None
        }
    };
    text.lines().rev().find_map(of_line)
}

fn is_reset(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("reset by peer")
        || text.contains("ssl_error_syscall")
        || text.contains("broken pipe")
        || text.contains("error in the pull function")
}

fn not_http() -> CallEnd {
    CallEnd::Failed("the answer is not HTTP".to_owned())
}

/// Returns the failure of a program, with the last line that it printed.
fn failed(tool: Tool, ran: &Ran, why: &str) -> CallEnd {
    let mut lines = ran.stderr.lines().chain(ran.stdout.lines());
    let last = lines.rfind(|line| !line.trim().is_empty() && !line.starts_with(MARK));
    let shown: String = last
        .unwrap_or_default()
        .chars()
        .filter(|letter| !letter.is_control())
        .take(MAX_SHOWN)
        .collect();
    CallEnd::Failed(if shown.is_empty() {
        format!("{tool}: {why} (status {})", ran.exit)
    } else {
        format!("{tool}: {why}: {shown}")
    })
}
