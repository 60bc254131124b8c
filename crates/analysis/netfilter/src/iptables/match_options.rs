//! Parses the options of iptables matches.

use std::net::IpAddr;

use uturn_model::{Family, Text};

use super::token::Token;
use super::value::{address, address_range, addresses, masked, port_range, tcp_flags};
use super::*;

/// The words of a rule, and the parser's position.
pub(super) struct Args<'t, 'a> {
    pub(super) words: &'t [Token<'a>],
    pub(super) at: usize,
    pub(super) family: Family,
    /// The latest comment, of this rule or an earlier one.
    pub(super) comment: Option<Text>,
}

/// A reason why an option was not accepted.
pub(super) enum Refusal {
    /// The match has no such option.
    NotMine,
    /// The option is not modelled: the match must be kept as written.
    Unmodelled,
    /// The option is invalid: column and message.
    Fault(u32, String),
}

pub(super) type Taken = Result<(), Refusal>;

impl<'t, 'a> Args<'t, 'a> {
    pub(super) fn next(&mut self) -> Option<&'t Token<'a>> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    /// The value of the current option.
    pub(super) fn value(&mut self) -> Result<&'t Token<'a>, Refusal> {
        let option = &self.words[self.at.saturating_sub(1)];
        self.next().ok_or_else(|| {
            Refusal::Fault(
                option.column,
                format!("found nothing after {}, expected a value", option.text),
            )
        })
    }

    /// The value of the current option, parsed.
    pub(super) fn read<T>(
        &mut self,
        expected: &str,
        read: impl FnOnce(&str, Family) -> Option<T>,
    ) -> Result<T, Refusal> {
        let family = self.family;
        let word = self.value()?;
        read(&word.text, family).ok_or_else(|| {
            Refusal::Fault(word.column, format!("found {:?}, expected {expected}", word.text))
        })
    }

    fn comment(&mut self) -> Result<Text, Refusal> {
        let word = self.value()?;
        if let Some(comment) = self.comment.as_ref().filter(|comment| ***comment == *word.text) {
            return Ok(comment.clone());
        }
        Ok(self.comment.insert(Text::from(&*word.text)).clone())
    }

    fn ports(&mut self) -> Result<PortRange, Refusal> {
        self.read("a port or a range of ports", |word, _| port_range(word, ':'))
    }

    fn number(&mut self) -> Result<u32, Refusal> {
        self.read("a number", |word, _| word.parse().ok())
    }

    fn address(&mut self) -> Result<IpAddr, Refusal> {
        self.read("an address", address)
    }

    /// A comma-separated list of `names`; any other word is not modelled.
    fn names<T: Copy + Ord>(&mut self, names: &[(T, &str)]) -> Result<Vec<T>, Refusal> {
        let word = self.value()?;
        let lookup = |part: &str| {
            names.iter().find(|(_, name)| name.eq_ignore_ascii_case(part)).map(|(value, _)| *value)
        };
        let mut all: Vec<T> =
            word.text.split(',').map(lookup).collect::<Option<_>>().ok_or(Refusal::Unmodelled)?;
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

/// An empty match of that name, if the match is modelled.
pub(super) fn open(name: &str) -> Option<Match> {
    Some(match name {
        "comment" => Match::Comment("".into()),
        "tcp" => Match::Tcp(Tcp::default()),
        "udp" => Match::Udp(Udp::default()),
        "sctp" => Match::Sctp(Udp::default()),
        "icmp" | "icmp6" | "icmpv6" => Match::Icmp(Icmp { v6: name != "icmp", kind: None }),
        "multiport" => {
            let ports = Not::plain(Vec::new());
            Match::Multiport(Box::new(Multiport { side: PortSide::Either, ports }))
        }
        "conntrack" => Match::Conntrack(Box::default()),
        "state" => Match::State(Box::new(Not::plain(Vec::new()))),
        "addrtype" => Match::AddrType(Box::default()),
        "mark" => Match::Mark(MarkMatch { not: false, value: 0, mask: 0 }),
        "connmark" => Match::Connmark(MarkMatch { not: false, value: 0, mask: 0 }),
        "statistic" => Match::Statistic(Statistic::Nth { not: false, every: 0, packet: 0 }),
        "recent" => Match::Recent(Box::new(Recent {
            action: Not::plain(RecentAction::Set),
            seconds: None,
            reap: false,
            hitcount: None,
            rttl: false,
            name: "DEFAULT".into(),
            mask: None,
            rdest: false,
        })),
        "nfacct" => Match::Nfacct("".into()),
        "rpfilter" => Match::Rpfilter(Rpfilter::default()),
        "iprange" => Match::Iprange(Box::default()),
        "set" => Match::Set(Box::new(SetMatch {
            set: Not::plain("".into()),
            directions: Vec::new(),
            return_nomatch: false,
            keep_counters: false,
            keep_subcounters: false,
        })),
        "ipvs" => Match::Ipvs(Box::default()),
        _ => return None,
    })
}

/// Whether a match is valid after all its options, of which `count` were given.
pub(super) fn is_complete(item: &Match, count: usize) -> bool {
    match item {
        Match::Tcp(_) | Match::Udp(_) | Match::Sctp(_) | Match::Icmp(_) => true,
        Match::Rpfilter(_) | Match::Other(_) => true,
        Match::Statistic(Statistic::Random(_)) => count >= 2,
        Match::Statistic(Statistic::Nth { every, packet, .. }) => packet < every,
        Match::Recent(recent) => recent.mask.is_some() || count > 0,
        Match::Set(set) => !set.directions.is_empty(),
        _ => count > 0,
    }
}

/// Consumes an option of a match, with its values.
pub(super) fn accept(item: &mut Match, option: &str, not: bool, args: &mut Args<'_, '_>) -> Taken {
    let kept = |taken: Taken| if not { Err(Refusal::Unmodelled) } else { taken };
    match (item, option) {
        (Match::Comment(text), "--comment") => {
            *text = args.comment()?;
            kept(Ok(()))
        }
        (Match::Tcp(tcp), "--tcp-flags") => {
            let mask = args.read("TCP flags", |word, _| tcp_flags(word))?;
            let set = args.read("TCP flags", |word, _| tcp_flags(word))?;
            set_once(&mut tcp.flags, not, (mask, set))
        }
        (Match::Tcp(tcp), "--syn") => set_once(&mut tcp.flags, not, (0x17, 0x02)),
        (Match::Tcp(Tcp { sport, .. }), "--sport" | "--source-port")
        | (
            Match::Udp(Udp { sport, .. }) | Match::Sctp(Udp { sport, .. }),
            "--sport" | "--source-port",
        ) => {
            let ports = args.ports()?;
            set_once(sport, not, ports)
        }
        (Match::Tcp(Tcp { dport, .. }), "--dport" | "--destination-port")
        | (
            Match::Udp(Udp { dport, .. }) | Match::Sctp(Udp { dport, .. }),
            "--dport" | "--destination-port",
        ) => {
            let ports = args.ports()?;
            set_once(dport, not, ports)
        }
        (Match::Icmp(icmp), "--icmp-type" | "--icmpv6-type")
            if icmp.v6 == (option == "--icmpv6-type") =>
        {
            let word = args.value()?;
            match icmp::kind(&word.text, icmp.v6) {
                Some(None) if !not => Ok(()),
                Some(Some(kind)) => set_once(&mut icmp.kind, not, kind),
                _ => Err(Refusal::Unmodelled),
            }
        }
        (Match::Multiport(multiport), option) => {
            multiport.side = match option {
                "--sports" | "--source-ports" => PortSide::Source,
                "--dports" | "--destination-ports" => PortSide::Destination,
                "--ports" => PortSide::Either,
                _ => return Err(Refusal::NotMine),
            };
            let value = args.read("a list of ports", |word, _| {
                word.split(',').map(|part| port_range(part, ':')).collect()
            })?;
            multiport.ports = Not { not, value };
            Ok(())
        }
        (Match::Conntrack(conntrack), "--ctstate") => {
            let states = args.names(&CtState::ALL)?;
            set_once(&mut conntrack.states, not, states)
        }
        (Match::Conntrack(conntrack), "--ctstatus") => {
            let none = args.words.get(args.at).is_some_and(|word| word.text == "NONE");
            let status =
                if none { args.value().map(|_| Vec::new()) } else { args.names(&CtStatus::ALL) }?;
            set_once(&mut conntrack.status, not, status)
        }
        (Match::Conntrack(conntrack), "--ctdir") => {
            conntrack.direction = Some(args.read("ORIGINAL or REPLY", |word, _| match word {
                "ORIGINAL" => Some(CtDirection::Original),
                "REPLY" => Some(CtDirection::Reply),
                _ => None,
            })?);
            kept(Ok(()))
        }
        (Match::Conntrack(conntrack), "--ctproto") => {
            let value = args.read("a protocol", |word, _| IpProtocol::from_word(word))?;
            set_once(&mut conntrack.protocol, not, value)
        }
        (
            Match::Conntrack(conntrack),
            "--ctorigsrc" | "--ctorigdst" | "--ctreplsrc" | "--ctrepldst",
        ) => {
            let value = args.read("an address or network", addresses)?;
            let slot = match option {
                "--ctorigsrc" => &mut conntrack.original_src,
                "--ctorigdst" => &mut conntrack.original_dst,
                "--ctreplsrc" => &mut conntrack.reply_src,
                _ => &mut conntrack.reply_dst,
            };
            set_once(slot, not, value)
        }
        (
            Match::Conntrack(conntrack),
            "--ctorigsrcport" | "--ctorigdstport" | "--ctreplsrcport" | "--ctrepldstport",
        ) => {
            let value = args.ports()?;
            let slot = match option {
                "--ctorigsrcport" => &mut conntrack.original_src_port,
                "--ctorigdstport" => &mut conntrack.original_dst_port,
                "--ctreplsrcport" => &mut conntrack.reply_src_port,
                _ => &mut conntrack.reply_dst_port,
            };
            set_once(slot, not, value)
        }
        (Match::Rpfilter(filter), option) if !not => {
            match option {
                "--loose" => filter.loose = true,
                "--validmark" => filter.valid_mark = true,
                "--accept-local" => filter.accept_local = true,
                "--invert" => filter.invert = true,
                _ => return Err(Refusal::NotMine),
            }
            Ok(())
        }
        // Options of these matches that are not modelled: the whole match is kept as written.
        (Match::Conntrack(_), option) if option.starts_with("--ct") => Err(Refusal::Unmodelled),
        (Match::Tcp(_), "--tcp-option") => Err(Refusal::Unmodelled),
        (Match::Sctp(_), "--chunk-types") => Err(Refusal::Unmodelled),
        (Match::State(states), "--state") => {
            **states = Not { not, value: args.names(&CtState::ALL[..5])? };
            Ok(())
        }
        (Match::AddrType(addrtype), "--src-type") => {
            let kinds = args.names(&AddrKind::ALL)?;
            set_once(&mut addrtype.src, not, kinds)
        }
        (Match::AddrType(addrtype), "--dst-type") => {
            let kinds = args.names(&AddrKind::ALL)?;
            set_once(&mut addrtype.dst, not, kinds)
        }
        (Match::AddrType(addrtype), "--limit-iface-in" | "--limit-iface-out") => {
            let into = option == "--limit-iface-in";
            addrtype.limit = Some(if into { LimitInterface::In } else { LimitInterface::Out });
            kept(Ok(()))
        }
        (Match::Mark(mark) | Match::Connmark(mark), "--mark") => {
            let (value, mask) = args.read("a mark: `0x1/0xff`", |word, _| masked(word))?;
            *mark = MarkMatch { not, value, mask };
            Ok(())
        }
        (Match::Statistic(statistic), option) => accept_statistic(statistic, option, not, args),
        (Match::Recent(recent), option) => accept_recent(recent, option, not, args),
        (Match::Nfacct(name), "--nfacct-name") => {
            *name = Text::from(&*args.value()?.text);
            kept(Ok(()))
        }
        (Match::Iprange(range), "--src-range") => {
            let value = args.read("a range of addresses", address_range)?;
            set_once(&mut range.src, not, value)
        }
        (Match::Iprange(range), "--dst-range") => {
            let value = args.read("a range of addresses", address_range)?;
            set_once(&mut range.dst, not, value)
        }
        (Match::Set(set), option) => set_options::set(set, option, not, args),
        (Match::Ipvs(ipvs), option) => set_options::ipvs(ipvs, option, not, args),
        _ => Err(Refusal::NotMine),
    }
}

fn accept_statistic(
    statistic: &mut Statistic,
    option: &str,
    not: bool,
    args: &mut Args<'_, '_>,
) -> Taken {
    match option {
        "--mode" if !not => {
            *statistic = args.read("random or nth", |word, _| match word {
                "random" => Some(Statistic::Random(Not::plain(Probability::default()))),
                "nth" => Some(Statistic::Nth { not: false, every: 0, packet: 0 }),
                _ => None,
            })?;
        }
        "--probability" => {
            let value =
                args.read("odds from 0 to 1", |word, _| Probability::new(word.parse().ok()?))?;
            *statistic = Statistic::Random(Not { not, value });
        }
        "--every" => {
            let count = args.number()?;
            if let Statistic::Nth { not: negated, every, .. } = statistic {
                (*negated, *every) = (not, count);
            }
        }
        "--packet" if !not => {
            let count = args.number()?;
            if let Statistic::Nth { packet, .. } = statistic {
                *packet = count;
            }
        }
        _ => return Err(Refusal::NotMine),
    }
    Ok(())
}

fn accept_recent(recent: &mut Recent, option: &str, not: bool, args: &mut Args<'_, '_>) -> Taken {
    let action = match option {
        "--set" => Some(RecentAction::Set),
        "--rcheck" => Some(RecentAction::Check),
        "--update" => Some(RecentAction::Update),
        "--remove" => Some(RecentAction::Remove),
        _ => None,
    };
    match (option, action) {
        (_, Some(value)) => recent.action = Not { not, value },
        _ if not => return Err(Refusal::NotMine),
        ("--seconds", _) => recent.seconds = Some(args.number()?),
        ("--reap", _) => recent.reap = true,
        ("--hitcount", _) => recent.hitcount = Some(args.number()?),
        ("--rttl", _) => recent.rttl = true,
        ("--name", _) => recent.name = Text::from(&*args.value()?.text),
        ("--mask", _) => recent.mask = Some(args.address()?),
        ("--rsource", _) => recent.rdest = false,
        ("--rdest", _) => recent.rdest = true,
        _ => return Err(Refusal::NotMine),
    }
    Ok(())
}

pub(super) fn set_once<T>(slot: &mut Option<Not<T>>, not: bool, value: T) -> Taken {
    match slot {
        // No tool prints the same option twice, and its meaning depends on the tool.
        Some(_) => Err(Refusal::Unmodelled),
        None => {
            *slot = Some(Not { not, value });
            Ok(())
        }
    }
}
