//! The commands, as lists of arguments. Texts of a call are arguments of their own: no shell reads
//! them, and none begins with a dash.

use std::time::Duration;

use super::Tool;
use crate::call::Call;

/// The script that runs a command for a limited time. Its arguments: the seconds, and the command.
const TIMED: &str = include_str!("../scripts/timed.sh");
const BASH: &str = include_str!("../scripts/call.bash");
const PYTHON: &str = include_str!("../scripts/call.py");
const NODE: &str = include_str!("../scripts/call.js");

/// The line that curl prints at the end: status, seconds until the answer began, total seconds,
/// address.
const CURL_FORMAT: &str = "uturn %{http_code} %{time_starttransfer} %{time_total} %{remote_ip}\n";

pub(super) fn detection(tool: Tool) -> Vec<String> {
    let by_shell = |words: &[&str]| timed(Duration::from_secs(5), strings(words));
    match tool {
        Tool::Curl => strings(&["curl", "-q", "--version"]),
        Tool::Python => strings(&["python3", "--version"]),
        Tool::Node => strings(&["node", "--version"]),
        Tool::Wget | Tool::BusyboxWget => by_shell(&["wget", "--help"]),
        Tool::Bash => by_shell(&["bash", "--version"]),
        Tool::Nc => by_shell(&["nc", "-h"]),
    }
}

pub(super) fn command(tool: Tool, call: &Call, limit: Duration) -> Vec<String> {
    let seconds = limit.as_secs().max(1).to_string();
    match tool {
        Tool::Curl => curl(call, &seconds),
        Tool::Python => {
            let mut words = strings(&["python3", "-I", "-c", PYTHON]);
            words.extend(arguments(call, &seconds));
            words
        }
        Tool::Node => {
            let mut words = strings(&["node", "-e", NODE, "--"]);
            words.extend(arguments(call, &seconds));
            words
        }
        Tool::Wget => {
            let mut words = strings(&[
                "wget",
                "--no-config",
                "--no-proxy",
                "--no-hsts",
                "--no-check-certificate",
                "--tries=1",
                "--max-redirect=0",
                "--user-agent=uturn-probe",
                "--server-response",
                "--output-document=/dev/null",
            ]);
            words.push(format!("--timeout={seconds}"));
            words.extend(wget_target(call));
            timed(limit, words)
        }
        Tool::BusyboxWget => {
            let mut words =
                strings(&["wget", "-Y", "off", "-U", "uturn-probe", "-S", "-O", "/dev/null"]);
            words.extend(wget_target(call));
            timed(limit, words)
        }
        Tool::Bash => {
            let mut words = strings(&["bash", "--norc", "--noprofile", "-c", BASH, "uturn-probe"]);
            words.extend([call.connects_to(), call.port().to_string(), call.authority()]);
            words.push(call.request().map_or_else(String::new, |request| request.path.clone()));
            timed(limit, words)
        }
        Tool::Nc => {
            let words =
                ["nc", "-z", "-v", "-w", &seconds, &call.connects_to(), &call.port().to_string()];
            timed(limit, strings(&words))
        }
    }
}

fn curl(call: &Call, seconds: &str) -> Vec<String> {
    // The first option makes curl read no configuration.
    let mut words = strings(&[
        "curl",
        "-q",
        "-g",
        "-sS",
        "-v",
        "-k",
        "--http1.1",
        "-A",
        "uturn-probe",
        "--noproxy",
        "*",
        "--max-time",
    ]);
    words.extend(strings(&[seconds, "-o", "/dev/null", "-w", CURL_FORMAT]));
    if let Some(address) = call.pinned() {
        let shown = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
        // A redirect may lead to another port of the same host.
        let ports = if call.request().is_some_and(|request| request.follows) {
            vec![call.port().number(), 80, 443]
        } else {
            vec![call.port().number()]
        };
        for port in ports {
            words.push("--resolve".to_owned());
            words.push(format!("{}:{port}:{shown}", call.host()));
        }
    }
    if call.request().is_some_and(|request| request.follows) {
        words.extend(strings(&["-L", "--max-redirs", "1", "--proto-redir", "=http,https"]));
    }
    words.push(call.url());
    words
}

/// Returns the arguments for the destination: the URL, or the address with the host in a header.
fn wget_target(call: &Call) -> Vec<String> {
    match call.pinned() {
        None => vec![call.url()],
        Some(_) => {
            let host = format!("Host: {}", call.authority());
            vec!["--header".to_owned(), host, call.url_by_address()]
        }
    }
}

/// Returns the arguments of the scripts of Python and Node.js.
fn arguments(call: &Call, seconds: &str) -> Vec<String> {
    let request = call.request();
    let is_tls = request.is_some_and(|request| request.tls);
    let follows = request.is_some_and(|request| request.follows);
    vec![
        call.connects_to(),
        call.port().to_string(),
        call.host().to_owned(),
        call.authority(),
        seconds.to_owned(),
        if is_tls { "tls" } else { "plain" }.to_owned(),
        request.map_or_else(String::new, |request| request.path.clone()),
        if follows { "follow" } else { "stay" }.to_owned(),
    ]
}

fn timed(limit: Duration, words: Vec<String>) -> Vec<String> {
    let mut all = strings(&["sh", "-c", TIMED, "uturn-probe"]);
    all.push(limit.as_secs().max(1).to_string());
    all.extend(words);
    all
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
