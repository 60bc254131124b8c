//! Priorities of base chains and their names.

use super::lex::{Lexer, Parsed};
use super::{BaseHook, TableFamily};

/// `priority dstnat - 10`
pub(super) fn priority(lexer: &mut Lexer<'_>, family: TableFamily, hook: BaseHook) -> Parsed<i32> {
    if !lexer.take("priority") {
        return Err(lexer.wanted("`priority`"));
    }
    let number = |lexer: &mut Lexer<'_>| {
        let wanted = || lexer.wanted("a priority, such as `-110` or `filter + 5`");
        let number: i32 = lexer.word().parse().map_err(|_| wanted())?;
        lexer.advance();
        Ok(number)
    };
    let word = lexer.word();
    let is_name = word.starts_with(|first: char| first.is_ascii_alphabetic());
    if !is_name {
        return number(lexer);
    }
    let mut named = priorities(family, hook).iter().chain(newer_priorities(family, hook));
    let Some((_, base)) = named.find(|(name, _)| *name == word) else {
        let all = priorities(family, hook).iter().chain(newer_priorities(family, hook));
        let all: Vec<String> = all.map(|(name, _)| format!("`{name}`")).collect();
        let hook = hook.as_str();
        let what = format!(
            "a number or a priority of the hook {hook} in a table of {family}: {}",
            all.join(", ")
        );
        return Err(lexer.wanted(&what));
    };
    lexer.advance();
    match lexer.word() {
        "+" => {
            lexer.advance();
            Ok(base.saturating_add(number(lexer)?))
        }
        "-" => {
            lexer.advance();
            Ok(base.saturating_sub(number(lexer)?))
        }
        _ => Ok(*base),
    }
}

/// The named priorities of a hook that every release accepts.
pub(super) fn priorities(family: TableFamily, hook: BaseHook) -> &'static [(&'static str, i32)] {
    match (family, hook) {
        (TableFamily::Bridge, BaseHook::Prerouting) => &[("filter", -200), ("dstnat", -300)],
        (TableFamily::Bridge, BaseHook::Output) => &[("filter", -200), ("out", 100)],
        (TableFamily::Bridge, BaseHook::Postrouting) => &[("filter", -200), ("srcnat", 300)],
        (TableFamily::Bridge, _) => &[("filter", -200)],
        (TableFamily::Arp | TableFamily::Netdev, _) => &[("filter", 0)],
        (_, BaseHook::Prerouting) => {
            &[("filter", 0), ("raw", -300), ("mangle", -150), ("dstnat", -100), ("security", 50)]
        }
        (_, BaseHook::Postrouting) => {
            &[("filter", 0), ("raw", -300), ("mangle", -150), ("srcnat", 100), ("security", 50)]
        }
        _ => &[("filter", 0), ("raw", -300), ("mangle", -150), ("security", 50)],
    }
}

/// The named priorities that only releases from 1.0.8 on know.
fn newer_priorities(family: TableFamily, hook: BaseHook) -> &'static [(&'static str, i32)] {
    match (family, hook) {
        (TableFamily::Arp | TableFamily::Bridge | TableFamily::Netdev, _) => &[],
        (_, BaseHook::Output) => &[("dstnat", -100)],
        (_, BaseHook::Input) => &[("srcnat", 100)],
        _ => &[],
    }
}
