//! Numbers and outcomes as people say them.

use std::time::Duration;

use uturn_model::{NamespacedName, Outcome, Verdict};
use uturn_path::Pods;

/// `always`, `1 in 3`, `2 in 3`, `17 %`.
pub fn share(share: f64) -> String {
    if share >= 1.0 - 1e-6 {
        return "always".to_owned();
    }
    for of in 2..=20u32 {
        let count = share * f64::from(of);
        if (count - count.round()).abs() < 1e-4 && count.round() >= 1.0 {
            return format!("{} in {of}", count.round());
        }
    }
    match share * 100.0 {
        percent if percent < 0.1 => "less than 0.1 %".to_owned(),
        percent if percent < 1.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// More pods than these are not named.
const MOST_PODS: usize = 1000;

/// Pods by name: all of them, or the first of very many.
pub fn pods(pods: &Pods) -> Vec<&NamespacedName> {
    let mut names: Vec<&NamespacedName> = pods.iter().collect();
    names.sort_unstable();
    names.truncate(MOST_PODS);
    names
}

/// How a failing call ends, after its share: `after 4 s`, `504 after 4 s`, `hangs`.
pub fn ending(outcome: Outcome) -> String {
    match outcome {
        Outcome::Answered { after } => format!("after {}", seconds(after)),
        other => other.to_string(),
    }
}

/// `4 s`, `0.5 s`.
pub fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// A verdict in a line: `1 in 3 answered after 4 s, 2 in 3 answered at once`.
pub fn verdict(verdict: &Verdict) -> String {
    let parts: Vec<String> = verdict
        .outcomes
        .iter()
        .map(|(outcome, part)| match share(*part).as_str() {
            "always" => outcome.to_string(),
            part => format!("{part} {outcome}"),
        })
        .collect();
    parts.join(", ")
}

/// `call svc/shop/front:80, or 3 more`.
pub fn first_of(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first}, or {} more", rest.len()),
    }
}

/// `1 pod`, `3 pods`.
pub fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A rule as short as it can be told: its chain and its target.
pub fn short_rule(rule: &str) -> String {
    let mut words = rule.split_whitespace();
    match (words.next(), words.next()) {
        (Some("-A"), Some(chain)) if !chain.starts_with('-') => {
            let rest: Vec<&str> = words.collect();
            match rest.iter().position(|word| matches!(*word, "-j" | "-g")) {
                Some(at) => format!("{chain} {}", rest[at..].join(" ")),
                None => chain.to_owned(),
            }
        }
        _ => rule.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_said_as_people_say_them() {
        for (number, said) in [
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
            assert_eq!(share(number), said);
        }
    }

    #[test]
    fn a_rule_is_its_chain_and_target() {
        let rule = r#"-A KUBE-SEP-X -p tcp -m comment --comment "a -j b" -m tcp -j DNAT --to-destination 1.2.3.4:80"#;
        assert!(short_rule(rule).starts_with("KUBE-SEP-X -j"));
        assert_eq!(short_rule("Service shop/front"), "Service shop/front");
        assert_eq!(short_rule("-A -t 10.0.0.1:80 -s rr"), "-A -t 10.0.0.1:80 -s rr");
    }
}
