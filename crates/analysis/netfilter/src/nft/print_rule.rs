//! Prints rules as `nft list ruleset` does.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use uturn_model::Text;

use super::expr::has_flags;
use super::print::quoted;
use super::print_expr::{
    ValueFormat, kinds, write_counter, write_duration, write_expr, write_verdict,
};
use super::read_statement::{is_usual_burst, usual_reject};
use super::{
    BinaryOp, Data, Expr, Limit, Log, Nat, NatKind, Quota, Reject, Relation, Rule, SetUpdate,
    Statement, TableFamily,
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
