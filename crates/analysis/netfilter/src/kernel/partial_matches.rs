//! Matches that are modelled for some packets only: the answers that are certain.

use std::net::IpAddr;

use uturn_model::Assumption;

use super::Kernel;
use super::compile::Hook;
use super::walk::Walk;
use crate::iptables::{AddrKind, Extension, Recent, RecentAction, Rpfilter};
use crate::packet::{Transport, within};
use crate::state::RouteKind;

impl Kernel {
    /// Whether the extension matches; `None` if that is not certain.
    pub(super) fn certain(&self, extension: &Extension, walk: &mut Walk) -> Option<bool> {
        let words = &extension.words;
        match &*extension.name {
            // No local socket belongs to a forwarded packet.
            "owner" if !walk.from_here => Some(all_negated(words)),
            // Nor a process to a refusal.
            "owner"
                if walk.packet.is_refusal()
                    && words.iter().all(|word| &**word != "--socket-exists") =>
            {
                Some(all_negated(words))
            }
            "cgroup" if !walk.from_here => Some(false),
            // Nor does a packet from the loopback interface have a hardware address.
            "mac" if walk.iif.as_deref().is_none_or(|iif| iif == "lo") => Some(false),
            // Locally generated packets did not come through a bridge port.
            "physdev" if walk.from_here => Some(all_negated(words)),
            "physdev" if walk.hook == Hook::Prerouting => {
                let words: Vec<&str> = words.iter().map(|word| &**word).collect();
                let not = match words[..] {
                    ["--physdev-is-in"] => false,
                    ["!", "--physdev-is-in"] => true,
                    _ => return None,
                };
                Some(self.came_by_bridge_port(walk)? != not)
            }
            "pkttype" => {
                let unicast = matches!(
                    self.kind_for(walk.packet.dst, None, walk),
                    AddrKind::Local | AddrKind::Unicast
                );
                let (not, kind) = value(words, "--pkt-type")?;
                unicast.then_some(matches!(kind, "unicast" | "host" | "0") != not)
            }
            "length" => {
                let (not, range) = value(words, "--length")?;
                let (first, last) = range.split_once(':').unwrap_or((range, range));
                let first = if first.is_empty() { 0 } else { first.parse().ok()? };
                let last = if last.is_empty() { u16::MAX } else { last.parse().ok()? };
                let (least, most) = lengths(walk);
                match (first <= least && most <= last, last < least || most < first) {
                    (true, _) => Some(!not),
                    (_, true) => Some(not),
                    _ => None,
                }
            }
            "policy" => {
                let (not, kind) = value(words, "--pol")?;
                walk.assume(no_ipsec());
                Some((kind == "none") != not)
            }
            "limit" | "hashlimit" | "connlimit" | "quota" if walk.assumed.is_ordinary() => {
                let matches = below_limits(&extension.name, words)?;
                walk.assume(no_limit_reached());
                Some(matches)
            }
            "socket"
                if walk.assumed.is_ordinary()
                    && words.iter().any(|word| &**word == "--transparent") =>
            {
                walk.assume(no_transparent_socket());
                Some(false)
            }
            // No packet in the model has one of these protocols or headers.
            "ah" | "dccp" | "esp" | "frag" | "ipcomp" | "l2tp" | "mh" | "udplite" => Some(false),
            _ => None,
        }
    }

    /// Whether the packet came through a port of a bridge, as rules before routing see it: the
    /// bridge shows them its frames unless a switch is off. `None` if it is not known which interfaces are bridges.
    fn came_by_bridge_port(&self, walk: &Walk) -> Option<bool> {
        let bridges = self.state.bridges.as_ref()?;
        if !walk.iif.as_ref().is_some_and(|iif| bridges.contains(iif)) {
            return Some(false);
        }
        let name = match walk.packet.dst {
            IpAddr::V4(_) => "net.bridge.bridge-nf-call-iptables",
            IpAddr::V6(_) => "net.bridge.bridge-nf-call-ip6tables",
        };
        Some(self.state.sysctls.get(name) != Some("0"))
    }

    /// Whether `-m rpfilter` matches: the route back to the source uses the incoming interface.
    pub(super) fn comes_from_its_way_back(&self, wanted: Rpfilter, walk: &Walk) -> bool {
        let iif = walk.iif.as_deref().unwrap_or("lo");
        let mark = if wanted.valid_mark { walk.packet.mark } else { 0 };
        let fine = iif == "lo"
            || walk.packet.src.is_unspecified()
            || self.way_back(walk, mark).is_some_and(|(route, here)| match route.kind {
                RouteKind::Unicast => wanted.loose || here(iif),
                RouteKind::Local => {
                    wanted.accept_local && (wanted.loose || walk.packet.src.is_ipv6() || here(iif))
                }
                _ => false,
            });
        fine != wanted.invert
    }
}

/// Evaluates `-m recent` and updates its list. Entries of other connections are unknown: the
/// lists start empty.
pub(super) fn recent(recent: &Recent, walk: &mut Walk) -> bool {
    let ip = if recent.rdest { walk.packet.dst } else { walk.packet.src };
    let ip = recent.mask.map_or(ip, |mask| within(ip, mask));
    let entry = (recent.name.clone(), ip);
    let hits = walk.notes.recent_entries.iter().filter(|listed| **listed == entry).count() as u32;
    let wanted = recent.hitcount.unwrap_or(0).max(1);
    let matched = match recent.action.value {
        RecentAction::Set => {
            walk.notes.recent_entries.push(entry);
            true
        }
        RecentAction::Remove => {
            walk.notes.recent_entries.retain(|listed| *listed != entry);
            hits > 0
        }
        RecentAction::Check => hits >= wanted,
        RecentAction::Update => {
            let found = hits >= wanted;
            if found {
                walk.notes.recent_entries.push(entry);
            }
            found
        }
    };
    if recent.action.value != RecentAction::Set && hits == 0 {
        walk.assume(empty_list(recent));
    }
    matched != recent.action.not
}

/// The minimum and maximum length of the packet.
fn lengths(walk: &Walk) -> (u16, u16) {
    let (ip, options) = if walk.packet.dst.is_ipv4() { (20, 40) } else { (40, 0) };
    match walk.packet.transport {
        // A SYN has no payload.
        Transport::Tcp { syn: true, .. } if ip == 20 => (ip + 20, ip + options + 60),
        Transport::Tcp { .. } => (ip + 20, u16::MAX),
        Transport::Udp { .. } | Transport::Icmp { .. } => (ip + 8, u16::MAX),
        Transport::Sctp { .. } => (ip + 12, u16::MAX),
        Transport::Reset { .. } => (ip + 20, ip + 20),
        Transport::IcmpError { .. } => (ip + 8 + ip + 8, u16::MAX),
    }
}

/// Whether every option is negated.
fn all_negated(words: &[uturn_model::Text]) -> bool {
    let options = words.iter().enumerate().filter(|(_, word)| word.starts_with("--"));
    options.into_iter().all(|(at, _)| at > 0 && &*words[at - 1] == "!")
}

/// The value of an option, and whether the option is negated.
fn value<'w>(words: &'w [uturn_model::Text], option: &str) -> Option<(bool, &'w str)> {
    let at = words.iter().position(|word| &**word == option)?;
    let before = at > 0 && &*words[at - 1] == "!";
    let after = words.get(at + 1).is_some_and(|word| &**word == "!");
    Some((before || after, words.get(at + 1 + usize::from(after))?))
}

/// Whether a match on rates, connections or amounts holds for a call that reaches no limit.
fn below_limits(name: &str, words: &[uturn_model::Text]) -> Option<bool> {
    match name {
        "limit" => Some(true),
        "hashlimit" => {
            let above = value(words, "--hashlimit-above").map(|(not, _)| not);
            let below = value(words, "--hashlimit-upto").or(value(words, "--hashlimit"));
            above.or(below.map(|(not, _)| !not))
        }
        "connlimit" => {
            let limit = |text: &str| text.parse::<u32>().ok();
            match value(words, "--connlimit-above") {
                Some((not, above)) => Some((limit(above)? == 0) != not),
                None => {
                    let (not, most) = value(words, "--connlimit-upto")?;
                    Some((limit(most)? > 0) != not)
                }
            }
        }
        _ => value(words, "--quota").map(|(not, _)| !not),
    }
}

pub(super) fn no_limit_reached() -> Assumption {
    Assumption {
        subject: "limits on rates and connections".into(),
        assumed: "the call reaches none".into(),
        because: "a call is looked at alone".into(),
        settle: "see whether the rules' counters grow".into(),
    }
}

fn no_transparent_socket() -> Assumption {
    Assumption {
        subject: "transparent sockets on the node".into(),
        assumed: "none takes the packet".into(),
        because: "only a proxy on the node has one".into(),
        settle: "see whether the rule's counter grows".into(),
    }
}

fn no_ipsec() -> Assumption {
    Assumption {
        subject: "IPsec".into(),
        assumed: "the packet is none of a protected connection".into(),
        because: "a node rarely has any".into(),
        settle: "ip xfrm policy on the node".into(),
    }
}

fn empty_list(recent: &Recent) -> Assumption {
    Assumption {
        subject: format!("the list {} of -m recent", recent.name).into(),
        assumed: "the packet's address is not on it".into(),
        because: "a client's first connection comes before any entry".into(),
        settle: format!("/proc/net/xt_recent/{} on the node", recent.name).into(),
    }
}
