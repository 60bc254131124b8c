//! Routing policy: the tables by which packets are routed.

use std::io;
use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteScope, RouteType};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleHeader, RuleMessage};

use super::{Index, Netlink, family, route_header, short};

/// The table of a namespace's own addresses.
const LOCAL_TABLE: u8 = 255;

/// The priority of rules before local addresses, and the lowered priority of local addresses.
const EARLY: u32 = 10;
const LOWERED: u32 = 50;

/// The packets that a routing policy rule selects.
#[derive(Clone, Copy)]
pub(crate) enum Selector {
    To(IpAddr),
    From(IpAddr),
}

/// The packets whose mark has these bits.
#[derive(Clone, Copy)]
pub(crate) struct Masked {
    pub(crate) mark: u32,
    pub(crate) mask: u32,
}

impl Netlink {
    /// Adds a route to `table` that delivers all packets of a family locally.
    pub(crate) fn add_local_table(&mut self, all: IpNet, table: u8) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = route_header(all);
        message.header.table = table;
        message.header.kind = RouteType::Local;
        message.header.scope = RouteScope::Host;
        message.attributes.push(RouteAttribute::Oif(Index::LOOPBACK.0));
        self.create(RouteNetlinkMessage::NewRoute(message))
    }

    /// Adds a policy rule: packets with this mark are routed by `table`.
    pub(crate) fn add_mark_rule(&mut self, all: IpNet, mark: u32, table: u8) -> io::Result<()> {
        // The priority is between those of the local table's rule and the main table's (32766).
        self.add_masked_rule(all, Masked { mark, mask: mark }, table.into(), 100)
    }

    /// Adds a policy rule: packets with these bits in their mark are routed by `table`, even to an
    /// address of this namespace where the rule of local addresses was
    /// [lowered](Self::lower_local_rule).
    pub(crate) fn add_early_rule(&mut self, all: IpNet, of: Masked, table: u32) -> io::Result<()> {
        self.add_masked_rule(all, of, table, EARLY)
    }

    fn add_masked_rule(
        &mut self,
        all: IpNet,
        Masked { mark, mask }: Masked,
        table: u32,
        priority: u32,
    ) -> io::Result<()> {
        let mut message = rule(all.addr(), table, priority);
        message.attributes.push(RuleAttribute::FwMark(mark));
        message.attributes.push(RuleAttribute::FwMask(mask));
        self.create(RouteNetlinkMessage::NewRule(message))
    }

    /// Moves the rule that delivers packets to this namespace's own addresses, which is normally
    /// the first, behind other rules.
    pub(crate) fn lower_local_rule(&mut self, all: IpNet) -> io::Result<()> {
        let local = u32::from(LOCAL_TABLE);
        self.create(RouteNetlinkMessage::NewRule(rule(all.addr(), local, LOWERED)))?;
        self.change(RouteNetlinkMessage::DelRule(rule(all.addr(), local, 0)))
    }

    /// Adds a policy rule: packets to or from an address are routed by `table`.
    pub(crate) fn add_rule(&mut self, of: Selector, table: u32, priority: u32) -> io::Result<()> {
        let (Selector::To(ip) | Selector::From(ip)) = of;
        let mut message = rule(ip, table, priority);
        let bits = if ip.is_ipv4() { 32 } else { 128 };
        match of {
            Selector::To(ip) => {
                message.header.dst_len = bits;
                message.attributes.push(RuleAttribute::Destination(ip));
            }
            Selector::From(ip) => {
                message.header.src_len = bits;
                message.attributes.push(RuleAttribute::Source(ip));
            }
        }
        self.create(RouteNetlinkMessage::NewRule(message))
    }
}

/// Returns a rule that selects all packets of an address's family.
fn rule(of: IpAddr, table: u32, priority: u32) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header = RuleHeader {
        family: family(of),
        action: RuleAction::ToTable,
        table: short(table),
        ..RuleHeader::default()
    };
    message.attributes.push(RuleAttribute::Table(table));
    message.attributes.push(RuleAttribute::Priority(priority));
    message
}
