//! Interfaces and their addresses, as `ip addr` prints them.

use std::net::IpAddr;

use uturn_model::{Family, SourceName};

use crate::json::{self, Item};
use crate::{Interface, ParseError};

/// Reads what `ip addr` or `ip link` printed, with or without `-j`.
///
/// # Errors
///
/// Returns every line or object that cannot be read, with its place.
pub fn parse(source: impl Into<SourceName>, text: &str) -> Result<Vec<Interface>, Vec<ParseError>> {
    let file = source.into();
    if json::is_json(text) {
        return from_json(&file, text);
    }
    let (mut interfaces, mut errors) = (Vec::<Interface>::new(), Vec::new());
    for (line, number) in text.lines().zip(1u32..) {
        let mut fault = |message: String| errors.push(ParseError::new(&file, number, 1, message));
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            None => {}
            Some(_) if !line.starts_with([' ', '\t']) => match heading(line) {
                Some(interface) => interfaces.push(interface),
                None => {
                    let expected = "expected an interface: `2: eth0: <FLAGS> …`";
                    fault(format!("found {line:?}, {expected}"));
                }
            },
            Some("inet" | "inet6") => match (interfaces.last_mut(), address(words)) {
                (Some(interface), Some(address)) => interface.addresses.push(address),
                (None, _) => fault("an address before any interface".into()),
                (_, None) => fault(format!(
                    "found {:?}, expected an address and its prefix: `inet 10.0.0.2/24 …`",
                    line.trim()
                )),
            },
            // Link type, lifetimes and statistics have no effect on a walk.
            Some(_) => {}
        }
    }
    if errors.is_empty() { Ok(interfaces) } else { Err(errors) }
}

fn from_json(file: &SourceName, text: &str) -> Result<Vec<Interface>, Vec<ParseError>> {
    let (mut interfaces, mut errors) = (Vec::new(), Vec::new());
    for item in json::items(file, text)? {
        match interface(&item) {
            Ok(interface) => interfaces.push(interface),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(interfaces) } else { Err(errors) }
}

fn interface(item: &Item) -> Result<Interface, ParseError> {
    let name = item.need("ifname", "the name of an interface", |name| Some(name.into()))?;
    let up = item.words("flags").any(|flag| flag == "UP");
    let mut addresses = Vec::new();
    for address in item.objects("addr_info") {
        let ip: IpAddr = address.need("local", "an address", |ip| ip.parse().ok())?;
        let fits = |prefix: &str| prefix.parse().ok().filter(|p| *p <= Family::of(ip).bits());
        addresses.push((ip, address.need("prefixlen", "the length of a prefix", fits)?));
    }
    Ok(Interface { name, addresses, up })
}

fn heading(line: &str) -> Option<Interface> {
    let mut parts = line.splitn(3, ": ");
    parts.next()?.parse::<u32>().ok()?;
    let name = parts.next()?;
    let name = name.split('@').next()?.trim();
    let flags = parts.next()?.trim_start().strip_prefix('<')?.split('>').next()?;
    let up = flags.split(',').any(|flag| flag == "UP");
    (!name.is_empty()).then(|| Interface { name: name.into(), addresses: Vec::new(), up })
}

fn address<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<(IpAddr, u8)> {
    let first = words.next()?;
    // Point-to-point: `inet 10.0.0.1 peer 10.0.0.2/32`.
    let (ip, prefix) = match first.split_once('/') {
        Some((ip, prefix)) => (ip, prefix),
        None => match words.next() {
            Some("peer") => (first, words.next()?.split_once('/')?.1),
            _ => return None,
        },
    };
    let (ip, prefix) = (ip.parse::<IpAddr>().ok()?, prefix.parse().ok()?);
    (prefix <= Family::of(ip).bits()).then_some((ip, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_flags_and_addresses() {
        let text = "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN\n    \
                    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n    \
                    inet 127.0.0.1/8 scope host lo\n       valid_lft forever preferred_lft forever\n    \
                    inet6 ::1/128 scope host \n\
                    2: eth0@if14: <BROADCAST,MULTICAST,LOWER_UP> mtu 1500\n    \
                    inet 10.0.0.1 peer 10.0.0.2/32 scope global eth0\n";
        let interfaces = parse("addr", text).unwrap();
        assert_eq!(interfaces.len(), 2);
        assert_eq!((&*interfaces[0].name, interfaces[0].up), ("lo", true));
        assert_eq!(interfaces[0].addresses.len(), 2);
        assert_eq!((&*interfaces[1].name, interfaces[1].up), ("eth0", false));
        assert_eq!(interfaces[1].addresses, [("10.0.0.1".parse().unwrap(), 32)]);
    }

    #[test]
    fn every_bad_line_is_named() {
        let errors =
            parse("addr", "    inet 10.0.0.1/24\neth0: up\n1: lo: <UP>\n    inet 10.0.0.1/33\n");
        let shown: Vec<String> = errors.unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "addr:1:1: an address before any interface",
                r#"addr:2:1: found "eth0: up", expected an interface: `2: eth0: <FLAGS> …`"#,
                r#"addr:4:1: found "inet 10.0.0.1/33", expected an address and its prefix: `inet 10.0.0.2/24 …`"#,
            ]
        );
    }
}
