//! Prints rules as `iptables-save` does.

use std::fmt::{Display, Formatter, Result, Write};

use super::print_match::print_match;
use super::token::is_border;
use super::*;

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

pub(super) fn option<T>(
    f: &mut Formatter<'_>,
    name: &str,
    value: Option<&Not<T>>,
    print: impl FnOnce(&mut Formatter<'_>, &T) -> Result,
) -> Result {
    let Some(Not { not, value }) = value else { return Ok(()) };
    write!(f, "{} {name} ", if *not { " !" } else { "" })?;
    print(f, value)
}

/// A network; a single address without its prefix length.
pub(super) fn short(f: &mut Formatter<'_>, net: &Addresses) -> Result {
    match net {
        Addresses::Net(net) if net.prefix_len() == net.max_prefix_len() => net.addr().fmt(f),
        other => other.fmt(f),
    }
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

pub(super) fn print_extension(f: &mut Formatter<'_>, flag: &str, extension: &Extension) -> Result {
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

pub(super) fn list<T>(
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

pub(super) fn words<T: PartialEq>(f: &mut Formatter<'_>, all: &[T], names: &[(T, &str)]) -> Result {
    let name =
        |value: &T| names.iter().find(|(known, _)| known == value).map_or("", |(_, name)| name);
    list(f, all, |f, value| f.write_str(name(value)))
}

pub(super) fn flags(f: &mut Formatter<'_>, set: u8) -> Result {
    if set == 0 {
        return f.write_str("NONE");
    }
    let names: Vec<_> = TCP_FLAGS.iter().filter(|(_, bit)| set & bit != 0).collect();
    list(f, &names, |f, (name, _)| f.write_str(name))
}

/// The TCP flags and their header bits.
pub(super) const TCP_FLAGS: [(&str, u8); 6] =
    [("FIN", 0x01), ("SYN", 0x02), ("RST", 0x04), ("PSH", 0x08), ("ACK", 0x10), ("URG", 0x20)];

pub(super) fn plain_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn plain_interface(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'\'')
}

pub(super) fn plain_option(byte: u8) -> bool {
    // Everything that does not end an unquoted word: a quoted option would not be one.
    !matches!(byte, b' ' | b'\t' | b'"' | b'\n' | b'\r')
}

/// A word, quoted if it has other than plain bytes.
pub(super) fn quoted(f: &mut Formatter<'_>, text: &str, plain: fn(u8) -> bool) -> Result {
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
