//! Routes, as `ip route show table all` prints them for both families.

use std::net::IpAddr;

use uturn_model::{Family, IpNet, Origin, SourceName, Text};

use crate::ParseError;
use crate::json::{self, Item};
use crate::state::{RouteEntry, RouteKind, TABLE_DEFAULT, TABLE_LOCAL, TABLE_MAIN};

/// Parses the output of `ip route show table all` and `ip -6 route show table all`, one after the
/// other, with or without `-j`. Skips routes marked `dead`, which the kernel does not use.
///
/// # Errors
///
/// Returns every line or object that cannot be read.
pub fn parse(
    source: impl Into<SourceName>,
    text: &str,
) -> Result<Vec<RouteEntry>, Vec<ParseError>> {
    let file = source.into();
    if json::is_json(text) {
        return from_json(&file, text);
    }
    let (mut routes, mut errors) = (Vec::<RouteEntry>::new(), Vec::new());
    // A multipath route: its first line, and whether a next hop has used it.
    let mut several: Option<RouteEntry> = None;
    for (line, number) in text.lines().zip(1u32..) {
        if line.trim().is_empty() {
            continue;
        }
        let origin = Origin::line_of(file.clone(), number);
        let hop = line.starts_with([' ', '\t']) || line.starts_with("nexthop ");
        let read = match (&several, hop) {
            (Some(first), true) => Fields::read(line, Some(first), origin),
            (None, true) => Err((line.trim(), "a next hop without a route before it".into())),
            (_, false) => Fields::read(line, None, origin),
        };
        match read {
            Ok(Fields { dead: true, .. }) => {}
            Ok(fields) if fields.route.kind == RouteKind::Unicast && fields.route.dev.is_none() => {
                several = Some(fields.route);
            }
            Ok(fields) => {
                if !hop {
                    several = None;
                }
                routes.push(fields.route);
            }
            Err((word, message)) => {
                let column = word.as_ptr() as usize - line.as_ptr() as usize + 1;
                errors.push(ParseError::new(&file, number, column as u32, message));
            }
        }
    }
    if errors.is_empty() { Ok(routes) } else { Err(errors) }
}

fn from_json(file: &SourceName, text: &str) -> Result<Vec<RouteEntry>, Vec<ParseError>> {
    let (mut routes, mut errors) = (Vec::new(), Vec::new());
    for item in json::items(file, text)? {
        if let Err(error) = of_item(&item, &mut routes) {
            errors.push(error);
        }
    }
    if errors.is_empty() { Ok(routes) } else { Err(errors) }
}

/// Adds one route, or one for each next hop of a multipath route.
fn of_item(item: &Item, routes: &mut Vec<RouteEntry>) -> Result<(), ParseError> {
    let dead = |item: &Item| item.words("flags").any(|flag| flag == "dead");
    let kind = |word: &str| RouteKind::ALL.into_iter().find(|kind| kind.word() == word);
    let kind = item.maybe("type", "the kind of a route", kind)?.unwrap_or(RouteKind::Unicast);
    let v6 = |item: &Item| item.text("gateway").is_some_and(|via| via.contains(':'));
    // Only IPv6 routes have a preference.
    let family = if item.has("pref") || v6(item) || item.objects("nexthops").any(|hop| v6(&hop)) {
        Family::V6
    } else {
        Family::V4
    };
    let dst = item.need("dst", "a destination", |word| match (word, family) {
        ("default", Family::V4) => "0.0.0.0/0".parse().ok(),
        ("default", Family::V6) => "::/0".parse().ok(),
        _ => word.parse::<IpAddr>().map(IpNet::from).ok().or_else(|| word.parse().ok()),
    })?;
    let address = |word: &str| word.parse::<IpAddr>().ok();
    let route = RouteEntry {
        dst,
        via: None,
        dev: None,
        table: item.text("table").map_or(TABLE_MAIN, |name| table(&name)),
        kind,
        src: item.maybe("prefsrc", "an address", address)?,
        metric: item.maybe("metric", "a number", |word| word.parse().ok())?.unwrap_or(0),
        origin: item.origin.clone(),
    };
    let several: Vec<Item> = item.objects("nexthops").collect();
    let hops = if several.is_empty() { std::slice::from_ref(item) } else { &several };
    for hop in hops.iter().filter(|hop| !dead(hop) && !dead(item)) {
        let mut via = hop.maybe("gateway", "an address", address)?;
        if let Some(other) = hop.object("via") {
            via = Some(other.need("host", "an address", address)?);
        }
        let dev = hop.text("dev").or_else(|| item.text("dev")).map(Text::from);
        if kind == RouteKind::Unicast && dev.is_none() {
            return Err(
                item.fault("found no \"dev\", expected the interface it leaves through".into())
            );
        }
        routes.push(RouteEntry { via, dev, ..route.clone() });
    }
    Ok(())
}

/// The number of a routing table. A name that only the node's own `rt_tables` defines is mapped
/// to a number far from those in use.
pub(crate) fn table(word: &str) -> u32 {
    let named = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    match word {
        "local" => TABLE_LOCAL,
        "main" => TABLE_MAIN,
        "default" => TABLE_DEFAULT,
        _ => word.parse().unwrap_or_else(|_| word.bytes().fold(0x811c_9dc5, named) | 0x8000_0000),
    }
}

struct Fields {
    route: RouteEntry,
    dead: bool,
}

type Fault<'a> = (&'a str, String);

impl Fields {
    fn read<'a>(line: &'a str, of: Option<&RouteEntry>, origin: Origin) -> Result<Self, Fault<'a>> {
        let mut words = line.split_ascii_whitespace().peekable();
        let mut kind = RouteKind::Unicast;
        let named = |word: &&str| RouteKind::ALL.into_iter().find(|kind| kind.word() == *word);
        if let Some(named) = words.peek().and_then(named) {
            kind = named;
            words.next();
        }
        let wanted = |at: &'a str, what: &str| (at, format!("found {at:?}, expected {what}"));
        let mut route = match of {
            Some(route) => {
                words.next();
                RouteEntry { origin, ..route.clone() }
            }
            None => {
                let word = words.next().ok_or_else(|| wanted(line.trim(), "a destination"))?;
                let dst = destination(word, line)
                    .ok_or_else(|| wanted(word, "a destination: `default` or a network"))?;
                let (via, dev, src) = (None, None, None);
                RouteEntry { dst, via, dev, table: TABLE_MAIN, kind, src, metric: 0, origin }
            }
        };
        let mut dead = false;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| wanted(word, "a value after it"));
            match word {
                "via" => {
                    let mut at = value()?;
                    if matches!(at, "inet" | "inet6") {
                        at = words.next().ok_or_else(|| wanted(word, "an address after it"))?;
                    }
                    route.via = Some(at.parse().map_err(|_| wanted(at, "an address"))?);
                }
                "dev" => route.dev = Some(value()?.into()),
                "table" => route.table = table(value()?),
                "src" => {
                    let at = value()?;
                    route.src = Some(at.parse().map_err(|_| wanted(at, "an address"))?);
                }
                "metric" => {
                    let at = value()?;
                    route.metric = at.parse().map_err(|_| wanted(at, "a number"))?;
                }
                "dead" => dead = true,
                // Flags without a value, and attributes that do not affect the lookup.
                "onlink" | "linkdown" | "pervasive" | "offload" | "trap" | "offload_failed"
                | "unresolved" | "rt_offload" | "rt_trap" | "cache" => {}
                _ => {
                    words.next();
                }
            }
        }
        Ok(Self { route, dead })
    }
}

fn destination(word: &str, line: &str) -> Option<IpNet> {
    if word != "default" {
        return match word.parse::<IpAddr>() {
            Ok(ip) => Some(ip.into()),
            Err(_) => word.parse().ok(),
        };
    }
    let via = line.split_ascii_whitespace().skip_while(|word| *word != "via").nth(1);
    let v6 = match via.and_then(|via| via.parse().ok()) {
        Some(via) => Family::of(via) == Family::V6,
        // `via inet6 …` appears on IPv4 routes. Only IPv6 routes have a preference.
        None => via.is_none() && line.split_ascii_whitespace().any(|word| word == "pref"),
    };
    if v6 { "::/0".parse().ok() } else { "0.0.0.0/0".parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        parse("route", text).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn reads_what_ip_route_prints() {
        let text = "default via 10.99.0.1 dev eth0 \n\
                    10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.12 \n\
                    local 127.0.0.0/8 dev lo table local proto kernel scope host src 127.0.0.1 \n\
                    blackhole 10.9.0.0/16 table 100 metric 5\n\
                    unreachable default dev lo table unspec proto kernel metric 4294967295 error -101 pref medium\n\
                    default via fe80::2 dev eth0 proto ra metric 1024 expires 1783sec hoplimit 64 pref medium\n\
                    default via inet6 fe80::1 dev eth1 metric 7\n\
                    10.5.0.0/16 dev gone scope link dead linkdown\n";
        let unspec = table("unspec");
        assert_eq!(
            read(text),
            [
                "default via 10.99.0.1 dev eth0".to_owned(),
                "10.0.0.0/24 dev eth0 src 10.0.0.12".into(),
                "local 127.0.0.0/8 dev lo table local src 127.0.0.1".into(),
                "blackhole 10.9.0.0/16 table 100 metric 5".into(),
                format!("unreachable default dev lo table {unspec} metric 4294967295"),
                "default via fe80::2 dev eth0 metric 1024".into(),
                "default via fe80::1 dev eth1 metric 7".into(),
            ]
        );
        let routes = parse("route", text).unwrap();
        assert_eq!(routes[4].dst, "::/0".parse::<IpNet>().unwrap());
        assert_eq!(routes[6].dst, "0.0.0.0/0".parse::<IpNet>().unwrap());
    }

    #[test]
    fn several_next_hops_are_several_routes() {
        let text = "default proto static metric 9\n\tnexthop via 10.0.0.1 dev a weight 1\n\
                    \tnexthop via 10.0.1.1 dev b weight 1\n10.0.0.0/24 dev a\n";
        assert_eq!(
            read(text),
            [
                "default via 10.0.0.1 dev a metric 9",
                "default via 10.0.1.1 dev b metric 9",
                "10.0.0.0/24 dev a"
            ]
        );
    }

    #[test]
    fn every_bad_line_is_named() {
        let errors = parse("route", "10.0.0.0/99 dev a\ndefault via b dev c\n10.0.0.0/8 dev\n");
        let shown: Vec<String> = errors.unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                r#"route:1:1: found "10.0.0.0/99", expected a destination: `default` or a network"#,
                r#"route:2:13: found "b", expected an address"#,
                r#"route:3:12: found "dev", expected a value after it"#,
            ]
        );
    }
}
