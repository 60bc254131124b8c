//! Rules of the routing policy, as `ip rule` prints them.

use uturn_model::{IpNet, Origin, Text};

use crate::ParseError;
use crate::json::{self, Item};
use crate::routes::table;
use crate::state::{PolicyRule, RuleAction};

/// Reads what `ip rule` printed, with or without `-j`. A rule with a selector or action that nobody models is
/// kept as [`RuleAction::Unknown`].
pub fn parse(source: impl Into<Text>, text: &str) -> Result<Vec<PolicyRule>, Vec<ParseError>> {
    let file = source.into();
    if json::is_json(text) {
        return from_json(&file, text);
    }
    let (mut rules, mut errors) = (Vec::new(), Vec::new());
    for (line, number) in text.lines().zip(1u32..) {
        if line.trim().is_empty() {
            continue;
        }
        match read(line, Origin::line(file.clone(), number)) {
            Ok(rule) => rules.push(rule),
            Err((word, message)) => {
                let column = word.as_ptr() as usize - line.as_ptr() as usize + 1;
                errors.push(ParseError::new(&file, number, column as u32, message));
            }
        }
    }
    rules.sort_by_key(|rule: &PolicyRule| rule.priority);
    if errors.is_empty() { Ok(rules) } else { Err(errors) }
}

fn from_json(file: &Text, text: &str) -> Result<Vec<PolicyRule>, Vec<ParseError>> {
    let (mut rules, mut errors) = (Vec::new(), Vec::new());
    for item in json::items(file, text)? {
        match of_item(&item) {
            Ok(rule) => rules.push(rule),
            Err(error) => errors.push(error),
        }
    }
    rules.sort_by_key(|rule: &PolicyRule| rule.priority);
    if errors.is_empty() { Ok(rules) } else { Err(errors) }
}

fn of_item(item: &Item) -> Result<PolicyRule, ParseError> {
    let priority = item.need("priority", "a priority", |word| word.parse().ok())?;
    let mut rule = PolicyRule::lookup(priority, 0, item.origin.clone());
    let nets = |name: &str, length: &str| {
        let bits = item.maybe(length, "the length of a prefix", |word| word.parse::<u8>().ok())?;
        let read = |word: &str| match (word, bits) {
            ("all", _) => Some(None),
            (_, None) => net(word).map(Some),
            (_, Some(bits)) => IpNet::new(word.parse().ok()?, bits).ok().map(Some),
        };
        item.maybe(name, "`all` or a network", read).map(Option::flatten)
    };
    (rule.from, rule.to) = (nets("src", "srclen")?, nets("dst", "dstlen")?);
    (rule.iif, rule.oif) = (item.text("iif").map(Text::from), item.text("oif").map(Text::from));
    let value = item.maybe("fwmark", "a mark", mark)?;
    let mask = item.maybe("fwmask", "a mask", mark)?;
    rule.mark = value.map(|(value, _)| (value, mask.map_or(u32::MAX, |(mask, _)| mask)));
    rule.invert = item.has("not");
    let known = [
        "priority",
        "src",
        "srclen",
        "dst",
        "dstlen",
        "iif",
        "oif",
        "fwmark",
        "fwmask",
        "not",
        "table",
        "action",
        "protocol",
        "iif_detached",
        "oif_detached",
    ];
    let others: Vec<&str> = item.names().filter(|name| !known.contains(name)).collect();
    rule.action = match (item.text("table"), item.text("action").as_deref()) {
        _ if !others.is_empty() => {
            RuleAction::Unknown(format!("{priority}: with {}", others.join(", ")).into())
        }
        (Some(name), None) => RuleAction::Lookup(table(&name)),
        (_, Some("unreachable")) => RuleAction::Unreachable,
        (_, Some("prohibit")) => RuleAction::Prohibit,
        (_, Some("blackhole")) => RuleAction::Blackhole,
        (_, Some(other)) => RuleAction::Unknown(format!("{priority}: {other}").into()),
        (None, None) => {
            return Err(item.fault("found no \"table\", expected an action".into()));
        }
    };
    Ok(rule)
}

fn read(line: &str, origin: Origin) -> Result<PolicyRule, (&str, String)> {
    let wanted = |at, what: &str| (at, format!("found {at:?}, expected {what}"));
    let mut words = line.split_ascii_whitespace();
    let first = words.next().unwrap_or(line);
    let priority = first
        .strip_suffix(':')
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| wanted(first, "a priority: `32766:`"))?;
    let mut rule = PolicyRule::lookup(priority, 0, origin);
    let (mut action, mut unknown) = (None, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| wanted(word, "a value after it"));
        match word {
            "not" => rule.invert = true,
            "from" | "to" => {
                let at = value()?;
                let net = match at {
                    "all" => None,
                    _ => Some(net(at).ok_or_else(|| wanted(at, "`all` or a network"))?),
                };
                if word == "from" {
                    rule.from = net;
                } else {
                    rule.to = net;
                }
            }
            "iif" => rule.iif = Some(value()?.into()),
            "oif" => rule.oif = Some(value()?.into()),
            "fwmark" => {
                let at = value()?;
                rule.mark = Some(mark(at).ok_or_else(|| wanted(at, "a mark: `0x1/0xff`"))?);
            }
            "lookup" | "table" => action = Some(RuleAction::Lookup(table(value()?))),
            "unreachable" => action = Some(RuleAction::Unreachable),
            "prohibit" => action = Some(RuleAction::Prohibit),
            "blackhole" => action = Some(RuleAction::Blackhole),
            "proto" | "protocol" => {
                value()?;
            }
            "[detached]" => {}
            _ => unknown = true,
        }
    }
    rule.action = match action {
        Some(action) if !unknown => action,
        None if !unknown => return Err(wanted(line.trim(), "an action, such as `lookup main`")),
        _ => RuleAction::Unknown(line.trim().into()),
    };
    Ok(rule)
}

fn net(word: &str) -> Option<IpNet> {
    match word.parse::<std::net::IpAddr>() {
        Ok(ip) => Some(ip.into()),
        Err(_) => word.parse().ok(),
    }
}

fn mark(word: &str) -> Option<(u32, u32)> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    match word.split_once('/') {
        Some((value, mask)) => Some((number(value)?, number(mask)?)),
        None => Some((number(word)?, u32::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_selectors_and_keeps_what_it_cannot_model() {
        let text = "32766:\tfrom all lookup main\n0:\tfrom all lookup local\n\
                    100:\tnot from 10.0.0.0/8 to 1.2.3.4 fwmark 0x1/0xff iif eth0 lookup 100\n\
                    200:\tfrom all ipproto tcp dport 80 lookup 100\n";
        let rules = parse("rule", text).unwrap();
        assert_eq!(
            rules.iter().map(|rule| rule.priority).collect::<Vec<_>>(),
            [0, 100, 200, 32766]
        );
        assert_eq!(rules[1].mark, Some((1, 0xff)));
        assert!(rules[1].invert && rules[1].iif.as_deref() == Some("eth0"));
        assert!(matches!(&rules[2].action, RuleAction::Unknown(text) if text.contains("dport 80")));
    }

    #[test]
    fn every_bad_line_is_named() {
        let errors =
            parse("rule", "x: from all lookup main\n5: from 10.0.0.0/99 lookup 1\n6: from all\n");
        let shown: Vec<String> = errors.unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                r#"rule:1:1: found "x:", expected a priority: `32766:`"#,
                r#"rule:2:9: found "10.0.0.0/99", expected `all` or a network"#,
                r#"rule:3:1: found "6: from all", expected an action, such as `lookup main`"#,
            ]
        );
    }
}
