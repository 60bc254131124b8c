//! Prints matches as `iptables-save` does.

use std::fmt::{Display, Formatter, Result, Write};

use super::print::{
    flags, list, option, plain_option, plain_word, print_extension, quoted, short, words,
};
use super::*;
use crate::ipvs::Forwarding;

pub(super) fn print_match(f: &mut Formatter<'_>, item: &Match) -> Result {
    let show = |f: &mut Formatter<'_>, value: &PortRange| value.fmt(f);
    match item {
        Match::Comment(text) => {
            f.write_str(" -m comment --comment ")?;
            quoted(f, text, plain_word)
        }
        Match::Tcp(tcp) => {
            f.write_str(" -m tcp")?;
            option(f, "--sport", tcp.sport.as_ref(), show)?;
            option(f, "--dport", tcp.dport.as_ref(), show)?;
            option(f, "--tcp-flags", tcp.flags.as_ref(), |f, (mask, set)| {
                flags(f, *mask)?;
                f.write_char(' ')?;
                flags(f, *set)
            })
        }
        Match::Udp(ports) | Match::Sctp(ports) => {
            f.write_str(if matches!(item, Match::Udp(_)) { " -m udp" } else { " -m sctp" })?;
            option(f, "--sport", ports.sport.as_ref(), show)?;
            option(f, "--dport", ports.dport.as_ref(), show)
        }
        Match::Icmp(icmp) => {
            let (module, name) =
                if icmp.v6 { ("icmp6", "--icmpv6-type") } else { ("icmp", "--icmp-type") };
            write!(f, " -m {module}")?;
            match &icmp.kind {
                Some(_) => option(f, name, icmp.kind.as_ref(), |f, (kind, code)| match code {
                    Some(code) => write!(f, "{kind}/{code}"),
                    None => kind.fmt(f),
                }),
                None if icmp.v6 => Ok(()),
                None => f.write_str(" --icmp-type any"),
            }
        }
        Match::Multiport(multiport) => {
            let name = match multiport.side {
                PortSide::Source => "--sports",
                PortSide::Destination => "--dports",
                PortSide::Either => "--ports",
            };
            let not = if multiport.ports.not { " !" } else { "" };
            write!(f, " -m multiport{not} {name} ")?;
            list(f, &multiport.ports.value, |f, range| range.fmt(f))
        }
        Match::Conntrack(conntrack) => {
            f.write_str(" -m conntrack")?;
            option(f, "--ctstate", conntrack.states.as_ref(), |f, all| {
                words(f, all, &CtState::ALL)
            })?;
            option(f, "--ctproto", conntrack.protocol.as_ref(), |f, protocol| protocol.0.fmt(f))?;
            for (name, net) in [
                ("--ctorigsrc", &conntrack.original_src),
                ("--ctorigdst", &conntrack.original_dst),
                ("--ctreplsrc", &conntrack.reply_src),
                ("--ctrepldst", &conntrack.reply_dst),
            ] {
                option(f, name, net.as_ref(), short)?;
            }
            for (name, ports) in [
                ("--ctorigsrcport", &conntrack.original_src_port),
                ("--ctorigdstport", &conntrack.original_dst_port),
                ("--ctreplsrcport", &conntrack.reply_src_port),
                ("--ctrepldstport", &conntrack.reply_dst_port),
            ] {
                option(f, name, ports.as_ref(), show)?;
            }
            option(f, "--ctstatus", conntrack.status.as_ref(), |f, all| {
                if all.is_empty() { f.write_str("NONE") } else { words(f, all, &CtStatus::ALL) }
            })?;
            match conntrack.direction {
                Some(CtDirection::Original) => f.write_str(" --ctdir ORIGINAL"),
                Some(CtDirection::Reply) => f.write_str(" --ctdir REPLY"),
                None => Ok(()),
            }
        }
        Match::State(states) => {
            let not = if states.not { " !" } else { "" };
            write!(f, " -m state{not} --state ")?;
            words(f, &states.value, &CtState::ALL)
        }
        Match::AddrType(addrtype) => {
            f.write_str(" -m addrtype")?;
            option(f, "--src-type", addrtype.src.as_ref(), |f, all| words(f, all, &AddrKind::ALL))?;
            option(f, "--dst-type", addrtype.dst.as_ref(), |f, all| words(f, all, &AddrKind::ALL))?;
            match addrtype.limit {
                Some(LimitInterface::In) => f.write_str(" --limit-iface-in"),
                Some(LimitInterface::Out) => f.write_str(" --limit-iface-out"),
                None => Ok(()),
            }
        }
        Match::Mark(mark) | Match::Connmark(mark) => {
            let name = if matches!(item, Match::Mark(_)) { "mark" } else { "connmark" };
            let not = if mark.not { " !" } else { "" };
            write!(f, " -m {name}{not} --mark {:#x}", mark.value)?;
            if mark.mask == u32::MAX { Ok(()) } else { write!(f, "/{:#x}", mark.mask) }
        }
        Match::Statistic(Statistic::Random(odds)) => {
            let not = if odds.not { " !" } else { "" };
            let odds = odds.value.odds();
            write!(f, " -m statistic --mode random{not} --probability {odds:.11}")
        }
        Match::Statistic(Statistic::Nth { not, every, packet }) => {
            let not = if *not { " !" } else { "" };
            write!(f, " -m statistic --mode nth{not} --every {every} --packet {packet}")
        }
        Match::Recent(recent) => print_recent(f, recent),
        // iptables-save prints two spaces here.
        Match::Nfacct(name) => {
            f.write_str(" -m nfacct --nfacct-name  ")?;
            quoted(f, name, plain_option)
        }
        Match::Iprange(range) => {
            f.write_str(" -m iprange")?;
            let show = |f: &mut Formatter<'_>, (first, last): &(IpAddr, IpAddr)| {
                write!(f, "{first}-{last}")
            };
            option(f, "--src-range", range.src.as_ref(), show)?;
            option(f, "--dst-range", range.dst.as_ref(), show)
        }
        Match::Set(set) => print_set(f, set),
        Match::Ipvs(ipvs) => print_ipvs(f, ipvs),
        Match::Rpfilter(filter) => {
            f.write_str(" -m rpfilter")?;
            for (is_set, name) in [
                (filter.loose, " --loose"),
                (filter.valid_mark, " --validmark"),
                (filter.accept_local, " --accept-local"),
                (filter.invert, " --invert"),
            ] {
                f.write_str(if is_set { name } else { "" })?;
            }
            Ok(())
        }
        Match::Other(extension) => print_extension(f, "-m", extension),
    }
}

fn print_set(f: &mut Formatter<'_>, set: &SetMatch) -> Result {
    let not = if set.set.not { " !" } else { "" };
    write!(f, " -m set{not} --match-set ")?;
    quoted(f, &set.set.value, plain_option)?;
    f.write_char(' ')?;
    list(f, &set.directions, |f, direction| {
        f.write_str(match direction {
            SetDirection::Source => "src",
            SetDirection::Destination => "dst",
        })
    })?;
    for (is_set, option) in [
        (set.return_nomatch, " --return-nomatch"),
        (set.keep_counters, " ! --update-counters"),
        (set.keep_subcounters, " ! --update-subcounters"),
    ] {
        if is_set {
            f.write_str(option)?;
        }
    }
    Ok(())
}

fn print_ipvs(f: &mut Formatter<'_>, ipvs: &IpvsMatch) -> Result {
    f.write_str(" -m ipvs")?;
    match ipvs.handled {
        Some(true) => f.write_str(" --ipvs")?,
        Some(false) => f.write_str(" ! --ipvs")?,
        None => {}
    }
    option(f, "--vproto", ipvs.protocol.as_ref(), |f, protocol| protocol.0.fmt(f))?;
    option(f, "--vaddr", ipvs.address.as_ref(), |f, address| address.fmt(f))?;
    option(f, "--vport", ipvs.port.as_ref(), |f, port| port.fmt(f))?;
    match ipvs.direction {
        Some(CtDirection::Original) => f.write_str(" --vdir ORIGINAL")?,
        Some(CtDirection::Reply) => f.write_str(" --vdir REPLY")?,
        None => {}
    }
    option(f, "--vmethod", ipvs.method.as_ref(), |f, method| {
        f.write_str(match method {
            Forwarding::Direct => "GATE",
            Forwarding::Tunnel => "IPIP",
            Forwarding::Masquerade => "MASQ",
        })
    })?;
    option(f, "--vportctl", ipvs.control_port.as_ref(), |f, port| port.fmt(f))
}

fn print_recent(f: &mut Formatter<'_>, recent: &Recent) -> Result {
    let not = if recent.action.not { " !" } else { "" };
    let action = match recent.action.value {
        RecentAction::Set => "--set",
        RecentAction::Check => "--rcheck",
        RecentAction::Update => "--update",
        RecentAction::Remove => "--remove",
    };
    write!(f, " -m recent{not} {action}")?;
    if let Some(seconds) = recent.seconds {
        write!(f, " --seconds {seconds}")?;
    }
    if recent.reap {
        f.write_str(" --reap")?;
    }
    if let Some(hitcount) = recent.hitcount {
        write!(f, " --hitcount {hitcount}")?;
    }
    if recent.rttl {
        f.write_str(" --rttl")?;
    }
    f.write_str(" --name ")?;
    quoted(f, &recent.name, plain_option)?;
    if let Some(mask) = recent.mask {
        write!(f, " --mask {mask}")?;
    }
    f.write_str(if recent.rdest { " --rdest" } else { " --rsource" })
}
