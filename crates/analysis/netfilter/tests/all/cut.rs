//! Truncated dumps: cut at every byte (JSON: at every byte of its beginning), each format is
//! either refused with a line of the text, or parsed. Truncated JSON, iptables tables and
//! nftables blocks are always refused; a list of lines does not show which line is the last.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::read;
use uturn_model::Family;
use uturn_netfilter::{ParseError, addr, ipset, iptables, ipvs, nft, policy_rules, routes, sysctl};

type Read = fn(&str) -> Result<(), Vec<ParseError>>;

const TEXTS: [(&str, &str, Read); 9] = [
    ("iptables-n1", "addr", |text| addr::parse("cut", text).map(drop)),
    ("ipvs-n1", "route", |text| routes::parse("cut", text).map(drop)),
    ("iptables-n1", "rule", |text| policy_rules::parse("cut", text).map(drop)),
    ("iptables-n1", "sysctl", |text| sysctl::parse("cut", text).map(drop)),
    ("ipvs-n1", "ipset.save", |text| ipset::parse("cut", text).map(drop)),
    ("ipvs-n1", "ipvs.save", |text| ipvs::parse("cut", text).map(drop)),
    ("ipvs-n1", "iptables.save", |text| iptables::parse("cut", text, Family::V4).map(drop)),
    ("iptables-n1", "ip6tables.save", |text| iptables::parse("cut", text, Family::V6).map(drop)),
    ("nft", "all.txt", |text| nft::parse("cut", text).map(drop)),
];

/// Checks that every error names a line of the text.
fn named(errors: &[ParseError], text: &str, at: usize) {
    let lines = text.split('\n').count();
    assert!(!errors.is_empty(), "at byte {at}");
    for error in errors {
        let shown = error.to_string();
        let mut place = shown.split(':');
        assert_eq!(place.next(), Some("cut"), "{shown}");
        let line: usize = place.next().unwrap().parse().unwrap_or_else(|_| panic!("{shown}"));
        assert!((1..=lines).contains(&line), "at byte {at}, of {lines} lines: {shown}");
    }
}

#[test]
fn a_text_cut_anywhere_is_read_or_names_the_line() {
    for (node, file, parse) in TEXTS {
        let text = read(node, file);
        assert!(parse(&text).is_ok(), "{node}/{file}");
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let cut = &text[..at];
            match parse(cut) {
                Ok(()) => assert!(may_end(file, cut), "{node}/{file} at byte {at} is whole"),
                Err(errors) => named(&errors, cut, at),
            }
        }
    }
}

/// Whether a text cut there is a valid text.
fn may_end(file: &str, cut: &str) -> bool {
    let count = |wanted: fn(&str) -> bool| cut.lines().filter(|line| wanted(line)).count();
    match file {
        "iptables.save" | "ip6tables.save" => {
            count(|line| line.starts_with('*')) == count(|line| line == "COMMIT")
        }
        "all.txt" => cut.matches('{').count() == cut.matches('}').count(),
        // Lists of lines: any line may be the last.
        _ => true,
    }
}

#[test]
fn a_json_cut_anywhere_is_refused() {
    let text = read("nft", "all.json");
    let whole = text.trim_end();
    // Each cut is parsed from the start: of a long text, every seventh is enough.
    let is_tried =
        |at: &usize| (*at < 3_000 || at.is_multiple_of(7)) && whole.is_char_boundary(*at);
    for at in (1..whole.len()).filter(is_tried) {
        let cut = &whole[..at];
        match nft::parse("cut", cut) {
            Ok(_) => panic!("at byte {at} is whole"),
            Err(errors) => named(&errors, cut, at),
        }
    }
}
