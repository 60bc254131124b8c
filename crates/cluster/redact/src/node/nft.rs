//! Redacts the output of `nft list ruleset`, as text and as JSON.

use serde_json::{Map, Value};

use super::chains::Chains;
use super::nft_order::{
    order_affinities, order_picks, picks_of, rules_of_affinity, with_affinities_in_order,
    with_picks_in_order,
};
use super::{lines, printed};
use crate::links::link;
use crate::names::Names;
use crate::text::{REMARKS as FREE_TEXT, Vocabulary, redact};

/// The names of tables, chains and sets that are the same on every node.
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

/// The remarks of kube-proxy on its tables, sets, chains and rules.
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
    let new = lines(text, |line| {
        if line.trim_start().starts_with('#') {
            // A comment of nft on a rule that it cannot print in full; it contains no names.
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
        with_picks_in_order(line, &new)
    });
    with_affinities_in_order(text, &new)
}

/// Returns whether a character ends a word.
fn is_separator(letter: char) -> bool {
    letter.is_whitespace() || "{},;()".contains(letter)
}

/// The writer of a redacted line.
struct Writer<'w> {
    names: &'w mut Names,
    chains: &'w Chains,
    new: String,
    /// The preceding words, the latest last.
    before: Vec<String>,
    is_elements: bool,
    /// Whether the line opens a block: it declares the object that it names.
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

    /// Redacts the name of a table, a chain or a set.
    fn named(&mut self, name: &str) -> String {
        if WHOLE.contains(&name) { name.to_owned() } else { self.chains.nft(name, self.names) }
    }
}

fn remark(text: &str, names: &mut Names) -> String {
    if REMARKS.contains(&text) { text.to_owned() } else { redact(text, names, FREE_TEXT) }
}

/// Redacts a ruleset in JSON.
pub(super) fn redact_json(field: &str, of: Value, names: &mut Names, chains: &Chains) -> Value {
    match of {
        Value::Object(entries) => {
            let picks = picks_of(&entries);
            let entry = |(key, value): (String, Value)| {
                let value = redact_json(&key, value, names, chains);
                (key, value)
            };
            let mut new: Map<String, Value> = entries.into_iter().map(entry).collect();
            order_picks(&picks, &mut new);
            Value::Object(new)
        }
        Value::Array(items) => {
            let was = rules_of_affinity(&items);
            let new = items.into_iter().map(|item| redact_json(field, item, names, chains));
            let mut new: Vec<Value> = new.collect();
            order_affinities(&was, &mut new);
            Value::Array(new)
        }
        Value::String(text) => text_of_json(field, &text, names, chains).into(),
        plain => plain,
    }
}

fn text_of_json(field: &str, text: &str, names: &mut Names, chains: &Chains) -> String {
    if names.is_link(text) && !matches!(field, "name" | "chain" | "table" | "target" | "comment") {
        return link(text, names);
    }
    let mut named =
        |text: &str| if WHOLE.contains(&text) { text.to_owned() } else { chains.nft(text, names) };
    match field {
        "name" | "chain" | "table" | "target" => named(text),
        "comment" => remark(text, names),
        "prefix" => redact(text, names, FREE_TEXT),
        _ if text.starts_with('@') => format!("@{}", named(&text[1..])),
        // A prefix has its length in another field.
        "addr" => redact(text, names, Vocabulary::default()),
        _ => redact(text, names, printed()),
    }
}
