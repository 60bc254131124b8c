//! Targets for the formats of a node's kernel state.

use uturn_model::Family;
use uturn_netfilter::iptables::Ruleset;
use uturn_netfilter::{
    ParseError, addr, conntrack, ipset, iptables, ipvs, nft, policy_rules, routes, sysctl,
};

use crate::text;

/// The file name of the input in error messages.
const FILE: &str = "input";

/// Reads `iptables-save`, which is printed and parsed back unchanged.
pub fn iptables(data: &[u8]) -> bool {
    let text = text(data);
    let mut taken = false;
    for family in Family::BOTH {
        let Some(read) = checked(iptables::parse(FILE, &text, family), &text) else { continue };
        taken = true;
        let printed = read.to_string();
        match iptables::parse(FILE, &printed, family) {
            Ok(again) => assert_eq!(again, read, "printed as:\n{printed}"),
            Err(errors) => panic!("printed as:\n{printed}\nand refused: {errors:?}"),
        }
    }
    taken
}

/// Reads input of `iptables-restore --noflush`. The result, printed, parses as a complete dump, and
/// a fragment loads in two parts as in one.
pub fn iptables_fragment(data: &[u8]) -> bool {
    let text = text(data);
    let mut taken = false;
    for family in Family::BOTH {
        let load = |base, part: &str| iptables::parse_fragment(base, FILE, part, family);
        let Some(read) = checked(load(Ruleset::default(), &text), &text) else { continue };
        taken = true;
        let printed = read.to_string();
        match iptables::parse(FILE, &printed, family) {
            Ok(again) => assert_eq!(again, read, "printed as:\n{printed}"),
            Err(errors) => panic!("printed as:\n{printed}\nand refused: {errors:?}"),
        }
        let middle = text.rfind("\n*").map_or(text.len(), |at| at + 1);
        let first = load(Ruleset::default(), &text[..middle]);
        let both = first.and_then(|first| load(first, &text[middle..]));
        assert_eq!(both, Ok(read), "in two parts");
    }
    let lines = text.lines().count() as u32;
    for warning in iptables::warnings(FILE, &text) {
        assert!((1..=lines).contains(&warning.origin.line()), "of {lines} lines: {warning}");
    }
    taken
}

/// Reads `ipset save`, which is printed and parsed back unchanged.
pub fn ipset(data: &[u8]) -> bool {
    let text = text(data);
    let Some(read) = checked(ipset::parse(FILE, &text), &text) else { return false };
    let printed = read.to_string();
    assert_eq!(ipset::parse(FILE, &printed), Ok(read), "printed as:\n{printed}");
    true
}

/// Reads `nft list ruleset`, in text and in JSON. Text is printed and parsed back.
pub fn nft(data: &[u8]) -> bool {
    let text = text(data);
    let Some(read) = checked(nft::parse(FILE, &text), &text) else { return false };
    if text.trim_start().starts_with('{') {
        return true;
    }
    let printed = read.to_string();
    let again = nft::parse(FILE, &printed);
    assert!(again.is_ok(), "printed as:\n{printed}\nand refused: {again:?}");
    true
}

/// Reads `ipvsadm -Sn` and the tables, which are printed and parsed back unchanged.
pub fn ipvs(data: &[u8]) -> bool {
    let text = text(data);
    let Some(read) = checked(ipvs::parse(FILE, &text), &text) else { return false };
    // `/proc/net/ip_vs` does not state the seconds.
    let unsaid =
        |server: &ipvs::VirtualServer| server.persistence.is_some_and(|p| p.seconds.is_none());
    if !read.0.iter().any(unsaid) {
        let printed = read.to_string();
        assert_eq!(ipvs::parse(FILE, &printed), Ok(read), "printed as:\n{printed}");
    }
    true
}

/// Reads `conntrack -L` and `/proc/net/nf_conntrack`.
pub fn conntrack(data: &[u8]) -> bool {
    let text = text(data);
    checked(conntrack::parse(FILE, &text), &text).is_some()
}

/// Reads `ip addr`.
pub fn addr(data: &[u8]) -> bool {
    let text = text(data);
    checked(addr::parse(FILE, &text), &text).is_some()
}

/// Reads `ip route show table all`.
pub fn routes(data: &[u8]) -> bool {
    let text = text(data);
    checked(routes::parse(FILE, &text), &text).is_some()
}

/// Reads `ip rule`: one rule per line or, in JSON, per object.
pub fn rules(data: &[u8]) -> bool {
    let text = text(data);
    let Some(read) = checked(policy_rules::parse(FILE, &text), &text) else { return false };
    if text.trim_start().starts_with('[') {
        return true;
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    assert_eq!(read.len(), lines, "no line is skipped");
    true
}

/// Reads `sysctl -a`.
pub fn sysctl(data: &[u8]) -> bool {
    let text = text(data);
    checked(sysctl::parse(FILE, &text), &text).is_some()
}

/// Returns the parsed value. A refusal has at least one error, and each has a place and a message.
fn checked<T>(read: Result<T, Vec<ParseError>>, text: &str) -> Option<T> {
    let errors = match read {
        Ok(value) => return Some(value),
        Err(errors) => errors,
    };
    assert!(!errors.is_empty(), "a refusal says why");
    // An error at the end of the input is on the line after the last.
    let last = text.lines().count() as u32 + 1;
    for error in errors {
        assert!(!error.message.is_empty(), "an error says what");
        assert_eq!(error.origin.path(), Some(FILE));
        assert!((1..=last).contains(&error.origin.line()), "of {last} lines: {error}");
    }
    None
}
