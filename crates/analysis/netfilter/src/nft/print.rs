//! Prints tables as `nft list ruleset` does.

use std::fmt::{self, Display, Formatter, Write as _};

use uturn_model::Text;

use super::print_expr::{ValueFormat, write_duration, write_element};
use super::print_rule::{Line, write_statement};
use super::priority::priorities;
use super::{Base, Chain, Element, Flowtable, Object, Policy, Ruleset, Set, Table, TableFamily};

impl Display for Ruleset {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.tables.iter().try_for_each(|table| table.fmt(f))
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "table {} {} {{", self.family, self.name)?;
        if let Some(comment) = &self.comment {
            writeln!(f, "\tcomment \"{comment}\"")?;
        }
        if !self.flags.is_empty() {
            f.write_str("\tflags ")?;
            joined(f, &self.flags)?;
            f.write_str("\n")?;
        }
        let mut first = true;
        let mut gap = |f: &mut Formatter<'_>| {
            let gap = if std::mem::take(&mut first) { "" } else { "\n" };
            f.write_str(gap)
        };
        for object in &self.objects {
            gap(f)?;
            write_object(f, object)?;
        }
        for set in &self.sets {
            gap(f)?;
            write_set(f, set, self.family)?;
        }
        for flowtable in &self.flowtables {
            gap(f)?;
            write_flowtable(f, flowtable, self.family)?;
        }
        for chain in &self.chains {
            gap(f)?;
            write_chain(f, chain, self.family)?;
        }
        f.write_str("}\n")
    }
}

fn joined(f: &mut Formatter<'_>, words: &[Text]) -> fmt::Result {
    for (at, word) in words.iter().enumerate() {
        f.write_str(if at > 0 { "," } else { "" })?;
        f.write_str(word)?;
    }
    Ok(())
}

fn write_object(f: &mut Formatter<'_>, object: &Object) -> fmt::Result {
    writeln!(f, "\t{} {} {{", object.kind, object.name)?;
    for line in &object.body {
        writeln!(f, "\t\t{line}")?;
    }
    f.write_str("\t}\n")
}

fn write_flowtable(
    f: &mut Formatter<'_>,
    flowtable: &Flowtable,
    family: TableFamily,
) -> fmt::Result {
    writeln!(f, "\tflowtable {} {{", flowtable.name)?;
    f.write_str("\t\thook ingress ")?;
    write_priority(f, family, super::BaseHook::Ingress, flowtable.priority)?;
    f.write_str("\n")?;
    if !flowtable.devices.is_empty() {
        f.write_str("\t\tdevices = { ")?;
        for (at, device) in flowtable.devices.iter().enumerate() {
            write!(f, "{}{device}", if at > 0 { ", " } else { "" })?;
        }
        f.write_str(" }\n")?;
    }
    for line in &flowtable.lines {
        writeln!(f, "\t\t{line}")?;
    }
    f.write_str("\t}\n")
}

fn write_set(f: &mut Formatter<'_>, set: &Set, family: TableFamily) -> fmt::Result {
    let kind = if set.data.is_some() { "map" } else { "set" };
    writeln!(f, "\t{kind} {} {{", set.name)?;
    let parts = |f: &mut Formatter<'_>, all: &[Text]| {
        all.iter()
            .enumerate()
            .try_for_each(|(at, part)| write!(f, "{}{part}", if at > 0 { " . " } else { "" }))
    };
    f.write_str(if set.typeof_key || set.typeof_data { "\t\ttypeof " } else { "\t\ttype " })?;
    parts(f, &set.key)?;
    if let Some(data) = &set.data {
        f.write_str(" : ")?;
        parts(f, data)?;
    }
    f.write_str("\n")?;
    if let Some(policy) = &set.policy {
        writeln!(f, "\t\tpolicy {policy}")?;
    }
    if let Some(size) = set.size {
        writeln!(f, "\t\tsize {size}")?;
    }
    if !set.flags.is_empty() {
        f.write_str("\t\tflags ")?;
        joined(f, &set.flags)?;
        f.write_str("\n")?;
    }
    for (word, duration) in [("timeout", set.timeout), ("gc-interval", set.gc_interval)] {
        if let Some(duration) = duration {
            write!(f, "\t\t{word} ")?;
            write_duration(f, duration)?;
            f.write_str("\n")?;
        }
    }
    if set.auto_merge {
        f.write_str("\t\tauto-merge\n")?;
    }
    for statement in &set.statements {
        f.write_str("\t\t")?;
        write_statement(f, statement, family)?;
        f.write_str("\n")?;
    }
    if let Some(comment) = &set.comment {
        writeln!(f, "\t\tcomment \"{comment}\"")?;
    }
    write_elements(f, set, family)?;
    f.write_str("\t}\n")
}

fn write_elements(f: &mut Formatter<'_>, set: &Set, family: TableFamily) -> fmt::Result {
    if set.elements.is_empty() {
        return Ok(());
    }
    let (keys, data) = formats(set);
    let a_line = match set.key.as_slice() {
        [part] if !set.typeof_key => match &**part {
            "ipv4_addr" | "ether_addr" | "mark" => 2,
            "inet_service" | "inet_proto" | "integer" | "icmp_type" | "icmpv6_type" => 5,
            _ => 1,
        },
        _ => 1,
    };
    f.write_str("\t\telements = { ")?;
    for (at, element) in set.elements.iter().enumerate() {
        f.write_str(match at {
            0 => "",
            _ if at % a_line == 0 => ",\n\t\t\t     ",
            _ => ", ",
        })?;
        write_element(f, element, &keys, &data, family)?;
    }
    f.write_str(" }\n")
}

fn write_chain(f: &mut Formatter<'_>, chain: &Chain, family: TableFamily) -> fmt::Result {
    writeln!(f, "\tchain {} {{", chain.name)?;
    if let Some(comment) = &chain.comment {
        writeln!(f, "\t\tcomment \"{comment}\"")?;
    }
    if let Some(base) = &chain.base {
        write_base(f, base, family)?;
    }
    for rule in &chain.rules {
        writeln!(f, "\t\t{}", Line { rule, family })?;
    }
    f.write_str("\t}\n")
}

fn write_base(f: &mut Formatter<'_>, base: &Base, family: TableFamily) -> fmt::Result {
    write!(f, "\t\ttype {} hook {} ", base.kind.as_str(), base.hook.as_str())?;
    match base.devices.as_slice() {
        [] => {}
        [device] => write!(f, "device \"{device}\" ")?,
        all => {
            f.write_str("devices = { ")?;
            for (at, device) in all.iter().enumerate() {
                write!(f, "{}\"{device}\"", if at > 0 { ", " } else { "" })?;
            }
            f.write_str(" } ")?;
        }
    }
    write_priority(f, family, base.hook, base.priority)?;
    let policy = if base.policy == Policy::Drop { "drop" } else { "accept" };
    writeln!(f, "; policy {policy};")
}

/// By name if a named priority is near.
fn write_priority(
    f: &mut Formatter<'_>,
    family: TableFamily,
    hook: super::BaseHook,
    priority: i32,
) -> fmt::Result {
    f.write_str("priority ")?;
    let near = |(_, base): &&(&str, i32)| (i64::from(priority) - i64::from(*base)).abs() <= 10;
    match priorities(family, hook).iter().find(near) {
        None => write!(f, "{priority}"),
        Some((name, base)) => {
            f.write_str(name)?;
            match priority - base {
                0 => Ok(()),
                more @ 1.. => write!(f, " + {more}"),
                less => {
                    f.write_str(" - ")?;
                    f.write_fmt(format_args!("{}", -less))
                }
            }
        }
    }
}

/// A quoted string.
pub(super) fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    f.write_str(text)?;
    f.write_char('"')
}

impl Set {
    /// An element of it, as `nft list ruleset` prints it in a table of `family`.
    pub fn line<'a>(&'a self, element: &'a Element, family: TableFamily) -> impl Display + 'a {
        ElementLine { set: self, element, family }
    }
}

struct ElementLine<'a> {
    set: &'a Set,
    element: &'a Element,
    family: TableFamily,
}

impl Display for ElementLine<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (keys, data) = formats(self.set);
        write_element(f, self.element, &keys, &data, self.family)
    }
}

/// Returns the formats in which the parts of a set's keys and data are printed.
fn formats(set: &Set) -> (Vec<ValueFormat>, Vec<ValueFormat>) {
    let keys = set.key.iter().map(|part| ValueFormat::of_type(part)).collect();
    (keys, set.data.iter().flatten().map(|part| ValueFormat::of_type(part)).collect())
}
