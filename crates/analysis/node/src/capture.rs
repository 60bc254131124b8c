//! The capture of a machine: its parts and their order.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uturn_model::{CaptureFile, Family, Name};

use crate::machine::{Machine, ToolFailure};
use crate::manifest::{FORMAT, Manifest, Part};
use crate::{iptables, sysctls};

/// The maximum number of attempts to capture if the rules change during each.
const MAX_ATTEMPTS: usize = 4;

/// Optional parts of a capture, besides rules and routes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The connections that the kernel tracks.
    pub conntrack: bool,
    /// The packets and bytes that each rule counted.
    pub counters: bool,
}

/// A finished capture.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The manifest, which describes the capture.
    pub manifest: Manifest,
    /// The files by their names, without the manifest.
    pub files: BTreeMap<String, String>,
}

impl Captured {
    /// Returns all files by their names, including the manifest.
    pub fn into_files(self) -> BTreeMap<String, String> {
        let manifest = serde_json::to_string_pretty(&self.manifest)
            .expect("a manifest has no maps with other keys than texts");
        let mut files = self.files;
        files.insert(CaptureFile::Manifest.file_name().to_owned(), manifest + "\n");
        files
    }
}

/// Captures a machine as this node.
///
/// A failure does not end the capture: the manifest states what is missing and why. If the rules
/// change meanwhile, the capture is repeated, and the manifest states whether the last one is
/// settled.
pub fn capture(machine: &impl Machine, node: &Name, options: Options) -> Captured {
    let mut attempt = 1;
    loop {
        let captured = capture_once(machine, node, options);
        if captured.manifest.settled || attempt == MAX_ATTEMPTS {
            return captured;
        }
        attempt += 1;
    }
}

fn capture_once(machine: &impl Machine, node: &Name, options: Options) -> Captured {
    let taken_at = Timestamp::now().to_string();
    let mut taken = Taken { machine, files: BTreeMap::new(), parts: Vec::new() };
    taken.changing_state(options);
    let before = taken.state_without_counters();
    taken.command(CaptureFile::Addresses.file_name(), &[("ip", &["addr"])]);
    taken.command(
        CaptureFile::Routes.file_name(),
        &[
            ("ip", &["-4", "route", "show", "table", "all"]),
            ("ip", &["-6", "route", "show", "table", "all"]),
        ],
    );
    let rules: [(&str, &[&str]); 2] = [("ip", &["-4", "rule"]), ("ip", &["-6", "rule"])];
    taken.command(CaptureFile::Rules.file_name(), &rules);
    taken.command(LINKS, &[("ip", &["-d", "-j", "link"])]);
    taken.sysctls();
    if options.conntrack {
        taken.conntrack();
    }
    let kernel = machine.read("/proc/sys/kernel/osrelease").ok();
    let mut again = Taken { machine, files: BTreeMap::new(), parts: Vec::new() };
    again.changing_state(options);
    let settled = again.state_without_counters() == before;
    let manifest = Manifest {
        format: FORMAT,
        node: node.to_string(),
        taken_at,
        uturn: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: kernel.map(|release| release.trim().to_owned()),
        settled,
        parts: taken.parts,
    };
    Captured { manifest, files: taken.files }
}

/// The file with the properties of the links other than their addresses: for people, and for later
/// versions.
const LINKS: &str = "link.json";

/// The file with the tracked connections.
const CONNTRACK: &str = "conntrack";

/// A capture in progress.
struct Taken<'m, M> {
    machine: &'m M,
    files: BTreeMap<String, String>,
    parts: Vec<Part>,
}

impl<M: Machine> Taken<'_, M> {
    /// Captures the state that a kube-proxy changes: rules, sets and virtual servers.
    fn changing_state(&mut self, options: Options) {
        for family in Family::BOTH {
            let saved = iptables::save(self.machine, family, options.counters);
            let files = saved.files.into_iter();
            self.files.extend(files.map(|(file, text)| (file.file_name().to_owned(), text)));
            self.parts.extend(saved.parts);
        }
        let nft: &[&str] =
            if options.counters { &["list", "ruleset"] } else { &["-s", "list", "ruleset"] };
        self.command(CaptureFile::Nft.file_name(), &[("nft", nft)]);
        self.command(CaptureFile::Ipset.file_name(), &[("ipset", &["save"])]);
        self.virtual_servers();
    }

    /// Captures the output of these commands, one after the other, in one file.
    fn command(&mut self, file: &str, commands: &[(&str, &[&str])]) {
        let mut text = String::new();
        let words = |program: &str, arguments: &[&str]| [&[program], arguments].concat().join(" ");
        for (program, arguments) in commands {
            match self.machine.run(program, arguments) {
                Ok(printed) => text.push_str(&printed),
                Err(why) => {
                    return self.parts.push(Part::failed(file, words(program, arguments), &why));
                }
            }
        }
        let all: Vec<String> =
            commands.iter().map(|(program, arguments)| words(program, arguments)).collect();
        self.parts.push(Part::captured(file, all.join("; ")));
        self.files.insert(file.to_owned(), text);
    }

    /// Captures the virtual servers. ipvsadm would load the kernel's IPVS module, so it runs only
    /// if the module is loaded.
    fn virtual_servers(&mut self) {
        const LISTED: &str = "/proc/net/ip_vs";
        let file = CaptureFile::Ipvs.file_name();
        let (from, text, why) = match self.machine.read(LISTED) {
            Err(ToolFailure::Missing) => (LISTED, String::new(), Some("this kernel runs no IPVS")),
            Err(why) => return self.parts.push(Part::failed(file, LISTED, &why)),
            Ok(listed) => match self.machine.run("ipvsadm", &["-S", "-n"]) {
                Ok(saved) => ("ipvsadm -S -n", saved, None),
                Err(_) => (LISTED, listed, None),
            },
        };
        let part = Part { why: why.map(str::to_owned), ..Part::captured(file, from) };
        self.parts.push(part);
        self.files.insert(file.to_owned(), text);
    }

    fn sysctls(&mut self) {
        let file = CaptureFile::Sysctls.file_name();
        let text = match sysctls::read(self.machine) {
            Ok(text) if text.is_empty() => Err(ToolFailure::Missing),
            read => read,
        };
        let text = match text {
            Ok(text) => text,
            Err(why) => return self.parts.push(Part::failed(file, "/proc/sys/net", &why)),
        };
        self.parts.push(Part::captured(file, "/proc/sys/net"));
        self.files.insert(file.to_owned(), text);
    }

    fn conntrack(&mut self) {
        const LISTED: &str = "/proc/net/nf_conntrack";
        match self.machine.read(LISTED) {
            Ok(text) => {
                self.parts.push(Part::captured(CONNTRACK, LISTED));
                self.files.insert(CONNTRACK.to_owned(), text);
            }
            Err(_) => {
                let list = |family| ("conntrack", ["-L", "-o", "extended", "-f", family]);
                let [v4, v6] = [list("ipv4"), list("ipv6")];
                self.command(CONNTRACK, &[(v4.0, &v4.1), (v6.0, &v6.1)]);
            }
        }
    }

    /// Returns the rules, sets and servers without the values that change with each packet and each
    /// capture.
    fn state_without_counters(&self) -> BTreeMap<String, Vec<String>> {
        let lines = |text: &String| {
            let own = text.lines().filter(|line| !line.starts_with('#'));
            own.map(without_counters).collect()
        };
        self.files.iter().map(|(file, text)| (file.clone(), lines(text))).collect()
    }
}

/// Removes the changing values from a line: from rules `[packets:bytes]` and `counter packets P
/// bytes B`, from sets the remaining time of elements, and from `/proc/net/ip_vs` the connections
/// of a server.
fn without_counters(line: &str) -> String {
    // `  -> 0AF40109:0050      Masq    1      3          12`
    if let Some(server) = line.trim_start().strip_prefix("-> ") {
        return server.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    }
    let (mut words, mut kept) = (line.split(' '), Vec::new());
    while let Some(word) = words.next() {
        match word {
            "packets" | "bytes" | "expires" | "timeout" => drop(words.next()),
            _ if word.starts_with('[') && word.ends_with(']') && word.contains(':') => {}
            _ => kept.push(word),
        }
    }
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_times_are_left_out() {
        let same = [
            (":INPUT ACCEPT [12:345]", ":INPUT ACCEPT"),
            ("[1:2] -A INPUT -j DROP", "-A INPUT -j DROP"),
            ("counter packets 5 bytes 6 drop", "counter drop"),
            ("10.0.0.1 timeout 3h expires 2h58m,", "10.0.0.1"),
            ("  -> 0AF40109:0050      Masq    1      3          12", "0AF40109:0050 Masq 1"),
        ];
        for (line, expected) in same {
            assert_eq!(without_counters(line), expected);
        }
    }
}
