//! Prints rules as `nft list ruleset` does.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::time::Duration;

use uturn_model::Text;

use super::expr::{PRINTED_BARE, has_flags};
use super::print::quoted;
use super::read_rule::{is_usual_burst, usual_reject};
use super::{
    BinaryOp, Counters, Data, Element, Expr, FibResult, Limit, Log, Nat, NatKind, Quota, Reject,
    Relation, Rule, SetUpdate, Statement, TableFamily, Verdict,
};

/// A rule in a table of a family.
pub(super) struct Line<'a> {
    pub(super) rule: &'a Rule,
    pub(super) family: TableFamily,
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, statement) in self.rule.statements.iter().enumerate() {
            f.write_str(if at > 0 { " " } else { "" })?;
            write_statement(f, statement, self.family)?;
        }
        if let Some(comment) = &self.rule.comment {
            f.write_str(if self.rule.statements.is_empty() { "comment " } else { " comment " })?;
            quoted(f, comment)?;
        }
        Ok(())
    }
}

/// How values of a type are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueFormat {
    Plain,
    /// `0x00004000`
    Mark,
    /// `0xff`
    Hex,
    /// `"eth0"`
    Quoted,
}

impl ValueFormat {
    /// The format of a set's type.
    pub(super) fn of_type(part: &str) -> Self {
        match part.rsplit(' ').next().unwrap_or(part) {
            "mark" => Self::Mark,
            "ifname" | "iifname" | "oifname" | "iface_index" | "iif" | "oif" | "hour" | "day"
            | "time" => Self::Quoted,
            _ => Self::Plain,
        }
    }

    fn of(expr: &Expr) -> Self {
        match expr {
            Expr::Meta("mark") | Expr::Ct(_, "mark") => Self::Mark,
            Expr::Meta(
                "iifname" | "oifname" | "iif" | "oif" | "ibrname" | "obrname" | "iifkind"
                | "oifkind" | "time" | "hour" | "day" | "sdif" | "sdifname",
            )
            | Expr::Ct(_, "helper") => Self::Quoted,
            Expr::Fib(fib) if fib.result != FibResult::Type => Self::Quoted,
            Expr::Other(text) if text.starts_with('@') => Self::Hex,
            Expr::Other(text) if &**text == "socket mark" => Self::Mark,
            Expr::Other(text) if text.starts_with("osf") => Self::Quoted,
            Expr::Binary(_, sides) => Self::of(&sides.0),
            _ => Self::Plain,
        }
    }
}

fn kinds(expr: &Expr) -> Vec<ValueFormat> {
    match expr {
        Expr::Concat(parts) => parts.iter().map(ValueFormat::of).collect(),
        single => vec![ValueFormat::of(single)],
    }
}

pub(super) fn write_statement(
    f: &mut Formatter<'_>,
    statement: &Statement,
    family: TableFamily,
) -> fmt::Result {
    match statement {
        Statement::Match { left, relation, right } => {
            write_match(f, left, *relation, right, family)
        }
        Statement::Verdict(verdict) => write_verdict(f, verdict),
        Statement::Vmap(key, map) => {
            write_expr(f, key, &[], &[], family)?;
            f.write_str(" vmap ")?;
            write_expr(f, map, &kinds(key), &[], family)
        }
        Statement::Set(key, value) => {
            write_expr(f, key, &[], &[], family)?;
            f.write_str(" set ")?;
            let kinds = kinds(key);
            write_expr(f, value, &kinds, &kinds, family)
        }
        Statement::Counter(None) => f.write_str("counter"),
        Statement::Counter(Some(counters)) => write_counter(f, *counters),
        Statement::Named(kind, name) => {
            let word = if kind.starts_with("ct ") { "set" } else { "name" };
            write!(f, "{kind} {word} ")?;
            quoted(f, name)
        }
        Statement::Limit(limit) => write_limit(f, limit),
        Statement::Quota(quota) => write_quota(f, quota),
        Statement::Nat(nat) => write_nat(f, nat, family),
        Statement::Reject(reject) => write_reject(f, reject, family),
        Statement::Log(log) => write_log(f, log),
        Statement::Queue(queue) => {
            f.write_str("queue")?;
            if !queue.flags.is_empty() {
                f.write_str(" flags")?;
                write_words(f, &queue.flags)?;
            }
            match &queue.to {
                None => Ok(()),
                Some(to) => {
                    f.write_str(" to ")?;
                    write_expr(f, to, &[], &[], family)
                }
            }
        }
        Statement::Notrack => f.write_str("notrack"),
        Statement::Tproxy(tproxy) => {
            f.write_str("tproxy")?;
            if let Some(family) = &tproxy.family {
                write!(f, " {family}")?;
            }
            write_end(f, tproxy.address.as_ref(), tproxy.port.as_ref(), family)
        }
        Statement::Update(update) => write_update(f, update, family),
        Statement::Flow(name) => write!(f, "flow add @{name}"),
        Statement::Xt(kind, name) => {
            write!(f, "xt {kind} ")?;
            quoted(f, name)
        }
        Statement::Unknown(text) => f.write_str(text),
    }
}

fn write_match(
    f: &mut Formatter<'_>,
    left: &Expr,
    relation: Relation,
    right: &Expr,
    family: TableFamily,
) -> fmt::Result {
    let kinds = kinds(left);
    // `tcp flags syn / fin,syn,rst,ack`
    if let Expr::Binary(BinaryOp::And, sides) = left
        && has_flags(&sides.0)
        && matches!(relation, Relation::Eq | Relation::Ne)
        && matches!(right, Expr::Word(_) | Expr::List(_))
    {
        write_expr(f, &sides.0, &[], &[], family)?;
        f.write_str(if relation == Relation::Ne { " != " } else { " " })?;
        write_expr(f, right, &kinds, &[], family)?;
        f.write_str(" / ")?;
        return write_expr(f, &sides.1, &kinds, &[], family);
    }
    write_expr(f, left, &[], &[], family)?;
    let is_explicit = matches!(left, Expr::Binary(..))
        || (has_flags(left) && !matches!(right, Expr::Set(_) | Expr::SetRef(_)));
    f.write_str(match relation {
        Relation::Eq if is_explicit => " == ",
        Relation::Eq | Relation::Any => " ",
        Relation::Ne => " != ",
        Relation::None => " ! ",
        Relation::Lt => " < ",
        Relation::Gt => " > ",
        Relation::Le => " <= ",
        Relation::Ge => " >= ",
    })?;
    write_expr(f, right, &kinds, &[], family)
}

/// The form used as the key of a set: `typeof ip daddr`.
impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_expr(f, self, &[], &[], TableFamily::Inet)
    }
}

/// `kinds` gives the format of values, part by part of a concatenation; `data` the format of map
/// data.
fn write_expr(
    f: &mut Formatter<'_>,
    expr: &Expr,
    kinds: &[ValueFormat],
    data: &[ValueFormat],
    family: TableFamily,
) -> fmt::Result {
    let kind = kinds.first().copied().unwrap_or(ValueFormat::Plain);
    match expr {
        Expr::Number(number) => match kind {
            ValueFormat::Mark => write!(f, "{number:#010x}"),
            ValueFormat::Hex => write!(f, "{number:#x}"),
            ValueFormat::Plain | ValueFormat::Quoted => write!(f, "{number}"),
        },
        Expr::Address(ip) => write!(f, "{ip}"),
        Expr::Word(word) => match kind {
            ValueFormat::Quoted if !matches!(&**word, "exists" | "missing") => quoted(f, word),
            _ if is_bare(word) => f.write_str(word),
            _ => quoted(f, word),
        },
        Expr::Prefix(ip, length) => write!(f, "{ip}/{length}"),
        Expr::Range(ends) => {
            write_expr(f, &ends.0, kinds, data, family)?;
            f.write_str("-")?;
            write_expr(f, &ends.1, kinds, data, family)
        }
        Expr::Any => f.write_str("*"),
        Expr::List(all) => all.iter().enumerate().try_for_each(|(at, item)| {
            f.write_str(if at > 0 { "," } else { "" })?;
            write_expr(f, item, kinds, data, family)
        }),
        Expr::Concat(parts) => parts.iter().enumerate().try_for_each(|(at, part)| {
            f.write_str(if at > 0 { " . " } else { "" })?;
            write_expr(f, part, kinds.get(at..).unwrap_or(&[]), data, family)
        }),
        Expr::Set(elements) => {
            f.write_str("{")?;
            for (at, element) in elements.iter().enumerate() {
                f.write_str(if at > 0 { ", " } else { " " })?;
                write_element(f, element, kinds, data, family)?;
            }
            f.write_str(" }")
        }
        Expr::SetRef(name) => write!(f, "@{name}"),
        Expr::Payload(protocol, field) => write!(f, "{protocol} {field}"),
        Expr::Meta(key) => {
            f.write_str(if PRINTED_BARE.contains(key) { "" } else { "meta " })?;
            f.write_str(key)
        }
        Expr::Ct(direction, key) => {
            f.write_str("ct ")?;
            if let Some(direction) = direction {
                write!(f, "{} ", direction.as_str())?;
            }
            f.write_str(key)
        }
        Expr::Fib(fib) => {
            f.write_str(if fib.saddr { "fib saddr" } else { "fib daddr" })?;
            for (set, word) in [(fib.mark, " . mark"), (fib.iif, " . iif"), (fib.oif, " . oif")] {
                f.write_str(if set { word } else { "" })?;
            }
            f.write_str(match fib.result {
                FibResult::Type => " type",
                FibResult::Oif => " oif",
                FibResult::Oifname => " oifname",
            })
        }
        Expr::Numgen { inc, modulus, offset } => {
            write!(f, "numgen {} mod {modulus}", if *inc { "inc" } else { "random" })?;
            write_offset(f, *offset)
        }
        Expr::Hash { over, modulus, seed, offset } => {
            match over {
                None => f.write_str("symhash")?,
                Some(over) => {
                    f.write_str("jhash ")?;
                    write_expr(f, over, &[], &[], family)?;
                }
            }
            write!(f, " mod {modulus}")?;
            if let Some(seed) = seed {
                write!(f, " seed {seed:#x}")?;
            }
            write_offset(f, *offset)
        }
        Expr::Binary(op, sides) => {
            let own = [ValueFormat::of(&sides.0)];
            let own = if own[0] == ValueFormat::Plain { kinds } else { &own };
            let within =
                |side: &Expr| matches!(side, Expr::Binary(inner, _) if rank(*inner) < rank(*op));
            for (at, side) in [&sides.0, &sides.1].into_iter().enumerate() {
                if at > 0 {
                    write!(f, " {} ", op.as_str())?;
                }
                let shift = matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight);
                let own = if at > 0 && shift { &[] } else { own };
                let flags = matches!(side, Expr::List(_));
                if flags {
                    // Flags as an operand are parenthesised.
                    f.write_str("(")?;
                    if let Expr::List(all) = side {
                        for (at, item) in all.iter().enumerate() {
                            f.write_str(if at > 0 { " | " } else { "" })?;
                            write_expr(f, item, own, data, family)?;
                        }
                    }
                    f.write_str(")")?;
                } else if within(side) {
                    f.write_str("(")?;
                    write_expr(f, side, own, data, family)?;
                    f.write_str(")")?;
                } else {
                    write_expr(f, side, own, data, family)?;
                }
            }
            Ok(())
        }
        Expr::Map(sides) => {
            write_expr(f, &sides.0, &[], &[], family)?;
            f.write_str(" map ")?;
            let keys = self::kinds(&sides.0);
            write_expr(f, &sides.1, &keys, data, family)
        }
        Expr::Other(text) => f.write_str(text),
    }
}

fn rank(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 0,
        BinaryOp::Xor => 1,
        BinaryOp::And => 2,
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => 3,
    }
}

/// Whether a word needs no quotes.
fn is_bare(word: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_-/.:*+".contains(&byte);
    !word.is_empty() && word.bytes().all(inner)
}

fn write_offset(f: &mut Formatter<'_>, offset: u64) -> fmt::Result {
    if offset > 0 { write!(f, " offset {offset}") } else { Ok(()) }
}

/// In a key, several flags form one value: `fin | ack`.
fn write_key(
    f: &mut Formatter<'_>,
    key: &Expr,
    kinds: &[ValueFormat],
    family: TableFamily,
) -> fmt::Result {
    let (parts, between) = match key {
        Expr::Concat(parts) => (parts.as_slice(), " . "),
        Expr::List(flags) => (flags.as_slice(), " | "),
        _ => return write_expr(f, key, kinds, &[], family),
    };
    for (at, part) in parts.iter().enumerate() {
        f.write_str(if at > 0 { between } else { "" })?;
        let own = if between == " . " { kinds.get(at..).unwrap_or(&[]) } else { kinds };
        write_key(f, part, own, family)?;
    }
    Ok(())
}

pub(super) fn write_element(
    f: &mut Formatter<'_>,
    element: &Element,
    kinds: &[ValueFormat],
    data: &[ValueFormat],
    family: TableFamily,
) -> fmt::Result {
    write_key(f, &element.key, kinds, family)?;
    if let Some(counters) = element.counter {
        f.write_str(" ")?;
        write_counter(f, counters)?;
    }
    for statement in &element.statements {
        f.write_str(" ")?;
        write_statement(f, statement, family)?;
    }
    for (word, duration) in [(" timeout ", element.timeout), (" expires ", element.expires)] {
        if let Some(duration) = duration {
            f.write_str(word)?;
            write_duration(f, duration)?;
        }
    }
    if let Some(comment) = &element.comment {
        f.write_str(" comment ")?;
        quoted(f, comment)?;
    }
    match &element.data {
        None => Ok(()),
        Some(Data::Verdict(verdict)) => {
            f.write_str(" : ")?;
            write_verdict(f, verdict)
        }
        Some(Data::Value(value)) => {
            f.write_str(" : ")?;
            write_expr(f, value, data, &[], family)
        }
    }
}

fn write_verdict(f: &mut Formatter<'_>, verdict: &Verdict) -> fmt::Result {
    match verdict {
        Verdict::Accept => f.write_str("accept"),
        Verdict::Drop => f.write_str("drop"),
        Verdict::Continue => f.write_str("continue"),
        Verdict::Return => f.write_str("return"),
        Verdict::Jump(chain) => write!(f, "jump {chain}"),
        Verdict::Goto(chain) => write!(f, "goto {chain}"),
    }
}

fn write_counter(f: &mut Formatter<'_>, counters: Counters) -> fmt::Result {
    write!(f, "counter packets {} bytes {}", counters.packets, counters.bytes)
}

fn write_limit(f: &mut Formatter<'_>, limit: &Limit) -> fmt::Result {
    write!(f, "limit rate {}{}", if limit.over { "over " } else { "" }, limit.rate)?;
    if let Some(unit) = &limit.unit {
        write!(f, " {unit}")?;
    }
    write!(f, "/{}", limit.per)?;
    match &limit.burst {
        Some(burst) if !is_usual_burst(burst) => {
            write!(f, " burst {} {}", burst.0, burst.1.as_deref().unwrap_or("packets"))
        }
        _ => Ok(()),
    }
}

fn write_quota(f: &mut Formatter<'_>, quota: &Quota) -> fmt::Result {
    let over = if quota.over { "over " } else { "" };
    write!(f, "quota {over}{} {}", quota.amount.0, quota.amount.1)?;
    match &quota.used {
        None => Ok(()),
        Some((number, unit)) => write!(f, " used {number} {unit}"),
    }
}

fn write_nat(f: &mut Formatter<'_>, nat: &Nat, family: TableFamily) -> fmt::Result {
    f.write_str(nat.kind.as_str())?;
    if matches!(nat.kind, NatKind::Dnat | NatKind::Snat)
        && let Some(family) = &nat.family
    {
        write!(f, " {family}")?;
    }
    f.write_str(if nat.prefix { " prefix" } else { "" })?;
    write_end(f, nat.address.as_ref(), nat.port.as_ref(), family)?;
    if nat.flags.is_empty() { Ok(()) } else { write_words(f, &nat.flags) }
}

/// ` to 10.0.0.1:80`
fn write_end(
    f: &mut Formatter<'_>,
    address: Option<&Expr>,
    port: Option<&Expr>,
    family: TableFamily,
) -> fmt::Result {
    if address.is_none() && port.is_none() {
        return Ok(());
    }
    f.write_str(" to ")?;
    if let Some(address) = address {
        let v6 = |value: &Expr| matches!(value, Expr::Address(IpAddr::V6(_)));
        let brackets = port.is_some() && matches!(address, value if v6(value));
        match address {
            Expr::Range(ends) if port.is_some() && v6(&ends.0) => {
                for (at, end) in [&ends.0, &ends.1].into_iter().enumerate() {
                    f.write_str(if at > 0 { "-[" } else { "[" })?;
                    write_expr(f, end, &[], &[], family)?;
                    f.write_str("]")?;
                }
            }
            _ => {
                f.write_str(if brackets { "[" } else { "" })?;
                write_expr(f, address, &[], &[], family)?;
                f.write_str(if brackets { "]" } else { "" })?;
            }
        }
    }
    if let Some(port) = port {
        f.write_str(":")?;
        write_expr(f, port, &[], &[], family)?;
    }
    Ok(())
}

fn write_words(f: &mut Formatter<'_>, words: &[Text]) -> fmt::Result {
    words.iter().enumerate().try_for_each(|(at, word)| {
        f.write_str(if at > 0 { "," } else { " " })?;
        f.write_str(word)
    })
}

fn write_reject(f: &mut Formatter<'_>, reject: &Reject, family: TableFamily) -> fmt::Result {
    f.write_str("reject")?;
    if *reject == usual_reject(family) {
        return Ok(());
    }
    write!(f, " with {}", reject.kind.as_str())?;
    if reject.code.is_empty() { Ok(()) } else { write!(f, " {}", reject.code) }
}

fn write_log(f: &mut Formatter<'_>, log: &Log) -> fmt::Result {
    f.write_str("log")?;
    if let Some(prefix) = &log.prefix {
        f.write_str(" prefix ")?;
        quoted(f, prefix)?;
    }
    for (word, number) in ["group", "snaplen", "queue-threshold"].iter().zip(log.numbers) {
        if let Some(number) = number {
            write!(f, " {word} {number}")?;
        }
    }
    if let Some(level) = &log.level {
        write!(f, " level {level}")?;
    }
    log.flags.iter().try_for_each(|flag| write!(f, " flags {flag}"))
}

fn write_update(f: &mut Formatter<'_>, update: &SetUpdate, family: TableFamily) -> fmt::Result {
    write!(f, "{} @{} {{ ", update.op.as_str(), update.set)?;
    write_expr(f, &update.key, &[], &[], family)?;
    if let Some(timeout) = update.timeout {
        f.write_str(" timeout ")?;
        write_duration(f, timeout)?;
    }
    for statement in &update.statements {
        f.write_str(" ")?;
        write_statement(f, statement, family)?;
    }
    match &update.data {
        None => {}
        Some(Data::Verdict(verdict)) => {
            f.write_str(" : ")?;
            write_verdict(f, verdict)?;
        }
        Some(Data::Value(value)) => {
            f.write_str(" : ")?;
            // A plain number is valid for every type.
            write_expr(f, value, &[ValueFormat::Mark], &[], family)?;
        }
    }
    f.write_str(" }")
}

/// `1h30m`
pub(super) fn write_duration(f: &mut Formatter<'_>, duration: Duration) -> fmt::Result {
    let mut millis = duration.as_millis();
    if millis == 0 {
        return f.write_str("0s");
    }
    for (unit, scale) in
        [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)]
    {
        if millis >= scale {
            write!(f, "{}{unit}", millis / scale)?;
            millis %= scale;
        }
    }
    Ok(())
}
