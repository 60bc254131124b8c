//! Elements of sets and maps, in the order in which `nft` prints them.

use std::net::IpAddr;

use uturn_model::{Port, Protocol};

use super::{push, push_address, push_number};

/// Elements of one set or map. If several have the same key, the last one is kept.
#[derive(Default)]
pub(super) struct Elements(Vec<(Order, String)>);

/// The lines before the elements.
pub(super) struct Head<'h> {
    /// `set` or `map`, and the name.
    pub(super) name: &'h str,
    /// The type of the elements.
    pub(super) key: &'h str,
    /// The comment. Empty if there is none.
    pub(super) remark: &'h str,
    /// The number of elements on a line.
    pub(super) in_a_line: usize,
}

/// The sort key of `nft`: a single address by its value; a key of several parts by its bytes from
/// last to first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order(u32, u128);

impl Elements {
    pub(super) fn add_address(&mut self, ip: IpAddr) {
        let bits = match ip {
            IpAddr::V4(ip) => ip.to_bits().into(),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        self.0.push((Order(0, bits), ip.to_string()));
    }

    /// Adds `proto . port remark : verdict`.
    pub(super) fn add_port(&mut self, to: (Protocol, Port), remark: &str, verdict: &[&str]) {
        self.add(&[], to, remark, verdict);
    }

    /// Adds `ip . proto . port remark : verdict`.
    pub(super) fn add_service(
        &mut self,
        ip: IpAddr,
        to: (Protocol, Port),
        remark: &str,
        verdict: &[&str],
    ) {
        self.add(&[ip], to, remark, verdict);
    }

    /// Adds `ip . ip . proto . port`.
    pub(super) fn add_hairpin(&mut self, ip: IpAddr, to: (Protocol, Port)) {
        self.add(&[ip, ip], to, "", &[]);
    }

    fn add(
        &mut self,
        ips: &[IpAddr],
        (protocol, port): (Protocol, Port),
        remark: &str,
        verdict: &[&str],
    ) {
        let mut text = String::with_capacity(96);
        for ip in ips {
            push_address(&mut text, *ip);
            text.push_str(" . ");
        }
        push(&mut text, &[protocol.lower(), " . "]);
        push_number(&mut text, usize::from(port.number()));
        text.push_str(remark);
        if !verdict.is_empty() {
            text.push_str(" : ");
            push(&mut text, verdict);
        }
        self.0.push((order(ips.first().copied(), protocol, port), text));
    }

    pub(super) fn print(mut self, head: &Head<'_>, out: &mut String) {
        push(out, &["\t", head.name, " {\n\t\ttype ", head.key, "\n"]);
        if !head.remark.is_empty() {
            push(out, &["\t\tcomment \"", head.remark, "\"\n"]);
        }
        let before = if self.0.is_empty() { "\t}\n\n" } else { "\t\telements = { " };
        out.push_str(before);
        self.0.reverse();
        self.0.sort_by_key(|(order, _)| *order);
        self.0.dedup_by_key(|(order, _)| *order);
        let count = self.0.len();
        for (place, (_, text)) in self.0.iter().enumerate() {
            out.push_str(text);
            out.push_str(match place + 1 {
                next if next == count => " }\n\t}\n\n",
                next if next % head.in_a_line == 0 => ",\n\t\t\t     ",
                _ => ", ",
            });
        }
    }
}

fn order(ip: Option<IpAddr>, protocol: Protocol, port: Port) -> Order {
    let [high, low] = port.number().to_be_bytes();
    let number = match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    };
    let bits = match ip {
        None => 0,
        Some(IpAddr::V4(ip)) => u32::from_le_bytes(ip.octets()).into(),
        Some(IpAddr::V6(ip)) => u128::from_le_bytes(ip.octets()),
    };
    Order(u32::from_be_bytes([0, low, high, number]), bits)
}
