//! Parses the output of `ipvsadm -Ln` and the contents of `/proc/net/ip_vs`.

use std::collections::{HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use uturn_model::{Family, Origin, Protocol};

use super::parse::{Fault, List};
use super::save::{host, prefix};
use super::{Forwarding, Persistence, RealServer, VirtualAddress, VirtualServer};

pub(super) fn read(text: &str, list: &mut List) {
    // Only `/proc/net/ip_vs` has this header.
    let proc = text.contains("RemoteAddress:Port Forward");
    let mut marks = if proc { families_of_marks(text) } else { VecDeque::new() };
    for (line, number) in text.lines().zip(1u32..) {
        let heading = line.starts_with("IP Virtual Server version")
            || line.starts_with("Prot LocalAddress:Port")
            || line.trim_start().starts_with("-> RemoteAddress:Port");
        if heading || line.trim().is_empty() {
            continue;
        }
        if let Err(fault) = read_line(line, number, proc, &mut marks, list) {
            list.fault(number, fault);
        }
    }
}

/// The families of the virtual servers for marks, in order. `/proc/net/ip_vs` does not state
/// them; the real servers show them, and a virtual server without any has the remaining family.
fn families_of_marks(text: &str) -> VecDeque<Family> {
    let mut marks: Vec<(&str, Option<Family>)> = Vec::new();
    let mut latest = false;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), words.next()) {
            (Some("FWM"), Some(mark)) => {
                marks.push((mark, None));
                latest = true;
            }
            (Some("->"), Some(real)) => {
                if let Some((_, family)) = marks.last_mut().filter(|_| latest) {
                    *family = hexadecimal(real).map(|real| Family::of(real.ip()));
                }
            }
            _ => latest = false,
        }
    }
    let mut taken: HashSet<(&str, Family)> =
        marks.iter().filter_map(|(mark, family)| Some((*mark, (*family)?))).collect();
    let mut left = |mark, family: Option<Family>| {
        family.unwrap_or_else(|| {
            let mut free = [Family::V4, Family::V6].into_iter();
            free.find(|family| taken.insert((mark, *family))).unwrap_or(Family::V4)
        })
    };
    marks.iter().map(|(mark, family)| left(*mark, *family)).collect()
}

fn read_line(
    line: &str,
    number: u32,
    proc: bool,
    marks: &mut VecDeque<Family>,
    list: &mut List,
) -> Result<(), Fault> {
    let column = |word: &str| (word.as_ptr() as usize - line.as_ptr() as usize) as u32 + 1;
    let mut words = line.split_ascii_whitespace();
    let first = words.next().unwrap_or(line);
    let lacks = |what: &str| (column(first), format!("the line ends early, expected {what}"));
    let wrong = |at: &str, what: &str| (column(at), format!("found {at:?}, expected {what}"));
    let address = |word: &str| {
        let read = if proc { hexadecimal(word) } else { None };
        read.or_else(|| host(word).map(|(ip, port)| SocketAddr::new(ip, port.unwrap_or(0))))
            .ok_or_else(|| wrong(word, ADDRESS))
    };
    let origin = Origin::line_of(list.file.clone(), number);
    let protocol = match first {
        "TCP" => Some(Protocol::Tcp),
        "UDP" => Some(Protocol::Udp),
        "SCTP" => Some(Protocol::Sctp),
        "FWM" => None,
        "->" => {
            let address = address(words.next().ok_or_else(|| lacks("an address"))?)?;
            let method = words.next().ok_or_else(|| lacks("the forwarding method"))?;
            let weight = words.next().ok_or_else(|| lacks("a weight"))?;
            let method = match method {
                "Masq" => Forwarding::Masquerade,
                // `Local` denotes a real server on the node itself.
                "Route" | "Local" => Forwarding::Direct,
                "Tunnel" => Forwarding::Tunnel,
                other => return Err(wrong(other, "Masq, Route, Tunnel or Local")),
            };
            let weight = weight.parse().map_err(|_| wrong(weight, "a weight"))?;
            let real = RealServer { address, method, weight, options: Vec::new(), origin };
            return list.add(None, real).map_err(|message| (column(first), message));
        }
        other => return Err(wrong(other, "TCP, UDP, SCTP, FWM or ->")),
    };
    let word = words.next().ok_or_else(|| lacks("an address or a mark"))?;
    let mut rest: Vec<&str> = words.collect();
    let at = match protocol {
        Some(protocol) => VirtualAddress::Address { protocol, address: address(word)? },
        None => {
            let v6 = rest.first().is_some_and(|next| *next == "IPv6");
            if v6 {
                rest.remove(0);
            }
            let radix = if proc { 16 } else { 10 };
            let mark = u32::from_str_radix(word, radix).map_err(|_| wrong(word, "a mark"))?;
            let stated = if v6 { Family::V6 } else { Family::V4 };
            VirtualAddress::Mark { mark, family: marks.pop_front().unwrap_or(stated) }
        }
    };
    let mut rest = rest.into_iter();
    let scheduler = rest.next().ok_or_else(|| lacks("a scheduler"))?;
    let mut server = VirtualServer {
        at,
        scheduler: scheduler.into(),
        persistence: None,
        one_packet: false,
        options: Vec::new(),
        servers: Vec::new(),
        origin,
    };
    let mut rest = rest.peekable();
    while let Some(word) = rest.next() {
        match word {
            "persistent" => {
                let value = rest.next().ok_or_else(|| lacks("a time"))?;
                let count = value.parse().map_err(|_| wrong(value, "a number"))?;
                let mut prefix = at.family().bits();
                if proc && let Some(mask) = rest.next_if(|next| next.len() == 8) {
                    let bits = u32::from_str_radix(mask, 16).map_err(|_| wrong(mask, "a mask"))?;
                    // For IPv6, the prefix length in the wrong byte order.
                    prefix = match at.family() {
                        Family::V4 => ipnet::ipv4_mask_to_prefix(Ipv4Addr::from_bits(bits)).ok(),
                        Family::V6 => {
                            u8::try_from(bits.swap_bytes()).ok().filter(|length| *length <= 128)
                        }
                    }
                    .ok_or_else(|| wrong(mask, "a mask"))?;
                }
                // `/proc/net/ip_vs` counts in jiffies.
                let seconds = Some(count).filter(|_| !proc);
                server.persistence = Some(Persistence { seconds, prefix });
            }
            "mask" => {
                let value = rest.next().ok_or_else(|| lacks("a mask"))?;
                let read = prefix(value).filter(|prefix| *prefix <= at.family().bits());
                let read = read.ok_or_else(|| wrong(value, "a mask"))?;
                if let Some(persistence) = &mut server.persistence {
                    persistence.prefix = read;
                }
            }
            "ops" => server.one_packet = true,
            "pe" => {
                let value = rest.next().ok_or_else(|| lacks("an engine"))?;
                server.options.extend(["--pe".into(), value.into()]);
            }
            flags if flags.len() > 2 && flags.starts_with('(') && flags.ends_with(')') => {
                let flags = &flags[1..flags.len() - 1];
                server.options.extend(["-b".into(), flags.into()]);
            }
            other => return Err(wrong(other, "persistent, mask, ops, pe or (flags)")),
        }
    }
    list.open(server).map_err(|message| (column(first), message))
}

const ADDRESS: &str = "an address with a port: `10.0.0.1:80` (capture with -n)";

/// `AC100001:01BB`, `[2001:0db8:0000:0000:0000:0000:0000:0001]:01BB`.
fn hexadecimal(word: &str) -> Option<SocketAddr> {
    let (host, port) = word.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok().filter(|_| port.len() == 4)?;
    let ip = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(v6) => IpAddr::V6(v6.parse::<Ipv6Addr>().ok()?),
        None if host.len() == 8 => {
            IpAddr::V4(Ipv4Addr::from_bits(u32::from_str_radix(host, 16).ok()?))
        }
        None => return None,
    };
    Some(SocketAddr::new(ip, port))
}
