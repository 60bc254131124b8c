//! Recognises texts that users supply in place of the output of `iptables-save`.

/// Names the origin of a text that is not from `iptables-save`, by its first significant line.
pub(super) fn recognise(line: &str, has_table: bool) -> Option<&'static str> {
    let mut words = line.split_ascii_whitespace();
    let (first, second) = (words.next()?, words.next());
    match (first, second) {
        ("Chain", Some(_)) if line.contains("(policy ") || line.contains("references)") => Some(
            "this is what `iptables -L` prints, which leaves out interfaces and much of what \
             rules ask: run `iptables-save`",
        ),
        ("target", Some("prot")) | ("pkts", Some("bytes")) | ("num", Some("target" | "pkts")) => {
            Some(
                "this is what `iptables -L` prints, which leaves out interfaces and much of \
                 what rules ask: run `iptables-save`",
            )
        }
        ("-P" | "-N" | "-A", Some(_)) if !has_table => Some(
            "this is what `iptables -S` prints, which does not say of which table: run \
             `iptables-save`, or write `*TABLE` before it and `COMMIT` behind it",
        ),
        ("table", Some("ip" | "ip6" | "inet" | "arp" | "bridge" | "netdev")) => Some(
            "this is what `nft list ruleset` prints: call the file nft.txt, or run \
             `iptables-save`",
        ),
        (prompt, Some(_)) if prompt.ends_with(['#', '$']) && prompt.len() > 1 => {
            Some("this is what a shell shows: leave out the prompt and all but the output")
        }
        ("iptables" | "ip6tables", Some(_)) => {
            Some("this is a script that calls iptables: run it on a node, then `iptables-save`")
        }
        _ => None,
    }
}
