//! Numbers and outcomes in words.

use std::time::Duration;

use uturn_diagnose::{Clients, Observation};
pub use uturn_model::wording::{count, some_of};
use uturn_model::{Evidence, NamespacedName, Outcome, Share, Text, Verdict};

/// Formats a share: `always`, `1 in 3`, `2 in 3`, `17 %`.
pub fn share(share: Share) -> String {
    if share.is_all() {
        return "always".to_owned();
    }
    for of in 2..=20u32 {
        let count = share.get() * f64::from(of);
        if (count - count.round()).abs() < 1e-4 && count.round() >= 1.0 {
            return format!("{} in {of}", count.round());
        }
    }
    match share.get() * 100.0 {
        percent if percent < 0.1 => "less than 0.1 %".to_owned(),
        percent if percent < 1.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// The largest number of names of a finding.
const MAX_NAMES: usize = 1000;
/// The largest number of names of all findings together, except for `SOME` of each.
const MAX_OF_ALL: usize = 100_000;
const SOME: usize = 20;

/// Returns the largest number of pods and nodes of each finding that are named, for this many
/// findings.
pub fn most_names(findings: usize) -> usize {
    (MAX_OF_ALL / findings.max(1)).clamp(SOME, MAX_NAMES)
}

/// Returns the pods by name: all of them, or some of very many.
pub fn pods(clients: &Clients, most: usize) -> Vec<&NamespacedName> {
    let mut names: Vec<&NamespacedName> = clients.iter().take(most).collect();
    names.sort_unstable();
    names
}

/// Describes clients: `9 pods on 3 nodes, outside`.
pub fn who(clients: &Clients) -> String {
    let mut parts = Vec::new();
    if clients.pod_count() > 0 {
        let (pods, nodes) = (clients.pod_count(), clients.nodes().len());
        parts.push(format!("{} on {}", count(pods, "pod"), count(nodes, "node")));
    }
    parts.extend(clients.others().iter().map(ToString::to_string));
    if parts.is_empty() { "no client".to_owned() } else { parts.join(", ") }
}

/// Describes the end of a failing call, after its share: `after 4 s`, `504 after 4 s`, `hangs`.
pub fn ending(outcome: Outcome) -> String {
    match outcome {
        Outcome::Answered { after } => format!("after {}", seconds(after)),
        other => other.to_string(),
    }
}

/// Formats a time in seconds: `4 s`, `0.5 s`.
pub fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// Formats a verdict as a line: `1 in 3 answered after 4 s, 2 in 3 answered at once`. Outcomes
/// beyond the first few are counted.
pub fn verdict(verdict: &Verdict, most: usize) -> String {
    let shown = verdict.outcomes.iter().take(most);
    let mut parts: Vec<String> = shown
        .map(|(outcome, part)| match share(*part).as_str() {
            "always" => outcome.to_string(),
            part => format!("{part} {outcome}"),
        })
        .collect();
    match verdict.outcomes.len() - parts.len() {
        0 => {}
        more => parts.push(format!("and {more} other endings")),
    }
    parts.join(", ")
}

/// Formats a number with non-breaking spaces: `139 510 081`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.len() > 4 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Formats the first of several with the number of further ones: `call svc/shop/front:80, or 3
/// more`. What remains after the first stands behind them.
pub fn first_of(all: &[impl std::fmt::Display]) -> String {
    match all {
        [] => String::new(),
        [only] => only.to_string(),
        [first, rest @ ..] => {
            let (first, more) = (first.to_string(), rest.len());
            match first.split_once("; what remains: ") {
                Some((first, left)) => format!("{first}, or {more} more; what remains: {left}"),
                None => format!("{first}, or {more} more"),
            }
        }
    }
}

/// Returns the place of an observation: `node/n1`; empty for an observation of something written.
pub fn place(observation: &Observation) -> String {
    observation.place.as_ref().map_or_else(String::new, ToString::to_string)
}

/// Returns the evidence of a step in short: of an iptables rule, its chain and target.
pub fn short_rule(by: &Evidence) -> Text {
    let Evidence::Iptables { chain, rule, .. } = by else { return by.rule() };
    let words: Vec<&str> = rule.split_whitespace().collect();
    match words.iter().position(|word| matches!(*word, "-j" | "-g")) {
        Some(at) => format!("{chain} {}", words[at..].join(" ")).into(),
        None => chain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use uturn_model::Origin;

    use super::*;

    #[test]
    fn shares_are_written_as_fractions() {
        for (number, text) in [
            (1.0, "always"),
            (1.0 / 3.0, "1 in 3"),
            (0.333_333_333_49, "1 in 3"),
            (2.0 / 3.0, "2 in 3"),
            (0.5, "1 in 2"),
            (0.4, "2 in 5"),
            (1.0 / 37.0, "3 %"),
            (0.0042, "0.4 %"),
            (0.00001, "less than 0.1 %"),
        ] {
            assert_eq!(share(Share::new(number)), text);
        }
    }

    #[test]
    fn long_numbers_are_grouped() {
        let text = [0, 999, 8748, 12_345, 139_510_081].map(grouped);
        assert_eq!(text, ["0", "999", "8748", "12\u{202f}345", "139\u{202f}510\u{202f}081"]);
    }

    #[test]
    fn a_rule_is_its_chain_and_target() {
        let rule = r#"-A KUBE-SEP-X -p tcp -m comment --comment "a -j b" -m tcp -j DNAT --to-destination 1.2.3.4:80"#;
        let origin = Origin::Kernel;
        let in_chain = |rule: &str| Evidence::Iptables {
            chain: "KUBE-SEP-X".into(),
            rule: rule.into(),
            origin: origin.clone(),
        };
        assert!(short_rule(&in_chain(rule)).starts_with("KUBE-SEP-X -j"));
        assert_eq!(&*short_rule(&in_chain("-A KUBE-SEP-X -p tcp")), "KUBE-SEP-X");
        let server = Evidence::Ipvs { server: "-A -t 10.0.0.1:80 -s rr".into(), origin };
        assert_eq!(&*short_rule(&server), "-A -t 10.0.0.1:80 -s rr");
    }
}
