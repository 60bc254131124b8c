//! The table of kube-proxy in nftables mode as blocks.

use std::net::IpAddr;

use uturn_model::{Evidence, Family, Text};
use uturn_netfilter::nft::{
    Chain, Data, Element, Expr, Nat, NatKind, Rule, Ruleset, Set, Statement, Table, TableFamily,
    Verdict,
};

use super::blocks::{Block, Blocks, Line, Role};
use super::order;

/// The name of kube-proxy's tables.
const TABLE: &str = "kube-proxy";

/// The chain that stops packets to unused addresses of the range of cluster IPs.
pub(super) const RANGE_CHECK: &str = "chain cluster-ips-check";

/// Returns kube-proxy's table of a family.
pub(super) fn table(rules: &Ruleset, family: Family) -> Option<&Table> {
    let family = match family {
        Family::V4 => TableFamily::Ip,
        Family::V6 => TableFamily::Ip6,
    };
    rules.table(family, TABLE)
}

/// Returns a rule as evidence that kube-proxy ran here in nftables mode.
pub(super) fn trace(rules: &Ruleset) -> Option<Evidence> {
    let tables = Family::BOTH.into_iter().filter_map(|family| table(rules, family));
    tables.into_iter().find_map(|table| {
        let rule = table.chains.iter().flat_map(|chain| &chain.rules).next()?;
        Some(rule.by(table.family))
    })
}

/// Returns the chains, sets and maps of a table. Sets that rules fill are left out.
pub(super) fn blocks(table: &Table) -> Blocks {
    let mut blocks = Blocks::new();
    for chain in &table.chains {
        let mut lines: Vec<Line> = chain.base.iter().map(|_| base(chain)).collect();
        lines.extend(chain.rules.iter().flat_map(|rule| of_rule(rule, table.family)));
        blocks.insert(format!("chain {}", chain.name), Block { lines, is_ordered: true });
    }
    for set in table.sets.iter().filter(|set| !set.changes()) {
        let kind = if set.data.is_some() { "map" } else { "set" };
        let is_ranges = set.flags.iter().any(|flag| &**flag == "interval");
        let elements = if is_ranges { merged(&set.elements) } else { set.elements.clone() };
        let lines = elements.iter().map(|element| of_element(set, element, table.family)).collect();
        blocks.insert(format!("{kind} {}", set.name), Block { lines, is_ordered: false });
    }
    blocks
}

fn base(chain: &Chain) -> Line {
    let text = chain.base.as_ref().map_or(String::new(), |base| {
        format!(
            "type {} hook {} priority {}; policy {}",
            base.kind.as_str(),
            base.hook.as_str(),
            base.priority,
            base.policy.as_str().to_lowercase()
        )
    });
    let by = Evidence::Nftables { rule: text.as_str().into(), origin: chain.origin.clone() };
    Line { text, role: Role::Other, service: None, by }
}

/// Converts a rule to lines. If the rule picks an endpoint, each endpoint is a separate line.
fn of_rule(rule: &Rule, family: TableFamily) -> Vec<Line> {
    let by = rule.by(family);
    let mut plain = rule.clone();
    plain.comment = None;
    plain.statements.retain(|statement| !matches!(statement, Statement::Counter(_)));
    let mut picked: Vec<Text> = Vec::new();
    for statement in &mut plain.statements {
        match statement {
            Statement::Match { right, .. } => {
                if let Some(plain) = as_ranges(right) {
                    *right = plain;
                }
            }
            Statement::Vmap(Expr::Numgen { .. }, Expr::Set(elements)) => {
                picked.extend(elements.iter().filter_map(goes_to));
            }
            Statement::Vmap(_, Expr::Set(elements)) => {
                elements.sort_by_cached_key(element_order);
            }
            _ => {}
        }
    }
    let is_endpoint = |statement: &Statement| match statement {
        Statement::Nat(Nat { kind: NatKind::Dnat, .. }) => true,
        Statement::Verdict(Verdict::Goto(chain) | Verdict::Jump(chain)) => {
            chain.starts_with("endpoint-")
        }
        _ => false,
    };
    let role = if plain.statements.iter().any(is_endpoint) || !picked.is_empty() {
        Role::Endpoint
    } else {
        Role::Other
    };
    // Each endpoint is a separate line, so the map itself is left out.
    if !picked.is_empty() {
        plain.statements.retain(|statement| !matches!(statement, Statement::Vmap(..)));
    }
    let mut text = plain.line(family).to_string();
    if !picked.is_empty() {
        text.push_str(&format!("picks one of {}", picked.len()));
    }
    let line = |text: String| Line { text, role, service: None, by: by.clone() };
    let mut lines = vec![line(text)];
    lines.extend(picked.into_iter().map(|chain| line(format!("goto {chain}"))));
    lines
}

/// Returns the compared addresses as the fewest ranges; a set of one range becomes that range.
/// Returns `None` if something else is compared.
fn as_ranges(right: &Expr) -> Option<Expr> {
    let elements = match right {
        Expr::Set(elements) => merged(elements),
        Expr::Address(_) | Expr::Prefix(..) | Expr::Range(_) => {
            range(right)?;
            merged(&[Element::new(right.clone())])
        }
        _ => return None,
    };
    match elements.as_slice() {
        [only] if range(&only.key).is_some() => Some(only.key.clone()),
        _ => Some(Expr::Set(elements)),
    }
}

/// Returns the sort key of an element. The whole text distinguishes elements with equal keys.
fn element_order(element: &Element) -> (Vec<order::Part>, String) {
    let text = format!("{element:?}");
    (order::key(&text), text)
}

fn goes_to(element: &Element) -> Option<Text> {
    match &element.data {
        Some(Data::Verdict(Verdict::Goto(chain) | Verdict::Jump(chain))) => Some(chain.clone()),
        _ => None,
    }
}

fn of_element(set: &Set, element: &Element, family: TableFamily) -> Line {
    let plain = Element { data: element.data.clone(), ..Element::new(element.key.clone()) };
    let text = set.line(&plain, family).to_string();
    let by = Evidence::Nftables {
        rule: format!("{}: {text}", set.name).into(),
        origin: set.origin.clone(),
    };
    Line { role: dispatch(&plain.key), service: service(element), text, by }
}

fn service(element: &Element) -> Option<Text> {
    // `service-E5KOWZJE-shop/multi/tcp/http`
    let chain = goes_to(element)?;
    let mut parts = chain.splitn(3, '-');
    let name = parts.nth(2)?;
    let mut names = name.split('/');
    Some(format!("{}/{}", names.next()?, names.next()?).into())
}

/// Returns the address and port in an element's key.
fn dispatch(key: &Expr) -> Role {
    let single = [key.clone()];
    let parts = match key {
        Expr::Concat(parts) => parts.as_slice(),
        _ => &single,
    };
    let address = parts.iter().find_map(|part| match part {
        Expr::Address(ip) => Some(*ip),
        _ => None,
    });
    let port = parts.iter().find_map(|part| match part {
        Expr::Number(port) => u16::try_from(*port).ok(),
        _ => None,
    });
    match (address, port) {
        (None, None) => Role::Other,
        (address, port) => Role::Dispatch(address, port),
    }
}

/// Merges the elements of a set of addresses into the fewest ranges. Other elements are sorted.
fn merged(elements: &[Element]) -> Vec<Element> {
    let ranges: Option<Vec<(u128, u128, bool)>> = elements
        .iter()
        .map(|element| element.data.is_none().then(|| range(&element.key))?)
        .collect();
    let Some(mut ranges) = ranges else {
        let mut sorted = elements.to_vec();
        sorted.sort_by_cached_key(element_order);
        return sorted;
    };
    ranges.sort_unstable();
    let mut merged: Vec<(u128, u128, bool)> = Vec::new();
    for (first, last, is_v6) in ranges {
        match merged.last_mut() {
            Some(open) if open.2 == is_v6 && first <= open.1.saturating_add(1) => {
                open.1 = open.1.max(last);
            }
            _ => merged.push((first, last, is_v6)),
        }
    }
    let element = |(first, last, is_v6)| Element::new(expression(first, last, is_v6));
    merged.into_iter().map(element).collect()
}

/// Returns a range as an address or a prefix, if it is one.
fn expression(first: u128, last: u128, is_v6: bool) -> Expr {
    let bits: u32 = if is_v6 { 128 } else { 32 };
    let (low, high) = (address(first, is_v6), address(last, is_v6));
    let hosts = (last - first).checked_add(1).map_or(128, u128::trailing_zeros);
    let is_prefix = (last - first).count_ones() == hosts
        && (first.trailing_zeros() >= hosts || first == 0)
        && (last - first).checked_add(1).is_none_or(u128::is_power_of_two);
    match hosts {
        0 if is_prefix => Expr::Address(low),
        _ if is_prefix => {
            let length = bits.saturating_sub(hosts);
            Expr::Prefix(low, u8::try_from(length).expect("at most 128"))
        }
        _ => Expr::Range(Box::new((Expr::Address(low), Expr::Address(high)))),
    }
}

fn range(key: &Expr) -> Option<(u128, u128, bool)> {
    let number = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    };
    match key {
        Expr::Address(ip) => Some((number(*ip), number(*ip), ip.is_ipv6())),
        Expr::Prefix(ip, length) => {
            let bits = Family::of(*ip).bits();
            let hosts = u32::from(bits.checked_sub(*length)?);
            let mask = 1_u128.checked_shl(hosts).map_or(u128::MAX, |size| size - 1);
            let first = number(*ip) & !mask;
            Some((first, first | mask, ip.is_ipv6()))
        }
        Expr::Range(ends) => match &**ends {
            (Expr::Address(first), Expr::Address(last)) => {
                Some((number(*first), number(*last), first.is_ipv6()))
            }
            _ => None,
        },
        _ => None,
    }
}

fn address(number: u128, is_v6: bool) -> IpAddr {
    if is_v6 {
        IpAddr::V6(number.into())
    } else {
        IpAddr::V4(u32::try_from(number).unwrap_or(u32::MAX).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(keys: &[&str]) -> Vec<String> {
        let text = format!(
            "table ip t {{\n\tset s {{\n\t\ttype ipv4_addr\n\t\tflags interval\n\t\telements = {{ {} }}\n\t}}\n}}\n",
            keys.join(", ")
        );
        let rules = uturn_netfilter::nft::parse("t", &text).unwrap();
        let set = &rules.tables[0].sets[0];
        let lines = merged(&set.elements);
        lines.iter().map(|own| set.line(own, TableFamily::Ip).to_string()).collect()
    }

    #[test]
    fn ranges_are_merged_as_the_kernel_merges_them() {
        assert_eq!(merge(&["10.0.0.0/16", "10.0.1.0/24"]), ["10.0.0.0/16"]);
        assert_eq!(merge(&["10.0.1.0/24", "10.0.0.0/24"]), ["10.0.0.0/23"]);
        assert_eq!(merge(&["10.0.0.1", "10.0.0.2"]), ["10.0.0.1-10.0.0.2"]);
        assert_eq!(merge(&["10.0.0.5", "10.0.0.1"]), ["10.0.0.1", "10.0.0.5"]);
        assert_eq!(merge(&["0.0.0.0/1", "128.0.0.0/1"]), ["0.0.0.0/0"]);
    }

    #[test]
    fn a_set_of_one_range_is_that_range() {
        let rule = |right: &str| {
            let text =
                format!("table ip t {{\n\tchain c {{\n\t\tip saddr != {right} drop\n\t}}\n}}\n");
            let rules = uturn_netfilter::nft::parse("t", &text).unwrap();
            blocks(&rules.tables[0])["chain c"].lines[0].text.clone()
        };
        assert_eq!(rule("10.0.0.0/24"), rule("{ 10.0.0.0-10.0.0.255 }"));
        assert_eq!(rule("10.0.0.0/24"), "ip saddr != 10.0.0.0/24 drop");
        assert_ne!(rule("10.0.0.0/24"), rule("10.0.0.0/23"));
    }
}
