//! Connection tracking entries, as `conntrack -L` and `/proc/net/nf_conntrack` list them.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use uturn_model::SourceName;
use uturn_model::route::Leg;

use crate::ParseError;
use crate::connection::{Connection, Scheduled};
use crate::ipvs::{VirtualAddress, VirtualServer, VirtualServers};
use crate::packet::IpProtocol;

/// Parses the list, so that a walk can start from these connections. Skips entries without a
/// reply (`UNREPLIED`) and entries in a conntrack zone. The list does not show which connections
/// IPVS scheduled; [`VirtualServers::recognize`] adds that.
///
/// # Errors
///
/// Returns every line that cannot be read.
pub fn parse(
    source: impl Into<SourceName>,
    text: &str,
) -> Result<Vec<Connection>, Vec<ParseError>> {
    let file = source.into();
    let (mut connections, mut errors) = (Vec::new(), Vec::new());
    for (line, number) in text.lines().zip(1u32..) {
        // The summary line: `conntrack v1.4.7: 3 flow entries have been shown.`
        if line.trim().is_empty() || line.starts_with("conntrack v") {
            continue;
        }
        match read(line) {
            Ok(Some(connection)) => connections.push(connection),
            Ok(None) => {}
            Err((word, message)) => {
                let column = word.as_ptr() as usize - line.as_ptr() as usize + 1;
                errors.push(ParseError::new(&file, number, column as u32, message));
            }
        }
    }
    if errors.is_empty() { Ok(connections) } else { Err(errors) }
}

impl VirtualServers {
    /// Marks the connections that IPVS scheduled, which a conntrack list does not distinguish
    /// from those that a rule translated.
    pub fn recognize(&self, connections: &mut [Connection]) {
        let servers: HashMap<(IpProtocol, SocketAddr), &VirtualServer> = self
            .0
            .iter()
            .filter_map(|server| match server.at {
                VirtualAddress::Address { protocol, address } => {
                    Some(((protocol.into(), address), server))
                }
                VirtualAddress::Mark { .. } => None,
            })
            .collect();
        for connection in connections.iter_mut().filter(|connection| connection.scheduled.is_none())
        {
            let address = connection.original.dst;
            let server = servers.get(&(connection.protocol, address));
            let given = connection.reply.src;
            let real = server.and_then(|server| {
                server.servers.iter().find(|real| {
                    real.address == given
                        || (real.address.ip(), real.address.port()) == (given.ip(), 0)
                })
            });
            if let Some(real) = real {
                connection.scheduled = Some(Scheduled {
                    client: connection.original.src,
                    address,
                    real: given,
                    method: real.method,
                    tracked: true,
                });
            }
        }
    }
}

type Fault<'a> = (&'a str, String);

/// One direction of a connection.
#[derive(Default)]
struct Tuple {
    src: Option<IpAddr>,
    dst: Option<IpAddr>,
    sport: u16,
    dport: u16,
}

fn read(line: &str) -> Result<Option<Connection>, Fault<'_>> {
    let wanted = |at: &'_ str, what: &str| format!("found {at:?}, expected {what}");
    let mut words = line.split_ascii_whitespace();
    let mut first = words.next().unwrap_or(line);
    if matches!(first, "ipv4" | "ipv6") {
        words.next();
        first = words.next().ok_or((first, "found nothing after the family".to_owned()))?;
    }
    let number = words.next().ok_or((first, "found nothing after the protocol".to_owned()))?;
    let protocol = number
        .parse()
        .map(IpProtocol)
        .map_err(|_| (number, wanted(number, "the number of a protocol")))?;
    let mut tuples = [Tuple::default(), Tuple::default()];
    let (mut mark, mut answered, mut elsewhere) = (0, true, false);
    for word in words {
        if word == "[UNREPLIED]" {
            answered = false;
        }
        let Some((key, value)) = word.split_once('=') else { continue };
        let address = || value.parse::<IpAddr>().map_err(|_| (value, wanted(value, "an address")));
        let port = || value.parse::<u16>().map_err(|_| (value, wanted(value, "a port")));
        // The second occurrence of a key belongs to the reply direction.
        let second = usize::from(match key {
            "src" => tuples[0].src.is_some(),
            _ => tuples[1].src.is_some(),
        });
        let tuple = &mut tuples[second];
        match key {
            "src" => tuple.src = Some(address()?),
            "dst" => tuple.dst = Some(address()?),
            "sport" => tuple.sport = port()?,
            "dport" => tuple.dport = port()?,
            "mark" => mark = value.parse().map_err(|_| (value, wanted(value, "a mark")))?,
            "zone" | "zone-orig" | "zone-reply" => elsewhere |= value != "0",
            _ => {}
        }
    }
    let leg = |tuple: &Tuple| {
        let (src, dst) = (tuple.src?, tuple.dst?);
        (src.is_ipv4() == dst.is_ipv4()).then(|| Leg {
            src: SocketAddr::new(src, tuple.sport),
            dst: SocketAddr::new(dst, tuple.dport),
        })
    };
    match (leg(&tuples[0]), leg(&tuples[1])) {
        (Some(original), Some(reply)) => Ok((answered && !elsewhere).then_some(Connection {
            protocol,
            original,
            reply,
            mark,
            scheduled: None,
            seen_reply: true,
        })),
        _ => Err((line.trim(), "expected src= and dst= twice: there and back".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms() {
        let text = "tcp      6 119 TIME_WAIT src=10.1.0.9 dst=172.16.0.1 sport=60060 dport=80 \
                    src=10.1.0.7 dst=10.0.0.2 sport=8080 dport=60060 [ASSURED] mark=7 use=1\n\
                    ipv4     2 udp      17 29 src=10.1.0.9 dst=10.9.9.9 sport=5 dport=53 [UNREPLIED] \
                    src=10.9.9.9 dst=10.1.0.9 sport=53 dport=5 mark=0 zone=0 use=2\n\
                    ipv6     10 tcp      6 431999 ESTABLISHED src=fd00::1 dst=fd00::2 sport=1 dport=2 \
                    src=fd00::2 dst=fd00::1 sport=2 dport=1 [ASSURED] mark=0 zone=0 use=2\n\
                    icmp     1 29 src=10.1.0.9 dst=10.9.9.9 type=8 code=0 id=7 \
                    src=10.9.9.9 dst=10.1.0.9 type=0 code=0 id=7 mark=0 use=1\n\
                    conntrack v1.4.7 (conntrack-tools): 4 flow entries have been shown.\n";
        let all = parse("conntrack", text).unwrap();
        let shown: Vec<String> = all
            .iter()
            .map(|connection| {
                format!(
                    "{} {} | {} mark {}",
                    connection.protocol, connection.original, connection.reply, connection.mark
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "tcp 10.1.0.9:60060 → 172.16.0.1:80 | 10.1.0.7:8080 → 10.0.0.2:60060 mark 7",
                "tcp [fd00::1]:1 → [fd00::2]:2 | [fd00::2]:2 → [fd00::1]:1 mark 0",
                "icmp 10.1.0.9:0 → 10.9.9.9:0 | 10.9.9.9:0 → 10.1.0.9:0 mark 0",
            ]
        );
        assert!(all[0].source_translated() && all[0].destination_translated());
    }

    #[test]
    fn every_bad_line_is_named() {
        let text = "tcp x\ntcp 6 1 src=10.0.0.1 dst=b\nudp 17 src=10.0.0.1 dst=10.0.0.2\n";
        let shown: Vec<String> =
            parse("ct", text).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                r#"ct:1:5: found "x", expected the number of a protocol"#,
                r#"ct:2:26: found "b", expected an address"#,
                "ct:3:1: expected src= and dst= twice: there and back",
            ]
        );
    }
}
