//! The order of endpoints in the chains of Services, in nftables' text and JSON. kube-proxy sorts them
//! by the text of their addresses, and other addresses sort in another order: they are sorted again,
//! so that the rules stay those that kube-proxy writes.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Map, Value};

/// A line whose endpoints by number (`0 : 10.1.1.10 . 80, 1 : …`) are sorted.
pub(super) fn picks_sorted(line: &str) -> String {
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

/// Sorts the endpoints of a map by number in JSON.
pub(super) fn sort_picks(map: &mut Map<String, Value>) {
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

/// A ruleset whose rules of affinity, one for each endpoint, are sorted where they were before it was
/// redacted.
pub(super) fn affinities_sorted(old: &str, new: &str) -> String {
    let lines: Vec<&str> = new.lines().collect();
    let keys = |text: &str| -> Vec<Option<String>> { text.lines().map(key_of_line).collect() };
    let order = sorted_again(&keys(old), &keys(new));
    order.into_iter().map(|at| format!("{}\n", lines[at])).collect()
}

/// The endpoint of a rule of affinity: `ip saddr @affinity-… goto endpoint-…__10.1.1.10/80`.
fn key_of_line(line: &str) -> Option<String> {
    let (condition, chain) = line.trim().split_once(" goto ")?;
    condition.contains(" @affinity-").then(|| endpoint(&format!("goto {chain}")))?
}

/// The endpoints of the rules of affinity among these items.
pub(super) fn rules_of_affinity(items: &[Value]) -> Vec<Option<String>> {
    items.iter().map(key_of_rule).collect()
}

fn key_of_rule(item: &Value) -> Option<String> {
    let [condition, goto] = item.pointer("/rule/expr")?.as_array()?.as_slice() else {
        return None;
    };
    let set = condition.pointer("/match/right")?.as_str()?;
    let chain = goto.pointer("/goto/target")?.as_str()?;
    set.starts_with("@affinity-").then(|| endpoint(&format!("goto {chain}")))?
}

/// Sorts rules of affinity in JSON. Their handles stay in their places.
pub(super) fn sort_affinities(old: &[Option<String>], items: &mut [Value]) {
    if old.iter().all(Option::is_none) {
        return;
    }
    let order = sorted_again(old, &rules_of_affinity(items));
    let expressions: Vec<Option<Value>> =
        items.iter().map(|item| item.pointer("/rule/expr").cloned()).collect();
    for (item, from) in items.iter_mut().zip(order) {
        if let (Some(own), Some(new)) = (item.pointer_mut("/rule/expr"), &expressions[from]) {
            own.clone_from(new);
        }
    }
}

/// The indices of items with runs of keys sorted that were sorted with the old keys.
fn sorted_again(old: &[Option<String>], new: &[Option<String>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..new.len()).collect();
    let mut start = 0;
    for run in old.chunk_by(|a, b| a.is_some() == b.is_some()) {
        let end = (start + run.len()).min(new.len());
        if run[0].is_some() && run.is_sorted() {
            order[start..end].sort_by(|a, b| new[*a].cmp(&new[*b]));
        }
        start = end;
    }
    order
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
            assert_eq!(picks_sorted(old), new);
        }
        for other in [
            "numgen random mod 10 vmap { 0-8 : goto z__10.1.1.1/80, 9 : goto a__10.1.1.1/80 }",
            "numgen random mod 2 vmap { 0 : jump z, 1 : jump a }",
            "numgen random mod 2 vmap { 1 : goto e__10.1.9.1/80, 0 : goto e__10.1.1.1/80 }",
            "numgen inc mod 2 map { 0 : 10.1.9.1 . 80, 1 : 10.1.10.1 . 80 }",
        ] {
            assert_eq!(picks_sorted(other), other);
        }
    }

    #[test]
    fn rules_of_affinity_are_sorted_where_they_were() {
        let ruleset = |endpoints: [&str; 3]| -> String {
            let rule =
                |at: &&str| format!("\t\tip saddr @affinity-X__{at} goto endpoint-X__{at}\n");
            let rules: String = endpoints.iter().map(rule).collect();
            format!("\tchain service-X {{\n{rules}\t\tnumgen random mod 3 vmap {{ }}\n\t}}\n")
        };
        let sorted = ["10.1.1.10/80", "10.1.1.11/80", "10.1.1.9/80"];
        let others = ["10.1.9.1/80", "10.1.10.1/80", "10.1.1.1/80"];
        let sorted_others = ["10.1.1.1/80", "10.1.10.1/80", "10.1.9.1/80"];
        assert_eq!(affinities_sorted(&ruleset(sorted), &ruleset(others)), ruleset(sorted_others));
        let unsorted = [sorted[2], sorted[0], sorted[1]];
        assert_eq!(affinities_sorted(&ruleset(unsorted), &ruleset(others)), ruleset(others));
    }
}
