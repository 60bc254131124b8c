//! Small changes of texts of lines and words. Most of the changed texts can still be read, so that
//! failures occur behind the parsers.

use uturn_dice::Dice;

use super::blocks::{block, indent, is_item, lines};
use super::input::Input;
use super::tokens::{Form, Token, tokens};

/// The largest length of a file after copying.
const LONGEST: usize = 1 << 16;

/// The largest number of copies of one block.
const COPIES: usize = 24;

/// Numbers that cause failures more often than others.
const NUMBERS: [&str; 10] =
    ["0", "1", "2", "80", "443", "30080", "65535", "65536", "4294967296", "18446744073709551615"];

/// Changes one file of an input, if a file is a text.
pub(super) fn edit(input: &mut Input, dice: &mut Dice) {
    let texts: Vec<usize> = (0..input.files.len())
        .filter(|at| std::str::from_utf8(&input.files[*at].1).is_ok_and(|text| !text.is_empty()))
        .collect();
    if texts.is_empty() {
        return;
    }
    let at = dice.choose(&texts);
    let text = |at: usize| std::str::from_utf8(&input.files[at].1).unwrap_or_default();
    let other = text(dice.choose(&texts));
    let changed = match dice.below(16) {
        0..5 => swap_value(text(at), other, dice),
        5..9 => change_value(text(at), dice),
        9..11 => remove_block(text(at), dice),
        11 => move_block(text(at), dice),
        12..14 => remove_entry(text(at), dice),
        _ => copy_block(text(at), dice),
    };
    if let Some(changed) = changed {
        input.files[at].1 = changed.into_bytes();
    }
}

/// Returns a value of another text that can replace a token: it has the same form and, unless it is
/// a number or an address, the same key.
pub(super) fn value_like<'o>(
    text: &str,
    token: &Token,
    other: &'o str,
    dice: &mut Dice,
) -> Option<&'o str> {
    let key = &text[token.key.clone()];
    let is_free = matches!(token.form, Form::V4 | Form::V6);
    let is_like = |own: &Token| {
        own.form == token.form && (is_free || other[own.key.clone()] == *key || dice.once_in(40))
    };
    let like: Vec<Token> = tokens(other).into_iter().filter(is_like).collect();
    (!like.is_empty()).then(|| &other[dice.pick(&like).at.clone()])
}

/// Replaces a value by another value of the input.
fn swap_value(text: &str, other: &str, dice: &mut Dice) -> Option<String> {
    let token = any_token(text, dice)?;
    let value = value_like(text, &token, other, dice)?;
    Some(replaced(text, &token, value))
}

/// Changes a value to a new one. A word is changed seldom: most words are of a known set.
fn change_value(text: &str, dice: &mut Dice) -> Option<String> {
    let may_be_word = dice.once_in(6);
    let token = any_token(text, dice).filter(|own| may_be_word || own.form != Form::Word)?;
    let old = &text[token.at.clone()];
    let new = match token.form {
        Form::Number => number_near(old, dice),
        Form::V4 => v4_near(old, dice),
        Form::V6 => format!("fd00::{:x}", dice.below(1 << 16)),
        Form::Switch => (old != "true").to_string(),
        Form::Word => match dice.below(4) {
            0 => old.to_ascii_uppercase(),
            1 => old.chars().rev().collect(),
            2 => old[..old.len() - 1].to_owned(),
            _ => format!("{old}-2"),
        },
    };
    Some(replaced(text, &token, &new))
}

fn any_token(text: &str, dice: &mut Dice) -> Option<Token> {
    let all = tokens(text);
    (!all.is_empty()).then(|| dice.pick(&all).clone())
}

fn replaced(text: &str, token: &Token, value: &str) -> String {
    [&text[..token.at.start], value, &text[token.at.end..]].concat()
}

fn number_near(old: &str, dice: &mut Dice) -> String {
    let number = old.parse::<u64>().unwrap_or_default();
    match dice.below(8) {
        0..3 => number.saturating_add(1).to_string(),
        3..5 => number.saturating_sub(1).to_string(),
        5 => dice.choose(&NUMBERS).to_owned(),
        _ => dice.below(1 << 16).to_string(),
    }
}

fn v4_near(old: &str, dice: &mut Dice) -> String {
    let bits = old.parse::<std::net::Ipv4Addr>().map_or(0, u32::from);
    let changed = match dice.below(3) {
        0 => bits.wrapping_add(1),
        1 => bits ^ (1 << dice.below(32)),
        _ => bits ^ (dice.below(256) as u32),
    };
    std::net::Ipv4Addr::from(changed).to_string()
}

/// Removes a block that is not long.
fn remove_block(text: &str, dice: &mut Dice) -> Option<String> {
    let lines = lines(text);
    let block = block(&lines, dice.below(lines.len()));
    let is_short = block.len() <= lines.len().div_ceil(4);
    is_short.then(|| [&lines[..block.start], &lines[block.end..]].concat().concat())
}

/// Moves a block before another one of the same indentation.
fn move_block(text: &str, dice: &mut Dice) -> Option<String> {
    let mut lines = lines(text);
    let first = dice.below(lines.len());
    let block = block(&lines, first);
    let moved: Vec<&str> = lines.drain(block).collect();
    let beside: Vec<usize> = (0..lines.len())
        .filter(|at| {
            indent(lines[*at]) == indent(moved[0]) && is_item(lines[*at]) == is_item(moved[0])
        })
        .collect();
    let to = if beside.is_empty() { first.min(lines.len()) } else { dice.choose(&beside) };
    lines.splice(to..to, moved);
    Some(lines.concat())
}

/// Removes an entry of a list or map that is written on one line.
fn remove_entry(text: &str, dice: &mut Dice) -> Option<String> {
    let commas: Vec<usize> = text.match_indices(", ").map(|(at, _)| at).collect();
    if commas.is_empty() {
        return None;
    }
    let from = dice.choose(&commas);
    let rest = &text[from + 2..];
    let mut depth = 0_usize;
    let is_end = |c: char| match c {
        '{' | '[' => {
            depth += 1;
            false
        }
        '}' | ']' if depth > 0 => {
            depth -= 1;
            false
        }
        '}' | ']' | '\n' => true,
        ',' => depth == 0,
        _ => false,
    };
    let length = rest.find(is_end)?;
    Some([&text[..from], &rest[length..]].concat())
}

/// Repeats an item of a list, a rule, or a document, mostly under other names and addresses.
fn copy_block(text: &str, dice: &mut Dice) -> Option<String> {
    let lines = lines(text);
    let can_repeat = |line: &str| is_item(line) || !line.contains(':') && !line.trim().is_empty();
    let firsts: Vec<usize> = (0..lines.len()).filter(|at| can_repeat(lines[*at])).collect();
    if firsts.is_empty() {
        return None;
    }
    let block = block(&lines, dice.choose(&firsts));
    let copied = lines[block.clone()].concat();
    let most = if dice.once_in(24) { COPIES } else { 1 };
    let room = LONGEST.saturating_sub(text.len()) / copied.len().max(1);
    let times = room.min(dice.between(1, most));
    let is_same = dice.once_in(4);
    let copies: String = (1..=times)
        .map(|number| if is_same { copied.clone() } else { renamed(&copied, number) })
        .collect();
    Some([&lines[..block.end].concat(), &*copies, &lines[block.end..].concat()].concat())
}

/// Returns a text with other names, addresses and ports of nodes.
fn renamed(text: &str, number: usize) -> String {
    let mut renamed = String::with_capacity(text.len() + 64);
    let mut from = 0;
    for token in tokens(text) {
        let old = &text[token.at.clone()];
        let new = match (token.form, &text[token.key.clone()]) {
            (Form::Word, "name") => format!("{old}-{number}"),
            (Form::V4, _) => {
                let bits = old.parse::<std::net::Ipv4Addr>().map_or(0, u32::from);
                std::net::Ipv4Addr::from(bits.wrapping_add(number as u32)).to_string()
            }
            (Form::Number, "nodePort" | "hostPort") => {
                (old.parse::<u64>().unwrap_or_default().saturating_add(number as u64)).to_string()
            }
            _ => continue,
        };
        renamed.push_str(&text[from..token.at.start]);
        renamed.push_str(&new);
        from = token.at.end;
    }
    renamed + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "- {name: web, ip: 10.0.0.1, ports: [{nodePort: 30080}, {port: 80}]}\n- {name: b}\n";

    #[test]
    fn copies_have_names_and_addresses_of_their_own() {
        let copy = renamed(TEXT, 2);
        let expected = "- {name: web-2, ip: 10.0.0.3, ports: [{nodePort: 30082}, {port: 80}]}\n";
        assert_eq!(copy, format!("{expected}- {{name: b-2}}\n"));
    }

    #[test]
    fn an_entry_goes_with_all_that_is_in_it() {
        let removed = |seed| remove_entry(TEXT, &mut Dice::new(seed)).unwrap();
        let all: std::collections::BTreeSet<String> = (0..50).map(removed).collect();
        assert!(all.iter().all(|text| text.matches('{').count() == text.matches('}').count()));
        assert!(all.contains("- {name: web, ip: 10.0.0.1}\n- {name: b}\n"), "{all:?}");
    }

    #[test]
    fn an_edit_changes_little() {
        let input = Input { arguments: Vec::new(), files: vec![("a".into(), TEXT.into())] };
        let edited = |seed| {
            let mut input = input.clone();
            edit(&mut input, &mut Dice::new(seed));
            input.files.remove(0).1
        };
        let all: Vec<Vec<u8>> = (0..400).map(edited).collect();
        assert!(all.iter().filter(|text| ***text != *TEXT.as_bytes()).count() > 250);
        assert!(all.iter().all(|text| text.len() < 4096));
    }
}
