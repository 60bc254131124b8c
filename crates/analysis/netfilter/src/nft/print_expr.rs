//! Prints expressions, elements and verdicts as `nft list ruleset` does.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use super::expr::PRINTED_BARE;
use super::print::quoted;
use super::print_rule::write_statement;
use super::{BinaryOp, Counters, Data, Element, Expr, FibResult, TableFamily, Verdict};

/// The format in which values of a type are written.
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

pub(super) fn kinds(expr: &Expr) -> Vec<ValueFormat> {
    match expr {
        Expr::Concat(parts) => parts.iter().map(ValueFormat::of).collect(),
        single => vec![ValueFormat::of(single)],
    }
}

/// The form used as the key of a set: `typeof ip daddr`.
impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_expr(f, self, &[], &[], TableFamily::Inet)
    }
}

/// `kinds` gives the format of values, part by part of a concatenation; `data` the format of map
/// data.
pub(super) fn write_expr(
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

pub(super) fn write_verdict(f: &mut Formatter<'_>, verdict: &Verdict) -> fmt::Result {
    match verdict {
        Verdict::Accept => f.write_str("accept"),
        Verdict::Drop => f.write_str("drop"),
        Verdict::Continue => f.write_str("continue"),
        Verdict::Return => f.write_str("return"),
        Verdict::Jump(chain) => write!(f, "jump {chain}"),
        Verdict::Goto(chain) => write!(f, "goto {chain}"),
    }
}

pub(super) fn write_counter(f: &mut Formatter<'_>, counters: Counters) -> fmt::Result {
    write!(f, "counter packets {} bytes {}", counters.packets, counters.bytes)
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
