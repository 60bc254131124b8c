//! The order in which differences are listed: by the subject of chains and rules. Names of chains
//! contain hashes, and the text of an address does not sort by number, so neither affects the
//! order.

use std::net::{IpAddr, SocketAddr};

use uturn_kubeproxy::chain_names::is_nft_rule_of_affinity;
use uturn_model::Family;

use super::blocks::{Change, Line};

/// A part of a rule or of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// A number.
    Number(u64),
    /// An address, in the order of numbers.
    Address(IpAddr),
    /// Anything else.
    Word(String),
}

/// Returns the sort key of a text.
pub(super) fn key(text: &str) -> Vec<Part> {
    let words = text.split(|letter: char| letter.is_whitespace() || "/,;(){}[]\"".contains(letter));
    let mut parts = Vec::new();
    for word in words.flat_map(|word| word.split("__")) {
        if let Some(ip) = address(word) {
            parts.push(Part::Address(ip));
        } else if let Ok(socket) = word.parse::<SocketAddr>() {
            parts.extend([Part::Address(socket.ip()), Part::Number(socket.port().into())]);
        } else {
            let of_word = word.split('-').filter(|part| !part.is_empty() && !is_hash(part));
            parts.extend(of_word.map(|part| match part.parse() {
                Ok(number) => Part::Number(number),
                Err(_) => Part::Word(part.to_owned()),
            }));
        }
    }
    parts
}

/// Parses an address. In names of chains, dots stand for the colons of IPv6.
fn address(word: &str) -> Option<IpAddr> {
    let dotted = || word.contains('.').then(|| word.replace('.', ":").parse().ok()).flatten();
    word.parse().ok().or_else(dotted)
}

/// Returns whether a word is a hash in a name that kube-proxy makes.
fn is_hash(word: &str) -> bool {
    matches!(word.len(), 8 | 16)
        && word.bytes().all(|own| own.is_ascii_uppercase() || (b'2'..=b'7').contains(&own))
}

/// Sorts differences: those that belong to no Service first, then by Service and by the text of the
/// lines. Lines whose order does not matter, such as elements of a set, are sorted too, and so are
/// consecutive affinity rules of a chain, which has one for each endpoint.
pub(super) fn sort(changes: &mut [(Family, Change)]) {
    for (_, change) in changes.iter_mut() {
        let is_ordered = change.is_ordered;
        let is_free = |line: &Line| !is_ordered || is_of_affinity(line);
        for lines in [&mut change.missing, &mut change.extra] {
            for run in lines.chunk_by_mut(|a, b| is_free(a) == is_free(b)) {
                if is_free(&run[0]) {
                    run.sort_by_cached_key(|line| key(&line.text));
                }
            }
        }
    }
    changes.sort_by_cached_key(|(family, change)| {
        let lines = || change.missing.iter().chain(&change.extra);
        let service = lines().find_map(|line| line.service.as_deref().map(key));
        let first = lines().next().map(|line: &Line| key(&line.text));
        (*family, service, key(&change.block), first)
    });
}

/// Returns whether a rule leads clients to the endpoint that they had before.
fn is_of_affinity(line: &Line) -> bool {
    is_nft_rule_of_affinity(&line.text) || line.text.contains(" --rcheck ")
}

#[cfg(test)]
mod tests {
    use uturn_model::Evidence;

    use super::super::blocks::Role;
    use super::*;

    #[test]
    fn elements_and_rules_of_affinity_are_sorted_and_other_rules_of_a_chain_are_not() {
        let line = |text: &str| Line {
            text: text.to_owned(),
            role: Role::Other,
            service: None,
            by: Evidence::kernel("here"),
        };
        let elements = ["fd00::200 . tcp . 80", "2001:db8::7 . tcp . 80", "fd00::1a . tcp . 80"];
        let affinity = [
            "ip saddr @affinity-QAAAAAAA-s/tcp/p__10.1.4.20/80 goto endpoint-QAAAAAAA-s/tcp/p__10.1.4.20/80",
            "ip saddr @affinity-AAAAAAAA-s/tcp/p__10.1.99.9/80 goto endpoint-AAAAAAAA-s/tcp/p__10.1.99.9/80",
            "ip saddr @affinity-BAAAAAAA-s/tcp/p__10.1.5.20/80 goto endpoint-BAAAAAAA-s/tcp/p__10.1.5.20/80",
        ];
        let cases = [
            (elements, true, [0, 1, 2]),
            (elements, false, [1, 2, 0]),
            (affinity, true, [0, 2, 1]),
        ];
        for (texts, is_ordered, wanted) in cases {
            let change = Change {
                block: "map m".to_owned(),
                is_ordered,
                missing: texts.map(line).to_vec(),
                extra: Vec::new(),
                is_gone: false,
                reordered: None,
            };
            let mut changes = [(Family::V6, change)];
            sort(&mut changes);
            let shown = changes[0].1.missing.iter().map(|line| line.text.as_str());
            assert!(shown.eq(wanted.map(|at| texts[at])));
        }
    }

    fn sorted<'t>(texts: &[&'t str]) -> Vec<&'t str> {
        let mut texts = texts.to_vec();
        texts.sort_by_key(|text| key(text));
        texts
    }

    #[test]
    fn hashes_do_not_decide_and_addresses_are_numbers() {
        let [first, second] =
            ["nat KUBE-SEP-ZZZZZZZZZZZZZZZZ a", "nat KUBE-SEP-AAAAAAAAAAAAAAAA b"];
        assert_eq!(sorted(&[second, first]), [first, second]);
        let [first, second] = ["--to-destination 10.1.1.9:80", "--to-destination 10.1.1.10:80"];
        assert_eq!(sorted(&[second, first]), [first, second]);
        let [first, second] = [
            "endpoint-ZZZZZZZZ-shop/web/tcp/http__fd00..9/80",
            "endpoint-AAAAAAAA-shop/web/tcp/http__fd00..10/80",
        ];
        assert_eq!(sorted(&[second, first]), [first, second]);
        let [first, second] = ["tcp dport 9 accept", "tcp dport 10 accept"];
        assert_eq!(sorted(&[second, first]), [first, second]);
    }
}
