//! Policy routing rules, as `ip rule` prints them.

use uturn_model::{IpNet, Origin, SourceName, Text};

use crate::ParseError;
use crate::iptables::PortRange;
use crate::json::{self, Item};
use crate::packet::IpProtocol;
use crate::policy::{PolicyRule, RuleAction, Suppress};
use crate::routes::table;

/// Parses the output of `ip rule`, with or without `-j`. Keeps a rule with an unmodelled selector
/// or action as [`RuleAction::Unknown`].
///
/// # Errors
///
/// Returns every line or object that cannot be read.
pub fn parse(
    source: impl Into<SourceName>,
    text: &str,
) -> Result<Vec<PolicyRule>, Vec<ParseError>> {
    let file = source.into();
    if json::is_json(text) {
        return from_json(&file, text);
    }
    let (mut rules, mut errors) = (Vec::new(), Vec::new());
    for (line, number) in text.lines().zip(1u32..) {
        if line.trim().is_empty() {
            continue;
        }
        match read(line, Origin::line_of(file.clone(), number)) {
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

fn from_json(file: &SourceName, text: &str) -> Result<Vec<PolicyRule>, Vec<ParseError>> {
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
    let range = |word: &str| port_range(word);
    let ports = |name: &str| -> Result<Option<PortRange>, ParseError> {
        let single = item.maybe(name, "a port", range)?;
        let first = item.maybe(&format!("{name}_start"), "a port", range)?;
        let last = item.maybe(&format!("{name}_end"), "a port", range)?;
        let several = first.zip(last).map(|(a, b)| PortRange { first: a.first, last: b.last });
        Ok(single.or(several))
    };
    (rule.more.sport, rule.more.dport) = (ports("sport")?, ports("dport")?);
    rule.more.protocol = item.maybe("ipproto", "a protocol", IpProtocol::from_word)?;
    let user = |name| item.maybe(name, "the number of a user", |word| word.parse().ok());
    rule.more.users = user("uid_start")?.zip(user("uid_end")?);
    rule.more.tunnel = item.maybe("tun_id", "a number", |word| word.parse().ok())?;
    let class = item.text("tos").and_then(|word| class(&word));
    rule.more.class = class.or_else(|| item.text("dscp")?.parse().ok());
    rule.suppress = Suppress {
        prefix_length: item.maybe("suppress_prefixlen", "a length", |word| word.parse().ok())?,
        group: item.text("suppress_ifgroup").map(Text::from),
    };
    // A DSCP by a name that only the node's own configuration defines.
    let nameless = (item.has("tos") || item.has("dscp")) && rule.more.class.is_none();
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
        "sport",
        "sport_start",
        "sport_end",
        "dport",
        "dport_start",
        "dport_end",
        "ipproto",
        "uid_start",
        "uid_end",
        "tun_id",
        "tos",
        "dscp",
        "suppress_prefixlen",
        "suppress_ifgroup",
        "l3mdev",
        "goto",
        "unresolved",
        "nop",
        "flow_to",
        "flow_from",
    ];
    let others: Vec<&str> = item.names().filter(|name| !known.contains(name)).collect();
    let goto = item.maybe("goto", "a priority", |word| word.parse().ok())?;
    rule.action = match (item.text("table"), item.text("action").as_deref()) {
        _ if nameless => {
            RuleAction::Unknown(format!("{priority}: with a class by its name").into())
        }
        _ if !others.is_empty() => {
            RuleAction::Unknown(format!("{priority}: with {}", others.join(", ")).into())
        }
        (Some(name), None) => RuleAction::Lookup(table(&name)),
        (_, Some("unreachable")) => RuleAction::Unreachable,
        (_, Some("prohibit")) => RuleAction::Prohibit,
        (_, Some("blackhole")) => RuleAction::Blackhole,
        (_, Some(other)) => RuleAction::Unknown(format!("{priority}: {other}").into()),
        (None, None) if goto.is_some() => RuleAction::Goto(goto.unwrap_or_default()),
        (None, None) if item.has("nop") => RuleAction::Nop,
        (None, None) if item.has("l3mdev") => RuleAction::Vrf,
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
            "lookup" | "table" => {
                action = Some(match value()? {
                    "[l3mdev-table]" => RuleAction::Vrf,
                    name => RuleAction::Lookup(table(name)),
                });
            }
            "l3mdev" => action = Some(RuleAction::Vrf),
            "goto" => {
                let at = value()?;
                let to = at.parse().map_err(|_| wanted(at, "a priority"))?;
                action = Some(RuleAction::Goto(to));
            }
            "nop" => action = Some(RuleAction::Nop),
            "ipproto" => {
                let at = value()?;
                match IpProtocol::from_word(at) {
                    Some(protocol) => rule.more.protocol = Some(protocol),
                    None => unknown = true,
                }
            }
            "sport" | "dport" => {
                let at = value()?;
                let ports = port_range(at).ok_or_else(|| wanted(at, "a port, or two with -"))?;
                match word {
                    "sport" => rule.more.sport = Some(ports),
                    _ => rule.more.dport = Some(ports),
                }
            }
            "uidrange" => {
                let at = value()?;
                let users = at
                    .split_once('-')
                    .and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
                rule.more.users = Some(users.ok_or_else(|| wanted(at, "two users with -"))?);
            }
            "tos" | "dsfield" | "dscp" => {
                let at = value()?;
                rule.more.class = if word == "dscp" { at.parse().ok() } else { class(at) };
                unknown |= rule.more.class.is_none();
            }
            "tun_id" => {
                let at = value()?;
                rule.more.tunnel = Some(at.parse().map_err(|_| wanted(at, "a number"))?);
            }
            "suppress_prefixlength" => {
                let at = value()?;
                let length = at.parse().map_err(|_| wanted(at, "the length of a prefix"))?;
                rule.suppress.prefix_length = Some(length);
            }
            "suppress_ifgroup" => rule.suppress.group = Some(value()?.into()),
            "unreachable" => action = Some(RuleAction::Unreachable),
            "prohibit" => action = Some(RuleAction::Prohibit),
            "blackhole" => action = Some(RuleAction::Blackhole),
            // Realms are for accounting only.
            "proto" | "protocol" | "realms" => {
                value()?;
            }
            "[detached]" | "[unresolved]" => {}
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

fn port_range(word: &str) -> Option<PortRange> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some(PortRange { first, last })
}

/// Parses a TOS byte such as `0x10` into its DSCP.
fn class(word: &str) -> Option<u8> {
    let byte = match word.strip_prefix("0x") {
        Some(hex) => u8::from_str_radix(hex, 16).ok()?,
        None => word.parse().ok()?,
    };
    Some(byte >> 2)
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
                    200:\tfrom all tos AF11 lookup 100\n";
        let rules = parse("rule", text).unwrap();
        assert_eq!(
            rules.iter().map(|rule| rule.priority).collect::<Vec<_>>(),
            [0, 100, 200, 32766]
        );
        assert_eq!(rules[1].mark, Some((1, 0xff)));
        assert!(rules[1].invert && rules[1].iif.as_deref() == Some("eth0"));
        assert!(matches!(&rules[2].action, RuleAction::Unknown(text) if text.contains("AF11")));
    }

    #[test]
    fn what_is_read_is_printed_again() {
        let text = "0:\tfrom all lookup local\n\
                    90:\tfrom all iif lo goto 32766\n\
                    91:\tfrom all to 192.0.2.4 goto 500 [unresolved]\n\
                    92:\tfrom all nop\n\
                    93:\tfrom all ipproto tcp sport 1000-2000 dport 80 lookup 100\n\
                    94:\tfrom all uidrange 1000-2000 lookup 100\n\
                    95:\tfrom all tos 0x10 lookup 100\n\
                    96:\tfrom all lookup main suppress_prefixlength 0\n\
                    97:\tfrom all lookup main suppress_ifgroup 3\n\
                    98:\tfrom all lookup [l3mdev-table]\n\
                    99:\tfrom all tun_id 7 lookup 100\n\
                    101:\tnot from 10.0.0.0/8 fwmark 0x1/0xff lookup 100\n\
                    110:\tfrom 192.0.2.1 blackhole\n\
                    111:\tfrom 192.0.2.1 prohibit\n\
                    112:\tfrom 192.0.2.1 unreachable\n\
                    113:\tfrom all iif eth9 [detached] oif eth8 [detached] lookup 100\n\
                    114:\tfrom all ipproto gre lookup 100\n\
                    115:\tfrom all fwmark 0x7 lookup 100 realms 3\n";
        let shown: String =
            parse("rule", text).unwrap().iter().map(|rule| format!("{rule}\n")).collect();
        let mut expected = text.replace('\t', " ");
        for lost in [" [unresolved]", " [detached]", " realms 3"] {
            expected = expected.replace(lost, "");
        }
        assert_eq!(shown, expected);
    }

    #[test]
    fn every_selector_is_read_as_json() {
        let text = r#"[{"priority":90,"src":"all","iif":"lo","goto":32766},
            {"priority":91,"src":"all","dst":"192.0.2.4","goto":500,"unresolved":null},
            {"priority":92,"src":"all","nop":null},
            {"priority":93,"src":"all","ipproto":"tcp","sport_start":1000,"sport_end":2000,"dport":80,"table":"100"},
            {"priority":94,"src":"all","uid_start":1000,"uid_end":2000,"table":"100"},
            {"priority":95,"src":"all","tos":"0x10","table":"100"},
            {"priority":96,"src":"all","table":"main","suppress_prefixlen":0},
            {"priority":97,"src":"all","table":"main","suppress_ifgroup":"3"},
            {"priority":98,"src":"all","l3mdev":null},
            {"priority":99,"src":"all","tun_id":7,"table":"100"},
            {"priority":115,"src":"all","fwmark":"0x7","table":"100","flow_to":"3"}]"#;
        let shown: Vec<String> =
            parse("rule", text).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "90: from all iif lo goto 32766",
                "91: from all to 192.0.2.4 goto 500",
                "92: from all nop",
                "93: from all ipproto tcp sport 1000-2000 dport 80 lookup 100",
                "94: from all uidrange 1000-2000 lookup 100",
                "95: from all tos 0x10 lookup 100",
                "96: from all lookup main suppress_prefixlength 0",
                "97: from all lookup main suppress_ifgroup 3",
                "98: from all lookup [l3mdev-table]",
                "99: from all tun_id 7 lookup 100",
                "115: from all fwmark 0x7 lookup 100",
            ]
        );
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
