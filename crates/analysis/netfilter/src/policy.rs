//! Policy routing rules.

use std::fmt;

use uturn_model::{Family, IpNet, Origin, Text};

use crate::iptables::PortRange;
use crate::packet::IpProtocol;
use crate::state::{TABLE_DEFAULT, TABLE_LOCAL, TABLE_MAIN};

/// A policy routing rule: selects packets and the table to look them up in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// Lower priorities are evaluated first.
    pub priority: u32,
    /// Source prefix.
    pub from: Option<IpNet>,
    /// Destination prefix.
    pub to: Option<IpNet>,
    /// Incoming interface; `lo` stands for locally generated packets.
    pub iif: Option<Text>,
    /// Outgoing interface that the packet is bound to.
    pub oif: Option<Text>,
    /// `(value, mask)`: the packet's mark under the mask equals the value.
    pub mark: Option<(u32, u32)>,
    /// Less common selectors.
    pub more: Selectors,
    /// Whether the selectors are negated (`not`).
    pub invert: bool,
    /// The action of the rule.
    pub action: RuleAction,
    /// Which routes of its table are ignored.
    pub suppress: Suppress,
    /// The place where the rule was written.
    pub origin: Origin,
}

/// Less common selectors of a policy routing rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selectors {
    /// `ipproto`
    pub protocol: Option<IpProtocol>,
    /// `sport`
    pub sport: Option<PortRange>,
    /// `dport`
    pub dport: Option<PortRange>,
    /// `uidrange`: the first and the last user ID.
    pub users: Option<(u32, u32)>,
    /// `tos`, `dsfield` or `dscp`: the DSCP, without the two ECN bits.
    pub class: Option<u8>,
    /// `tun_id`
    pub tunnel: Option<u64>,
}

/// Which routes of a rule's table are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Suppress {
    /// `suppress_prefixlength`: routes with a prefix of at most this length.
    pub prefix_length: Option<u8>,
    /// `suppress_ifgroup`: routes through an interface of this group.
    pub group: Option<Text>,
}

impl PolicyRule {
    /// A rule without selectors that looks up a table.
    pub fn lookup(priority: u32, table: u32, origin: Origin) -> Self {
        Self {
            priority,
            from: None,
            to: None,
            iif: None,
            oif: None,
            mark: None,
            more: Selectors::default(),
            invert: false,
            action: RuleAction::Lookup(table),
            suppress: Suppress::default(),
            origin,
        }
    }

    /// The rules of a freshly booted kernel.
    pub fn defaults() -> Vec<Self> {
        let origin = Origin::Kernel;
        [(0, TABLE_LOCAL), (32766, TABLE_MAIN), (32767, TABLE_DEFAULT)]
            .map(|(priority, table)| Self::lookup(priority, table, origin.clone()))
            .into()
    }

    /// Whether it equals one of the default rules.
    pub(crate) fn is_usual(&self) -> bool {
        let origin = &self.origin;
        let same = |rule: Self| Self { origin: origin.clone(), ..rule } == *self;
        Self::defaults().into_iter().any(same)
    }

    /// Whether the rule can apply to packets of a family.
    pub(crate) fn concerns(&self, family: Family) -> bool {
        let fits = |net: &Option<IpNet>| net.is_none_or(|net| Family::of(net.addr()) == family);
        fits(&self.from) && fits(&self.to)
    }
}

/// The action of a policy routing rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleAction {
    /// Looks up a table.
    Lookup(u32),
    /// Looks up the table of the VRF that the packet's interface belongs to (`l3mdev`).
    Vrf,
    /// Continues at the first rule of this priority, if there is one.
    Goto(u32),
    /// Does nothing.
    Nop,
    /// Drops the packet with a network-unreachable error.
    Unreachable,
    /// Drops the packet with a prohibited error.
    Prohibit,
    /// Drops the packet silently.
    Blackhole,
    /// An action or selector that is not modelled: the rule as written.
    Unknown(Text),
}

/// Prints the rule as `ip rule` does.
impl fmt::Display for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let RuleAction::Unknown(text) = &self.action {
            return f.write_str(text);
        }
        write!(f, "{}: ", self.priority)?;
        if self.invert {
            f.write_str("not ")?;
        }
        match &self.from {
            Some(net) => write!(f, "from {}", Net(net))?,
            None => f.write_str("from all")?,
        }
        if let Some(net) = &self.to {
            write!(f, " to {}", Net(net))?;
        }
        let Selectors { protocol, sport, dport, users, class, tunnel } = self.more;
        if let Some(class) = class {
            write!(f, " tos {:#x}", u16::from(class) << 2)?;
        }
        match self.mark {
            Some((value, u32::MAX)) => write!(f, " fwmark {value:#x}")?,
            Some((value, mask)) => write!(f, " fwmark {value:#x}/{mask:#x}")?,
            None => {}
        }
        for (word, interface) in [("iif", &self.iif), ("oif", &self.oif)] {
            if let Some(interface) = interface {
                write!(f, " {word} {interface}")?;
            }
        }
        if let Some((first, last)) = users {
            write!(f, " uidrange {first}-{last}")?;
        }
        if let Some(protocol) = protocol {
            write!(f, " ipproto {protocol}")?;
        }
        for (word, ports) in [("sport", sport), ("dport", dport)] {
            match ports {
                Some(ports) if ports.first == ports.last => write!(f, " {word} {}", ports.first)?,
                Some(ports) => write!(f, " {word} {}-{}", ports.first, ports.last)?,
                None => {}
            }
        }
        if let Some(tunnel) = tunnel {
            write!(f, " tun_id {tunnel}")?;
        }
        match &self.action {
            RuleAction::Lookup(TABLE_MAIN) => f.write_str(" lookup main")?,
            RuleAction::Lookup(TABLE_LOCAL) => f.write_str(" lookup local")?,
            RuleAction::Lookup(TABLE_DEFAULT) => f.write_str(" lookup default")?,
            RuleAction::Lookup(table) => write!(f, " lookup {table}")?,
            RuleAction::Vrf => f.write_str(" lookup [l3mdev-table]")?,
            RuleAction::Goto(to) => write!(f, " goto {to}")?,
            RuleAction::Nop => f.write_str(" nop")?,
            RuleAction::Unreachable => f.write_str(" unreachable")?,
            RuleAction::Prohibit => f.write_str(" prohibit")?,
            RuleAction::Blackhole => f.write_str(" blackhole")?,
            RuleAction::Unknown(_) => {}
        }
        if let Some(length) = self.suppress.prefix_length {
            write!(f, " suppress_prefixlength {length}")?;
        }
        match &self.suppress.group {
            Some(group) => write!(f, " suppress_ifgroup {group}"),
            None => Ok(()),
        }
    }
}

/// A prefix, or a single address without its prefix length.
struct Net<'n>(&'n IpNet);

impl fmt::Display for Net<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            self.0.addr().fmt(f)
        } else {
            self.0.fmt(f)
        }
    }
}
