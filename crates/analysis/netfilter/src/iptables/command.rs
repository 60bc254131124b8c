//! Commands other than `-A` that `iptables-restore` accepts between `*TABLE` and `COMMIT`.

use uturn_model::{Family, Origin};

use super::allowance::Allowance;
use super::rule::{self, Fault, Scratch};
use super::table_builder::TableBuilder;
use super::token::{self, Token};
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
    pub(super) allowance: &'s mut Allowance,
}

/// Executes a command on a chain. `words` starts with the command.
pub(super) fn about_chain<'a>(
    open: &mut TableBuilder<'a>,
    command: Command,
    words: &[Token<'a>],
    setting: Setting<'_>,
) -> Result<(), Fault> {
    let Setting { origin, allowance, .. } = setting;
    open.flush();
    let (first, rest) = words.split_first().ok_or((1, "found no command".to_owned()))?;
    let mut spend = |steps: usize| allowance.spend(steps).map_err(|why| (first.column, why));
    let wanted = |form: &str| {
        let found: Vec<&str> = words.iter().map(|word| &*word.text).collect();
        Err((first.column, format!("found {:?}, expected {} {form}", found.join(" "), first.text)))
    };
    match (command, rest) {
        (Command::Idle, _) => Ok(()),
        (Command::Flush, []) => {
            spend(open.table.chains.len())?;
            open.empty_all();
            Ok(())
        }
        (Command::Flush, [name]) => {
            let at = there(open, name)?;
            open.table.chains[at].rules.clear();
            Ok(())
        }
        (Command::DeleteChain, []) => {
            spend(size(open))?;
            delete_all(open).map_err(|message| (first.column, message))
        }
        (Command::DeleteChain, [name]) => {
            let at = there(open, name)?;
            spend(size(open))?;
            let users = users(open, &name.text);
            if users > 0 {
                let message = format!(
                    "chain {} is in use: {users} of this table's rules lead to it",
                    name.text
                );
                return Err((name.column, message));
            }
            deletable(&open.table.chains[at]).map_err(|message| (name.column, message))?;
            open.delete(at);
            Ok(())
        }
        (Command::New, [name]) => {
            new_name(name)?;
            if open.names.find(&name.text).is_some() || is_built_in(open.table.kind, &name.text) {
                return Err((name.column, format!("chain {} is there already", name.text)));
            }
            open.declare(&name.text, None, Counters::default(), origin);
            Ok(())
        }
        (Command::Rename, [from, to]) => {
            spend(size(open))?;
            rename(open, from, to)
        }
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
                let message =
                    format!("chain {} is not a built-in one: it has no policy", name.text);
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
    // Rules behind the place are moved; without a place, all may be compared.
    setting.allowance.spend(count).map_err(|why| (first.column, why))?;
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
            let Some(place) = rules.iter().position(|known| known.asks_the_same(&rule)) else {
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

/// Checks the name of a new chain.
fn new_name(name: &Token<'_>) -> Result<(), Fault> {
    if token::is_plain(&name.text) && !name.text.starts_with(['-', '!']) {
        return Ok(());
    }
    Err((name.column, format!("no chain can have the name {:?}", name.text)))
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

/// The number of chains and rules of a table.
fn size(open: &TableBuilder<'_>) -> usize {
    open.table.chains.iter().map(|chain| 1 + chain.rules.len()).sum()
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

/// Whether a chain that is not in use may be deleted.
fn deletable(chain: &Chain) -> Result<(), String> {
    let Chain { name, policy, rules, .. } = chain;
    match (policy, rules.len()) {
        (Some(_), _) => Err(format!("chain {name} is built in, it cannot be deleted")),
        (None, 0) => Ok(()),
        (None, count) => Err(format!("chain {name} has {count} rules: flush it first")),
    }
}

/// `-X` without a chain: deletes all chains that are not built in. Each must be empty and unused.
fn delete_all(open: &mut TableBuilder<'_>) -> Result<(), String> {
    let own = |open: &TableBuilder<'_>, at: usize| {
        open.names.is_there(at) && open.table.chains[at].policy.is_none()
    };
    for (at, chain) in open.table.chains.iter().enumerate() {
        if own(open, at) {
            deletable(chain)?;
        }
        let used = chain.rules.iter().filter_map(leads_to).find_map(|to| {
            let user = &chain.name;
            open.names
                .find(to)
                .is_some_and(|at| own(open, at))
                .then(|| format!("chain {to} is in use: rules of chain {user} lead to it"))
        });
        used.map_or(Ok(()), Err)?;
    }
    for at in 0..open.table.chains.len() {
        if own(open, at) {
            open.delete(at);
        }
    }
    Ok(())
}

fn rename(open: &mut TableBuilder<'_>, from: &Token<'_>, to: &Token<'_>) -> Result<(), Fault> {
    let at = there(open, from)?;
    new_name(to)?;
    if open.names.find(&to.text).is_some() {
        return Err((to.column, format!("chain {} is there already", to.text)));
    }
    let Chain { policy, counters, ref origin, .. } = open.table.chains[at];
    if policy.is_some() {
        return Err((from.column, format!("chain {} is built in, it keeps its name", from.text)));
    }
    let origin = origin.clone();
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
