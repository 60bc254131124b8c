//! Redacts captures of nodes: the output of the tools of a node.

pub(crate) mod chains;
mod ip;
pub(crate) mod iptables;
mod manifest;
mod nft;
mod nft_order;
mod picks;

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::Value;
use uturn_model::{Capture, CaptureFile};

use self::chains::Chains;
use crate::links::link;
use crate::names::Names;
use crate::text::{NAMES, REMARKS, Vocabulary, redact};
use crate::words::list;

static TOOLS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| list(include_str!("known/capture.txt")));

/// Returns the vocabulary of the output of tools.
pub(crate) fn printed() -> Vocabulary {
    Vocabulary { words: Some(&TOOLS), keeps_numbers: true, ..NAMES }
}

/// Redacts the files of a capture, in the order of their kinds.
pub(crate) fn capture(
    capture: &Capture,
    names: &mut Names,
    chains: &Chains,
) -> Vec<(&'static str, String)> {
    let has_text = capture.files.contains_key(&CaptureFile::Nft);
    let mut files = Vec::new();
    for (file, captured) in &capture.files {
        let text = &*captured.text;
        let new = match file {
            CaptureFile::Iptables
            | CaptureFile::Ip6tables
            | CaptureFile::OtherIptables
            | CaptureFile::OtherIp6tables => iptables::redact_rules(text, names, chains),
            CaptureFile::Nft => nft::redact_ruleset(text, names, chains),
            // If both exist, the text is read.
            CaptureFile::NftJson if has_text => continue,
            CaptureFile::NftJson => match serde_json::from_str::<Value>(text) {
                Ok(document) => nft::redact_json("", document, names, chains).to_string(),
                Err(_) => continue,
            },
            CaptureFile::Ipset => sets(text, names),
            CaptureFile::Ipvs => servers(text, names),
            CaptureFile::Addresses | CaptureFile::Routes | CaptureFile::Rules => {
                lines(text, |line| ip::line(line, names))
            }
            CaptureFile::Sysctls => lines(text, |line| ip::setting(line, names)),
            CaptureFile::Manifest => match manifest::redact(text, names) {
                Some(text) => text,
                None => continue,
            },
        };
        files.push((file.file_name(), new));
    }
    files
}

/// Converts a text line by line.
pub(crate) fn lines(text: &str, mut of: impl FnMut(&str) -> String) -> String {
    let mut new = String::with_capacity(text.len());
    for line in text.lines() {
        new.push_str(&of(line));
        new.push('\n');
    }
    new
}

/// Redacts the output of `ipset save`.
fn sets(text: &str, names: &mut Names) -> String {
    // The sets whose members are sets.
    let of_sets: HashSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("create ")?.split_once(' '))
        .filter(|(_, of)| of.starts_with("list:set"))
        .map(|(name, _)| name)
        .collect();
    lines(text, |line| {
        let mut parts = line.splitn(3, ' ');
        let (Some(verb), Some(set)) = (parts.next(), parts.next()) else {
            return redact(line, names, printed());
        };
        let rest = parts.next().unwrap_or_default();
        let (rest, comment) = match rest.split_once(" comment \"") {
            Some((rest, comment)) => (rest, Some(comment)),
            None => (rest, None),
        };
        let verb = redact(verb, names, printed());
        let mut new = format!("{verb} {}", chains::set(set, names));
        if !rest.is_empty() {
            new.push(' ');
            let has_sets = verb == "add" && of_sets.contains(set);
            let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
            if has_sets {
                // `add all web before mail`
                new.push_str(&chains::set(first, names));
                for word in more.split_whitespace() {
                    let is_word = matches!(word, "before" | "after");
                    let word = if is_word { word.to_owned() } else { chains::set(word, names) };
                    new.push_str(&format!(" {word}"));
                }
            } else {
                new.push_str(&members(rest, names));
            }
        }
        if let Some(comment) = comment {
            new.push_str(&format!(" comment \"{}", redact(comment, names, REMARKS)));
        }
        new
    })
}

/// Redacts a member of a set with its options, or the parameters of a new set: `10.0.0.0/8,eth0
/// timeout 30`.
fn members(text: &str, names: &mut Names) -> String {
    let (member, rest) = text.split_once(' ').unwrap_or((text, ""));
    let part = |(at, part): (usize, &str)| {
        let own = part.strip_prefix("physdev:").unwrap_or(part);
        if at > 0 && names.is_link(own) {
            format!("{}{}", &part[..part.len() - own.len()], link(own, names))
        } else {
            redact(part, names, printed())
        }
    };
    let member: Vec<String> = member.split(',').enumerate().map(part).collect();
    let rest = match rest {
        "" => String::new(),
        rest => format!(" {}", redact(rest, names, printed())),
    };
    format!("{}{rest}", member.join(","))
}

/// Redacts the output of `ipvsadm`, or of the kernel, in which addresses are hexadecimal numbers.
fn servers(text: &str, names: &mut Names) -> String {
    lines(text, |line| {
        let mut new = String::new();
        for part in line.split_inclusive(' ') {
            let token = part.trim_end_matches(' ');
            let space = &part[token.len()..];
            match hexadecimal(token, names) {
                Some(text) => new.push_str(&text),
                None => new.push_str(&redact(token, names, printed())),
            }
            new.push_str(space);
        }
        new
    })
}

/// Redacts an address and a port such as `0A00000B:7594`. Returns `None` for any other text.
fn hexadecimal(token: &str, names: &mut Names) -> Option<String> {
    let (ip, port) = token.split_once(':')?;
    let is_hex = |text: &str, digits| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if !is_hex(ip, 8) || !is_hex(port, 4) {
        return None;
    }
    let ip = std::net::Ipv4Addr::from_bits(u32::from_str_radix(ip, 16).ok()?);
    match names.address(ip.into()) {
        std::net::IpAddr::V4(ip) => Some(format!("{:08X}:{port}", ip.to_bits())),
        std::net::IpAddr::V6(_) => None,
    }
}
