//! The kernel's own tool parses what is printed, and prints the same again.
//!
//! Needs root and `nft`; if either is missing, the test says so and ends.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]
#![cfg(target_os = "linux")]

use crate::common::read;
use uturn_netfilter::nft::{self, Ruleset};

/// Loads rules in a new network namespace and returns what `nft list ruleset` prints.
fn through_the_kernel(text: &str, options: &str) -> Result<String, String> {
    uturn_testing::in_a_namespace(&format!("nft -f - && nft {options} list ruleset"), text)
}

fn can_load() -> bool {
    match through_the_kernel("table ip t {\n\tchain c {\n\t}\n}\n", "") {
        Ok(_) => true,
        Err(why) => {
            uturn_testing::skip(
                uturn_testing::Requirement::Nft,
                "loading rules of nftables into a kernel",
                why,
            );
            false
        }
    }
}

fn parse(text: &str) -> Ruleset {
    nft::parse("nft", text).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// Removes what differs between two dumps of the same rules: times, and the order of sets.
fn at_rest(mut ruleset: Ruleset) -> Ruleset {
    for table in &mut ruleset.tables {
        for set in &mut table.sets {
            for element in &mut set.elements {
                element.expires = None;
            }
            set.elements.sort_by_key(|element| format!("{element:?}"));
        }
    }
    ruleset
}

#[test]
fn dumps_load_and_come_back() {
    if !can_load() {
        return;
    }
    for (node, file) in [
        ("nftables-n1", "nft.txt"),
        ("nftables-n2", "nft.txt"),
        ("nftables-n3", "nft.txt"),
        ("nftables-n2", "nft.json"),
        ("nft", "all.txt"),
    ] {
        let mut ruleset = parse(&read(node, file));
        for chain in ruleset.tables.iter_mut().flat_map(|table| &mut table.chains) {
            // nft prints a map that rules change without the flag that it requires to load it
            // again.
            chain.rules.retain(|rule| !format!("{rule:?}").contains("\"m1\", key: Payload"));
        }
        let listed = match through_the_kernel(&ruleset.to_string(), "") {
            Ok(listed) => listed,
            // A kernel without that module.
            Err(why) if node == "nft" && why.contains("No such file or directory") => {
                uturn_testing::skip(
                    uturn_testing::Requirement::KernelModules,
                    "loading every kind of rule",
                    why,
                );
                continue;
            }
            Err(why) => panic!("{node}/{file}: {why}"),
        };
        let back = at_rest(parse(&listed));
        for (mine, theirs) in at_rest(ruleset).tables.iter().zip(&back.tables) {
            for (mine, theirs) in mine.chains.iter().zip(&theirs.chains) {
                assert_eq!(mine, theirs, "{node}/{file}");
            }
            for (mine, theirs) in mine.sets.iter().zip(&theirs.sets) {
                assert_eq!(mine, theirs, "{node}/{file}");
            }
            assert!(mine == theirs, "{node}/{file}");
        }
    }
}
