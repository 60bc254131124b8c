//! What `nft list ruleset` prints, as text and as JSON.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Map, Value};

use super::chains::Chains;
use super::{lines, printed};
use crate::links::link;
use crate::names::Names;
use crate::text::{REMARKS as FREE_TEXT, Vocabulary, redact};

/// Names of tables, chains and sets that are the same on every node.
const WHOLE: [&str; 52] = [
    "filter",
    "nat",
    "mangle",
    "raw",
    "security",
    "input",
    "output",
    "forward",
    "prerouting",
    "postrouting",
    "INPUT",
    "OUTPUT",
    "FORWARD",
    "PREROUTING",
    "POSTROUTING",
    "kube-proxy",
    "kube-firewall",
    "cluster-ips",
    "cluster-ips-check",
    "nodeport-ips",
    "no-endpoint-services",
    "no-endpoint-nodeports",
    "firewall-ips",
    "firewall-check",
    "service-ips",
    "service-nodeports",
    "services",
    "nodeports",
    "masquerading",
    "mark-for-masquerade",
    "reject-chain",
    "nat-prerouting",
    "nat-output",
    "nat-postrouting",
    "filter-prerouting",
    "filter-input",
    "filter-forward",
    "filter-output",
    "filter-prerouting-pre-dnat",
    "filter-output-pre-dnat",
    "filter-output-post-dnat",
    "service-endpoints-check",
    "nodeport-endpoints-check",
    "hairpin-connections",
    "endpoints-check",
    "firewall",
    "external",
    "masquerade-check",
    "calico",
    "cilium",
    "antrea",
    "kindnet",
];

/// Remarks of kube-proxy on its tables, sets, chains and rules.
const REMARKS: [&str; 24] = [
    "rules for kube-proxy",
    "Active ClusterIPs",
    "IPs that accept NodePort traffic",
    "vmap to drop or reject packets to services with no endpoints",
    "vmap to drop or reject packets to service nodeports with no endpoints",
    "destinations that are subject to LoadBalancerSourceRanges",
    "ClusterIP, ExternalIP and LoadBalancer IP traffic",
    "NodePort traffic",
    "helper for @no-endpoint-services / @no-endpoint-nodeports",
    "helper for @no-endpoint-services and @no-endpoint-nodeports",
    "masquerade traffic to unreachable hosts",
    "drop traffic to unallocated ClusterIPs",
    "reject traffic to invalid ports of ClusterIPs",
    "hairpin connections",
    "Service traffic",
    "masquerade",
    "masquerade local traffic",
    "masquerade all clusterIP traffic",
    "masquerade clusterIP traffic from outside cluster",
    "short-circuit pod traffic",
    "short-circuit local traffic",
    "service hairpin connections",
    "Drop traffic to unallocated ClusterIPs",
    "Reject traffic to invalid ports of ClusterIPs",
];

/// Redacts a ruleset.
pub(super) fn redact_ruleset(text: &str, names: &mut Names, chains: &Chains) -> String {
    let mut is_elements = false;
    lines(text, |line| {
        if line.trim_start().starts_with('#') {
            // What nft could not print in full; it says nothing of its own.
            return redact(line, names, printed());
        }
        is_elements |= line.contains("elements = {");
        let mut writer = Writer {
            names,
            chains,
            new: String::new(),
            before: Vec::new(),
            is_elements,
            opens: false,
        };
        writer.line(line);
        let new = writer.new;
        is_elements &= !line.contains('}');
        numbered(&new)
    })
}

/// Whether a character ends a word.
fn is_separator(letter: char) -> bool {
    letter.is_whitespace() || "{},;()".contains(letter)
}

/// A line as it is written anew.
struct Writer<'w> {
    names: &'w mut Names,
    chains: &'w Chains,
    new: String,
    /// The words before, the latest last.
    before: Vec<String>,
    is_elements: bool,
    /// Whether the line opens a block: it declares what it names.
    opens: bool,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.opens = line.trim_end().ends_with('{');
        let mut rest = line;
        while let Some(letter) = rest.chars().next() {
            if is_separator(letter) {
                self.new.push(letter);
                rest = &rest[letter.len_utf8()..];
                continue;
            }
            let end = match letter {
                '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
                _ => rest.find(is_separator).unwrap_or(rest.len()),
            };
            let word = &rest[..end];
            let new = self.word(word);
            self.new.push_str(&new);
            self.before.push(word.to_owned());
            rest = &rest[end..];
        }
    }

    fn word(&mut self, word: &str) -> String {
        let before = self.before.last().map_or("", String::as_str);
        if let Some(text) = word.strip_prefix('"') {
            let text = text.trim_end_matches('"');
            let new = match before {
                "comment" => remark(text, self.names),
                "prefix" => redact(text, self.names, FREE_TEXT),
                "helper" => self.named(text),
                _ => link(text, self.names),
            };
            return format!("\"{new}\"");
        }
        if let Some(name) = word.strip_prefix('@') {
            return match name.split_once(',') {
                // A part of a packet: @th,16,16
                Some(_) => redact(word, self.names, printed()),
                None => format!("@{}", self.named(name)),
            };
        }
        let declares = ["chain", "set", "map", "flowtable", "counter", "quota", "limit"];
        let is_declared = match self.before.as_slice() {
            [first] => declares.contains(&first.as_str()),
            [first, _] => first == "table",
            _ => false,
        };
        match before {
            "jump" | "goto" => self.named(word),
            _ if is_declared && self.opens && !self.is_elements => self.named(word),
            _ => redact(word, self.names, printed()),
        }
    }

    /// The name of a table, a chain or a set.
    fn named(&mut self, name: &str) -> String {
        if WHOLE.contains(&name) { name.to_owned() } else { self.chains.nft(name, self.names) }
    }
}

fn remark(text: &str, names: &mut Names) -> String {
    if REMARKS.contains(&text) { text.to_owned() } else { redact(text, names, FREE_TEXT) }
}

/// Endpoints by number (`0 : 10.1.1.10 . 80, 1 : …`) are sorted by text, as kube-proxy sorts them.
fn numbered(line: &str) -> String {
    let Some(at) = line.find("numgen random mod ") else { return line.to_owned() };
    let Some((start, end)) = line[at..].find('{').zip(line[at..].find('}')) else {
        return line.to_owned();
    };
    if end <= start {
        return line.to_owned();
    }
    let inner = &line[at + start + 1..at + end];
    let endpoint = |(number, part): (usize, &str)| {
        let (own, value) = part.split_once(" : ")?;
        let value = value.trim();
        Some((endpoint(value).filter(|_| own.trim().parse() == Ok(number))?, value.to_owned()))
    };
    let parts: Option<Vec<(String, String)>> =
        inner.split(", ").enumerate().map(endpoint).collect();
    let Some(mut parts) = parts else { return line.to_owned() };
    parts.sort();
    let numbered: Vec<String> = parts
        .iter()
        .enumerate()
        .map(|(number, (_, value))| format!("{number} : {value}"))
        .collect();
    format!("{}{{ {} {}", &line[..at + start], numbered.join(", "), &line[at + end..])
}

/// The endpoint of a pick as kube-proxy sorts it: of an address and a port (`10.1.1.10 . 80`), or of
/// the name of a chain (`goto endpoint-…__10.1.1.10/80`), in which dots stand for colons.
fn endpoint(value: &str) -> Option<String> {
    if let Some(chain) = value.strip_prefix("goto ") {
        let (ip, port) = chain.rsplit_once("__")?.1.split_once('/')?;
        return Some(match ip.parse::<Ipv4Addr>() {
            Ok(ip) => format!("{ip}:{port}"),
            Err(_) => format!("[{}]:{port}", ip.replace('.', ":")),
        });
    }
    let (ip, port) = value.split_once(" . ").unwrap_or((value, ""));
    ip.parse::<IpAddr>().ok()?;
    Some(format!("{ip}:{port}"))
}

/// Redacts a ruleset in JSON.
pub(super) fn redact_json(field: &str, of: Value, names: &mut Names, chains: &Chains) -> Value {
    match of {
        Value::Object(entries) => {
            let entry = |(key, value): (String, Value)| {
                let value = redact_json(&key, value, names, chains);
                (key, value)
            };
            let mut new: Map<String, Value> = entries.into_iter().map(entry).collect();
            number_again(&mut new);
            Value::Object(new)
        }
        Value::Array(items) => {
            items.into_iter().map(|item| redact_json(field, item, names, chains)).collect()
        }
        Value::String(text) => text_of_json(field, &text, names, chains).into(),
        plain => plain,
    }
}

/// Sorts the endpoints of a map by number, as [`numbered`] does.
fn number_again(map: &mut Map<String, Value>) {
    if map.get("key").is_none_or(|key| key.get("numgen").is_none()) {
        return;
    }
    let set = map.get_mut("data").and_then(|data| data.get_mut("set"));
    let Some(items) = set.and_then(Value::as_array_mut) else { return };
    let endpoint = |(number, item): (usize, &Value)| {
        let value = item.get(1).filter(|_| item.get(0) == Some(&number.into()))?;
        let text = match value.pointer("/goto/target").and_then(Value::as_str) {
            Some(chain) => format!("goto {chain}"),
            None => match value.get("concat")?.as_array()?.as_slice() {
                [Value::String(ip), Value::Number(port)] => format!("{ip} . {port}"),
                _ => return None,
            },
        };
        Some((endpoint(&text)?, value.clone()))
    };
    let sorted: Option<Vec<(String, Value)>> = items.iter().enumerate().map(endpoint).collect();
    let Some(mut sorted) = sorted else { return };
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
    for (item, (_, value)) in items.iter_mut().zip(sorted) {
        if let Some(own) = item.get_mut(1) {
            *own = value;
        }
    }
}

fn text_of_json(field: &str, text: &str, names: &mut Names, chains: &Chains) -> String {
    if names.is_link(text) && !matches!(field, "name" | "chain" | "table" | "target" | "comment") {
        return link(text, names);
    }
    let mut named = |text: &str| match WHOLE.contains(&text) {
        true => text.to_owned(),
        false => chains.nft(text, names),
    };
    match field {
        "name" | "chain" | "table" | "target" => named(text),
        "comment" => remark(text, names),
        "prefix" => redact(text, names, FREE_TEXT),
        _ if text.starts_with('@') => format!("@{}", named(&text[1..])),
        // A prefix has its length beside it.
        "addr" => redact(text, names, Vocabulary::default()),
        _ => redact(text, names, printed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endpoints_are_sorted() {
        let sorted = [
            (
                "numgen random mod 2 map { 0 : 10.1.9.1 . 80, 1 : 10.1.10.1 . 80 }",
                "numgen random mod 2 map { 0 : 10.1.10.1 . 80, 1 : 10.1.9.1 . 80 }",
            ),
            (
                "numgen random mod 2 vmap { 0 : goto e__fd00..9/80, 1 : goto e__fd00..10/80 }",
                "numgen random mod 2 vmap { 0 : goto e__fd00..10/80, 1 : goto e__fd00..9/80 }",
            ),
        ];
        for (old, new) in sorted {
            assert_eq!(numbered(old), new);
        }
        for other in [
            "numgen random mod 10 vmap { 0-8 : goto z__10.1.1.1/80, 9 : goto a__10.1.1.1/80 }",
            "numgen random mod 2 vmap { 0 : jump z, 1 : jump a }",
            "numgen random mod 2 vmap { 1 : goto e__10.1.9.1/80, 0 : goto e__10.1.1.1/80 }",
            "numgen inc mod 2 map { 0 : 10.1.9.1 . 80, 1 : 10.1.10.1 . 80 }",
        ] {
            assert_eq!(numbered(other), other);
        }
    }
}
