//! Commands other than `-A` that `iptables-restore` accepts between `*TABLE` and `COMMIT`.

use uturn_model::{Family, Origin};

use super::rule::{self, Fault, Scratch};
use super::table_builder::TableBuilder;
use super::token::Token;
use super::{BUILT_IN, Chain, Counters, Policy, Rule, TableKind};

/// A command by its name, short or long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Append,
    Insert,
    Replace,
    Delete,
    Check,
    New,
    Flush,
    DeleteChain,
    Rename,
    Policy,
    /// A command that only lists rules or resets counters.
    Idle,
}

impl Command {
    pub(super) fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "-A" | "--append" => Self::Append,
            "-I" | "--insert" => Self::Insert,
            "-R" | "--replace" => Self::Replace,
            "-D" | "--delete" => Self::Delete,
            "-C" | "--check" => Self::Check,
            "-N" | "--new-chain" | "--new" => Self::New,
            "-F" | "--flush" => Self::Flush,
            "-X" | "--delete-chain" => Self::DeleteChain,
            "-E" | "--rename-chain" => Self::Rename,
            "-P" | "--policy" => Self::Policy,
            "-Z" | "--zero" | "-L" | "--list" | "-S" | "--list-rules" => Self::Idle,
            _ => return None,
        })
    }

    /// Whether a rule specification follows.
    pub(super) fn has_rule(self) -> bool {
        matches!(self, Self::Append | Self::Insert | Self::Replace | Self::Delete | Self::Check)
    }
}

/// The context in which rules are parsed.
pub(super) struct Setting<'s> {
    pub(super) family: Family,
    pub(super) origin: Origin,
    pub(super) counted: Option<Counters>,
    pub(super) scratch: &'s mut Scratch,
}

/// Executes a command on a chain. `words` starts with the command.
pub(super) fn about_chain<'a>(
    open: &mut TableBuilder<'a>,
    command: Command,
    words: &[Token<'a>],
    origin: Origin,
) -> Result<(), Fault> {
    open.flush();
    let (first, rest) = words.split_first().ok_or((1, "found no command".to_owned()))?;
    let wanted = |form: &str| {
        let found: Vec<&str> = words.iter().map(|word| &*word.text).collect();
        Err((first.column, format!("found {:?}, expected {} {form}", found.join(" "), first.text)))
    };
    match (command, rest) {
        (Command::Idle, _) => Ok(()),
        (Command::Flush, []) => {
            open.empty_all();
            Ok(())
        }
        (Command::Flush, [name]) => {
            let at = there(open, name)?;
            open.table.chains[at].rules.clear();
            Ok(())
        }
        (Command::DeleteChain, []) => {
            delete_unused(open);
            Ok(())
        }
        (Command::DeleteChain, [name]) => {
            let at = there(open, name)?;
            match users(open, &name.text) {
                0 => open.delete(at),
                count => {
                    let message = format!(
                        "chain {} is in use: {count} of this table's rules lead to it",
                        name.text
                    );
                    return Err((name.column, message));
                }
            }
            Ok(())
        }
        (Command::New, [name]) => {
            if open.names.find(&name.text).is_some() || is_built_in(open.table.kind, &name.text) {
                return Err((name.column, format!("chain {} is there already", name.text)));
            }
            open.declare(&name.text, None, Counters::default(), origin);
            Ok(())
        }
        (Command::Rename, [from, to]) => rename(open, from, to),
        (Command::Policy, [name, policy]) => {
            let at = find(open, name, &origin)?;
            let policy = match &*policy.text {
                "ACCEPT" => Policy::Accept,
                "DROP" => Policy::Drop,
                other => {
                    let message = format!("found policy {other:?}, expected ACCEPT or DROP");
                    return Err((policy.column, message));
                }
            };
            let chain = &mut open.table.chains[at];
            if chain.policy.is_none() {
                let message = format!("chain {} is no built-in one: it has no policy", name.text);
                return Err((name.column, message));
            }
            chain.policy = Some(policy);
            Ok(())
        }
        (Command::Flush | Command::DeleteChain | Command::New, _) => wanted("CHAIN"),
        (Command::Rename, _) => wanted("CHAIN NEW-NAME"),
        (Command::Policy, _) => wanted("CHAIN ACCEPT|DROP"),
        _ => wanted("CHAIN RULE"),
    }
}

/// Executes a command on a rule, given by specification or number, other than `-A`.
pub(super) fn about_rule<'a>(
    open: &mut TableBuilder<'a>,
    command: Command,
    words: &[Token<'a>],
    setting: Setting<'_>,
) -> Result<(), Fault> {
    open.flush();
    let [first, name, rest @ ..] = words else {
        let word = words.first();
        let (column, found) = word.map_or((1, ""), |word| (word.column, &*word.text));
        return Err((column, format!("found {found}, expected a chain after it")));
    };
    let at = find(open, name, &setting.origin)?;
    let number = rest.first().and_then(|word| Some((word, word.text.parse::<usize>().ok()?)));
    let rest = if number.is_some() { &rest[1..] } else { rest };
    let count = open.table.chains[at].rules.len();
    let place = match number {
        None => None,
        Some((word, number)) => {
            let most = count + usize::from(command == Command::Insert);
            if number == 0 || number > most {
                let message = format!(
                    "found rule {number} of chain {}, which has {count}: expected 1 to {most}",
                    name.text
                );
                return Err((word.column, message));
            }
            Some(number - 1)
        }
    };
    if let (Command::Delete, Some(place), []) = (command, place, rest) {
        open.table.chains[at].rules.remove(place);
        return Ok(());
    }
    let mut rule = Rule::new(setting.origin);
    let jump = rule::rule(rest, setting.family, &open.names, &mut rule, setting.scratch)?;
    if let Some(jump) = jump {
        open.names
            .find_all(&[((), jump)], |(), name| rule.target = Some(super::Target::Jump(name)));
    }
    rule.counters = setting.counted.map(Box::new);
    let rules = &mut open.table.chains[at].rules;
    match (command, place) {
        (Command::Insert, place) => rules.insert(place.unwrap_or(0), rule),
        (Command::Replace, Some(place)) => rules[place] = rule,
        (Command::Delete | Command::Check, None) => {
            let same = |candidate: &Rule| {
                let bare = |rule: &Rule| Rule { counters: None, ..rule.clone() };
                bare(candidate) == bare(&rule)
            };
            let Some(place) = rules.iter().position(same) else {
                let message = format!("chain {} has no such rule", name.text);
                return Err((first.column, message));
            };
            if command == Command::Delete {
                rules.remove(place);
            }
        }
        _ => {
            return Err((
                first.column,
                format!("found {}, expected {} CHAIN NUMBER RULE", first.text, first.text),
            ));
        }
    }
    Ok(())
}

/// The built-in chains of a table.
pub(super) fn is_built_in(table: TableKind, name: &str) -> bool {
    let all: &[&str] = match table {
        TableKind::Raw => &["PREROUTING", "OUTPUT"],
        TableKind::Mangle => &BUILT_IN,
        TableKind::Nat => &["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
        TableKind::Filter | TableKind::Security => &["INPUT", "FORWARD", "OUTPUT"],
    };
    all.contains(&name)
}

/// Looks up a chain that must exist.
fn there(open: &TableBuilder<'_>, name: &Token<'_>) -> Result<usize, Fault> {
    open.names
        .find(&name.text)
        .ok_or_else(|| (name.column, format!("chain {} is not in this table", name.text)))
}

/// Looks up a chain; a built-in chain exists even if it is not declared.
fn find(open: &mut TableBuilder<'_>, name: &Token<'_>, origin: &Origin) -> Result<usize, Fault> {
    if open.names.find(&name.text).is_none() && is_built_in(open.table.kind, &name.text) {
        let policy = Some(Policy::Accept);
        return Ok(open.declare(&name.text, policy, Counters::default(), origin.clone()));
    }
    there(open, name)
}

/// The number of rules that jump to a chain.
fn users(open: &TableBuilder<'_>, name: &str) -> usize {
    let rules = open.table.chains.iter().flat_map(|chain| &chain.rules);
    rules.filter(|rule| leads_to(rule).is_some_and(|to| to == name)).count()
}

fn leads_to(rule: &Rule) -> Option<&str> {
    match &rule.target {
        Some(super::Target::Jump(to) | super::Target::Goto(to)) => Some(to),
        _ => None,
    }
}

/// `-X` without a chain: deletes empty chains that no rule refers to.
fn delete_unused(open: &mut TableBuilder<'_>) {
    for at in 0..open.table.chains.len() {
        let Chain { name, policy, rules, .. } = &open.table.chains[at];
        let free = policy.is_none() && rules.is_empty() && open.names.is_there(at);
        if free && users(open, name) == 0 {
            open.delete(at);
        }
    }
}

fn rename(open: &mut TableBuilder<'_>, from: &Token<'_>, to: &Token<'_>) -> Result<(), Fault> {
    let at = there(open, from)?;
    if open.names.find(&to.text).is_some() {
        return Err((to.column, format!("chain {} is there already", to.text)));
    }
    let Chain { policy, counters, origin, .. } = open.table.chains[at].clone();
    let new = open.declare(&to.text, policy, counters, origin);
    open.table.chains[new].rules = std::mem::take(&mut open.table.chains[at].rules);
    let name = open.table.chains[new].name.clone();
    for rule in open.table.chains.iter_mut().flat_map(|chain| &mut chain.rules) {
        if let Some(super::Target::Jump(chain) | super::Target::Goto(chain)) = &mut rule.target
            && **chain == *from.text
        {
            *chain = name.clone();
        }
    }
    open.delete(at);
    Ok(())
}
