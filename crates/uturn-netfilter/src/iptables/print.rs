//! Prints rules as `iptables-save` does.

use std::fmt::{Display, Formatter, Result, Write};

use super::token::is_border;
use super::*;
use crate::ipvs::Forwarding;

pub(super) struct Line<'a> {
    pub(super) rule: &'a Rule,
    pub(super) chain: &'a str,
}

impl Display for Ruleset {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for table in &self.tables {
            writeln!(f, "*{}", table.kind)?;
            for chain in &table.chains {
                let policy = chain.policy.map_or("-", Policy::as_str);
                let Counters { packets, bytes } = chain.counters;
                writeln!(f, ":{} {policy} [{packets}:{bytes}]", chain.name)?;
            }
            for chain in &table.chains {
                for rule in &chain.rules {
                    if let Some(Counters { packets, bytes }) = rule.counters.as_deref() {
                        write!(f, "[{packets}:{bytes}] ")?;
                    }
                    writeln!(f, "{}", rule.line(&chain.name))?;
                }
            }
            f.write_str("COMMIT\n")?;
        }
        Ok(())
    }
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let rule = self.rule;
        write!(f, "-A {}", self.chain)?;
        option(f, "-s", rule.src.as_ref(), |f, net| net.fmt(f))?;
        option(f, "-d", rule.dst.as_ref(), |f, net| net.fmt(f))?;
        option(f, "-i", rule.in_interface.as_deref(), |f, name| quoted(f, name, plain_interface))?;
        option(f, "-o", rule.out_interface.as_deref(), |f, name| quoted(f, name, plain_interface))?;
        option(f, "-p", rule.protocol.as_ref(), |f, protocol| protocol.fmt(f))?;
        match rule.fragment {
            Some(true) => f.write_str(" -f")?,
            Some(false) => f.write_str(" ! -f")?,
            None => {}
        }
        for item in &rule.matches {
            print_match(f, item)?;
        }
        match &rule.target {
            Some(target) => print_target(f, target),
            None => Ok(()),
        }
    }
}

impl Display for Addresses {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Net(net) => net.fmt(f),
            Self::Masked { address, mask } => write!(f, "{address}/{mask}"),
        }
    }
}

impl Display for PortRange {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.print(f, ':')
    }
}

impl PortRange {
    fn print(&self, f: &mut Formatter<'_>, between: char) -> Result {
        write!(f, "{}", self.first)?;
        if self.first != self.last {
            write!(f, "{between}{}", self.last)?;
        }
        Ok(())
    }
}

fn option<T>(
    f: &mut Formatter<'_>,
    name: &str,
    value: Option<&Not<T>>,
    print: impl FnOnce(&mut Formatter<'_>, &T) -> Result,
) -> Result {
    let Some(Not { not, value }) = value else { return Ok(()) };
    write!(f, "{} {name} ", if *not { " !" } else { "" })?;
    print(f, value)
}

fn print_match(f: &mut Formatter<'_>, item: &Match) -> Result {
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
            option(f, "--ctstatus", conntrack.status.as_ref(), |f, all| match all.is_empty() {
                true => f.write_str("NONE"),
                false => words(f, all, &CtStatus::ALL),
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

/// A network; a single address without its prefix length.
fn short(f: &mut Formatter<'_>, net: &Addresses) -> Result {
    match net {
        Addresses::Net(net) if net.prefix_len() == net.max_prefix_len() => net.addr().fmt(f),
        other => other.fmt(f),
    }
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

fn print_target(f: &mut Formatter<'_>, target: &Target) -> Result {
    match target {
        Target::Accept => f.write_str(" -j ACCEPT"),
        Target::Drop => f.write_str(" -j DROP"),
        Target::Return => f.write_str(" -j RETURN"),
        Target::Reject(with) => write!(f, " -j REJECT --reject-with {with}"),
        Target::Jump(chain) => write!(f, " -j {chain}"),
        Target::Goto(chain) => write!(f, " -g {chain}"),
        Target::Mark { value, mask } => write!(f, " -j MARK --set-xmark {value:#x}/{mask:#x}"),
        Target::Connmark(ConnmarkOp::Set { value, mask }) => {
            write!(f, " -j CONNMARK --set-xmark {value:#x}/{mask:#x}")
        }
        Target::Connmark(ConnmarkOp::Save { nfmask, ctmask }) => {
            write!(f, " -j CONNMARK --save-mark --nfmask {nfmask:#x} --ctmask {ctmask:#x}")
        }
        Target::Connmark(ConnmarkOp::Restore { nfmask, ctmask }) => {
            write!(f, " -j CONNMARK --restore-mark --nfmask {nfmask:#x} --ctmask {ctmask:#x}")
        }
        Target::Dnat(to) => {
            f.write_str(" -j DNAT --to-destination ")?;
            print_nat(f, to)
        }
        Target::Snat(to) => {
            f.write_str(" -j SNAT --to-source ")?;
            print_nat(f, to)
        }
        Target::Masquerade(to) | Target::Redirect(to) => {
            let masquerade = matches!(target, Target::Masquerade(_));
            f.write_str(if masquerade { " -j MASQUERADE" } else { " -j REDIRECT" })?;
            if let Some(ports) = to.ports {
                f.write_str(" --to-ports ")?;
                ports.print(f, '-')?;
            }
            print_random(f, to.random, to.random_fully)
        }
        Target::Netmap(net) => write!(f, " -j NETMAP --to {net}"),
        Target::Tproxy(Tproxy { port, address, value, mask }) => {
            write!(f, " -j TPROXY --on-port {port} --on-ip ")?;
            match address {
                Some(ip) => ip.fmt(f)?,
                None => f.write_str("0.0.0.0")?,
            }
            write!(f, " --tproxy-mark {value:#x}/{mask:#x}")
        }
        Target::Trace => f.write_str(" -j TRACE"),
        Target::Notrack { ct: false } => f.write_str(" -j NOTRACK"),
        Target::Notrack { ct: true } => f.write_str(" -j CT --notrack"),
        Target::Log(extension) | Target::Other(extension) => print_extension(f, "-j", extension),
    }
}

fn print_nat(f: &mut Formatter<'_>, to: &NatTo) -> Result {
    if let Some((first, last)) = to.addresses {
        match to.ports.is_some() && first.is_ipv6() {
            true if first == last => write!(f, "[{first}]")?,
            true => write!(f, "[{first}-{last}]")?,
            false if first == last => first.fmt(f)?,
            false => write!(f, "{first}-{last}")?,
        }
    }
    if let Some(ports) = to.ports {
        f.write_char(':')?;
        ports.print(f, '-')?;
    }
    print_random(f, to.random, to.random_fully)?;
    if to.persistent { f.write_str(" --persistent") } else { Ok(()) }
}

fn print_random(f: &mut Formatter<'_>, random: bool, fully: bool) -> Result {
    if random {
        f.write_str(" --random")?;
    }
    if fully { f.write_str(" --random-fully") } else { Ok(()) }
}

fn print_extension(f: &mut Formatter<'_>, flag: &str, extension: &Extension) -> Result {
    write!(f, " {flag} ")?;
    quoted(f, &extension.name, plain_option)?;
    extension.words.iter().try_for_each(|word| {
        f.write_char(' ')?;
        match is_border(word) {
            _ if &**word == "!" => f.write_char('!'),
            true => quoted(f, word, |_| false),
            // iptables-save always quotes this value.
            false if &*extension.name == "u32" && !word.starts_with("--") => {
                quoted(f, word, |_| false)
            }
            false => quoted(f, word, plain_option),
        }
    })
}

fn list<T>(
    f: &mut Formatter<'_>,
    all: &[T],
    print: impl Fn(&mut Formatter<'_>, &T) -> Result,
) -> Result {
    for (i, item) in all.iter().enumerate() {
        if i > 0 {
            f.write_char(',')?;
        }
        print(f, item)?;
    }
    Ok(())
}

fn words<T: PartialEq>(f: &mut Formatter<'_>, all: &[T], names: &[(T, &str)]) -> Result {
    let name =
        |value: &T| names.iter().find(|(known, _)| known == value).map_or("", |(_, name)| name);
    list(f, all, |f, value| f.write_str(name(value)))
}

fn flags(f: &mut Formatter<'_>, set: u8) -> Result {
    if set == 0 {
        return f.write_str("NONE");
    }
    let names: Vec<_> = TCP_FLAGS.iter().filter(|(_, bit)| set & bit != 0).collect();
    list(f, &names, |f, (name, _)| f.write_str(name))
}

/// The TCP flags and their header bits.
pub(super) const TCP_FLAGS: [(&str, u8); 6] =
    [("FIN", 0x01), ("SYN", 0x02), ("RST", 0x04), ("PSH", 0x08), ("ACK", 0x10), ("URG", 0x20)];

fn plain_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn plain_interface(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'\'')
}

fn plain_option(byte: u8) -> bool {
    // Everything that does not end an unquoted word: a quoted option would not be one.
    !matches!(byte, b' ' | b'\t' | b'"' | b'\n' | b'\r')
}

/// A word, quoted if it has other than plain bytes.
fn quoted(f: &mut Formatter<'_>, text: &str, plain: fn(u8) -> bool) -> Result {
    if !text.is_empty() && text != "!" && text.bytes().all(plain) {
        return f.write_str(text);
    }
    f.write_char('"')?;
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '\'') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char('"')
}
