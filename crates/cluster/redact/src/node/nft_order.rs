//! The order of endpoints in the chains of Services, in the text and JSON of nftables. kube-proxy
//! sorts endpoints by the text of their addresses, and replaced addresses sort differently: the
//! endpoints are put in the order of the new addresses, so that the rules stay as kube-proxy would
//! write them. Endpoints that were not sorted stay unsorted in the same way.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Map, Value};
use uturn_kubeproxy::chain_names::{AFFINITY_SETS, is_nft_rule_of_affinity};

/// The numbered endpoints of a line (`0 : 10.1.1.10 . 80, 1 : …`).
struct Picks<'l> {
    before: &'l str,
    keys: Vec<Option<String>>,
    values: Vec<&'l str>,
    after: &'l str,
}

impl<'l> Picks<'l> {
    /// Reads the numbered endpoints of a line. Returns `None` if the line has none, or others than
    /// kube-proxy writes.
    fn of(line: &'l str) -> Option<Self> {
        let at = line.find("numgen random mod ")?;
        let start = at + line[at..].find('{')?;
        let end = start + line[start..].find('}')?;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (number, part) in line[start + 1..end].split(", ").enumerate() {
            let (own, value) = part.split_once(" : ")?;
            let value = value.trim();
            keys.push(Some(endpoint(value).filter(|_| own.trim().parse() == Ok(number))?));
            values.push(value);
        }
        Some(Self { before: &line[..start], keys, values, after: &line[end..] })
    }
}

/// Returns a redacted line with its numbered endpoints in their original order.
pub(super) fn with_picks_in_order(old: &str, new: &str) -> String {
    let Some((old, new)) = Picks::of(old).zip(Picks::of(new)) else { return new.to_owned() };
    let order = in_order(&old.keys, &new.keys);
    let numbered = order.into_iter().enumerate();
    let numbered: Vec<String> =
        numbered.map(|(number, from)| format!("{number} : {}", new.values[from])).collect();
    format!("{}{{ {} {}", new.before, numbered.join(", "), new.after)
}

/// Returns the endpoint of a pick as kube-proxy sorts it: from an address and a port (`10.1.1.10 .
/// 80`), or from the name of a chain (`goto endpoint-…__10.1.1.10/80`), in which dots stand for
/// colons.
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

/// Returns the endpoints of a numbered map in JSON. Returns an empty list for any other map.
pub(super) fn picks_of(map: &Map<String, Value>) -> Vec<Option<String>> {
    if map.get("key").is_none_or(|key| key.get("numgen").is_none()) {
        return Vec::new();
    }
    let items = map.get("data").and_then(|data| data.pointer("/set")).and_then(Value::as_array);
    let endpoint = |(number, item): (usize, &Value)| {
        let value = item.get(1).filter(|_| item.get(0) == Some(&number.into()))?;
        let text = match value.pointer("/goto/target").and_then(Value::as_str) {
            Some(chain) => format!("goto {chain}"),
            None => match value.get("concat")?.as_array()?.as_slice() {
                [Value::String(ip), Value::Number(port)] => format!("{ip} . {port}"),
                _ => return None,
            },
        };
        endpoint(&text).map(Some)
    };
    let endpoints = items.into_iter().flatten().enumerate().map(endpoint);
    endpoints.collect::<Option<_>>().unwrap_or_default()
}

/// Puts the endpoints of a numbered map in their original order.
pub(super) fn order_picks(old: &[Option<String>], map: &mut Map<String, Value>) {
    if old.is_empty() {
        return;
    }
    let order = in_order(old, &picks_of(map));
    let set = map.get_mut("data").and_then(|data| data.pointer_mut("/set"));
    let Some(items) = set.and_then(Value::as_array_mut) else { return };
    order_part(items, "/1", order);
}

/// Returns a redacted ruleset with its affinity rules, one for each endpoint, in their original
/// order.
pub(super) fn with_affinities_in_order(old: &str, new: &str) -> String {
    let lines: Vec<&str> = new.lines().collect();
    let keys = |text: &str| -> Vec<Option<String>> { text.lines().map(key_of_line).collect() };
    let order = in_order(&keys(old), &keys(new));
    order.into_iter().map(|at| format!("{}\n", lines[at])).collect()
}

/// Returns the endpoint of an affinity rule: `ip saddr @affinity-… goto endpoint-…__10.1.1.10/80`.
fn key_of_line(line: &str) -> Option<String> {
    let (condition, chain) = line.trim().split_once(" goto ")?;
    is_nft_rule_of_affinity(condition).then(|| endpoint(&format!("goto {chain}")))?
}

/// Returns the endpoints of the affinity rules among these items.
pub(super) fn rules_of_affinity(items: &[Value]) -> Vec<Option<String>> {
    items.iter().map(key_of_rule).collect()
}

fn key_of_rule(item: &Value) -> Option<String> {
    let [condition, goto] = item.pointer("/rule/expr")?.as_array()?.as_slice() else {
        return None;
    };
    let set = condition.pointer("/match/right")?.as_str()?.strip_prefix('@')?;
    let chain = goto.pointer("/goto/target")?.as_str()?;
    set.starts_with(AFFINITY_SETS).then(|| endpoint(&format!("goto {chain}")))?
}

/// Puts affinity rules in JSON in their original order. Their handles stay in place.
pub(super) fn order_affinities(old: &[Option<String>], items: &mut [Value]) {
    if old.iter().all(Option::is_none) {
        return;
    }
    // The rules of two chains are adjacent if the item that ends the first is missing.
    let is_same_chain = |a: &Value, b: &Value| {
        ["family", "table", "chain"]
            .iter()
            .all(|part| a["rule"][part].as_str() == b["rule"][part].as_str())
    };
    let mut old = old;
    for rules in items.chunk_by_mut(is_same_chain) {
        let (of_chain, others) = old.split_at(rules.len().min(old.len()));
        let order = in_order(of_chain, &rules_of_affinity(rules));
        order_part(rules, "/rule/expr", order);
        old = others;
    }
}

/// Reorders this part of the items. `order` has the indices of the items from which each part is
/// taken.
fn order_part(items: &mut [Value], part: &str, order: Vec<usize>) {
    let parts: Vec<Option<Value>> = items.iter().map(|item| item.pointer(part).cloned()).collect();
    for (item, from) in items.iter_mut().zip(order) {
        if let (Some(own), Some(new)) = (item.pointer_mut(part), &parts[from]) {
            own.clone_from(new);
        }
    }
}

/// Returns the indices of items with new keys in the order of the old keys: in each run of items
/// with keys, the first in the new order takes the place of the first in the old order, and so on.
fn in_order(old: &[Option<String>], new: &[Option<String>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..new.len()).collect();
    if old.len() != new.len() {
        return order;
    }
    let mut start = 0;
    for run in old.chunk_by(|a, b| a.is_some() == b.is_some()) {
        let range = start..start + run.len();
        start = range.end;
        if run[0].is_none() {
            continue;
        }
        let sorted = |keys: &[Option<String>]| {
            let mut indices: Vec<usize> = range.clone().collect();
            indices.sort_by(|a, b| keys[*a].cmp(&keys[*b]));
            indices
        };
        for (place, from) in sorted(old).into_iter().zip(sorted(new)) {
            order[place] = from;
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn endpoints_by_number_keep_their_order() {
        let service = "numgen random mod 2 map { 0 : 10.1.1.1 . 80, 1 : 10.1.1.2 . 80 }";
        let unsorted = "numgen random mod 2 map { 0 : 10.1.1.2 . 80, 1 : 10.1.1.1 . 80 }";
        let nine_first = "numgen random mod 2 map { 0 : 10.1.9.1 . 80, 1 : 10.1.10.1 . 80 }";
        let ten_first = "numgen random mod 2 map { 0 : 10.1.10.1 . 80, 1 : 10.1.9.1 . 80 }";
        for new in [nine_first, ten_first] {
            assert_eq!(with_picks_in_order(service, new), ten_first);
            assert_eq!(with_picks_in_order(unsorted, new), nine_first);
        }
        assert_eq!(
            with_picks_in_order(
                "numgen random mod 2 vmap { 0 : goto e__fd00..1/80, 1 : goto e__fd00..2/80 }",
                "numgen random mod 2 vmap { 0 : goto e__fd00..9/80, 1 : goto e__fd00..10/80 }",
            ),
            "numgen random mod 2 vmap { 0 : goto e__fd00..10/80, 1 : goto e__fd00..9/80 }",
        );
    }

    #[test]
    fn maps_that_kube_proxy_does_not_write_stay_as_they_are() {
        for (old, new) in [
            (
                "numgen random mod 10 vmap { 0-8 : goto a__10.1.1.1/80, 9 : goto b__10.1.1.2/80 }",
                "numgen random mod 10 vmap { 0-8 : goto z__10.1.1.2/80, 9 : goto a__10.1.1.1/80 }",
            ),
            (
                "numgen random mod 2 vmap { 0 : jump a, 1 : jump b }",
                "numgen random mod 2 vmap { 0 : jump z, 1 : jump a }",
            ),
            (
                "numgen random mod 2 vmap { 1 : goto e__10.1.1.1/80, 0 : goto e__10.1.1.2/80 }",
                "numgen random mod 2 vmap { 1 : goto e__10.1.9.1/80, 0 : goto e__10.1.1.1/80 }",
            ),
            (
                "numgen inc mod 2 map { 0 : 10.1.1.1 . 80, 1 : 10.1.1.2 . 80 }",
                "numgen inc mod 2 map { 0 : 10.1.9.1 . 80, 1 : 10.1.10.1 . 80 }",
            ),
        ] {
            assert_eq!(with_picks_in_order(old, new), new);
        }
    }

    #[test]
    fn rules_of_affinity_keep_their_order() {
        let ruleset = |endpoints: [&str; 3]| -> String {
            let rule =
                |at: &&str| format!("\t\tip saddr @affinity-X__{at} goto endpoint-X__{at}\n");
            let rules: String = endpoints.iter().map(rule).collect();
            format!("\tchain service-X {{\n{rules}\t\tnumgen random mod 3 vmap {{ }}\n\t}}\n")
        };
        let [first, second, third] = ["10.1.1.10/80", "10.1.1.11/80", "10.1.1.9/80"];
        let [new_first, new_second, new_third] = ["10.1.1.1/80", "10.1.10.1/80", "10.1.9.1/80"];
        let new = ruleset([new_third, new_second, new_first]);
        let kept = |old: [&str; 3]| with_affinities_in_order(&ruleset(old), &new);
        assert_eq!(kept([first, second, third]), ruleset([new_first, new_second, new_third]));
        assert_eq!(kept([third, first, second]), ruleset([new_third, new_first, new_second]));
    }

    #[test]
    fn rules_of_affinity_stay_in_their_chains_in_json() {
        let rule = |chain: &str, endpoint: &str| {
            let known = json!({"match": {"op": "==", "right": format!("@affinity-X__{endpoint}")}});
            let goto = json!({"goto": {"target": format!("endpoint-X__{endpoint}")}});
            json!({"rule": {"family": "ip", "table": "kube-proxy", "chain": chain,
                "expr": [known, goto]}})
        };
        let old = [
            rule("service-A", "10.1.1.1/80"),
            rule("service-A", "10.1.1.2/80"),
            rule("service-B", "10.1.1.3/80"),
            rule("service-B", "10.1.1.4/80"),
        ];
        let mut new = [
            rule("service-C", "10.1.9.1/80"),
            rule("service-C", "10.1.8.1/80"),
            rule("service-D", "10.1.7.1/80"),
            rule("service-D", "10.1.6.1/80"),
        ];
        let in_order = [
            rule("service-C", "10.1.8.1/80"),
            rule("service-C", "10.1.9.1/80"),
            rule("service-D", "10.1.6.1/80"),
            rule("service-D", "10.1.7.1/80"),
        ];
        order_affinities(&rules_of_affinity(&old), &mut new);
        assert_eq!(new, in_order);
    }
}
