//! nftables rules, as `nft list ruleset` prints them, in text or in JSON (`nft -j`).
//!
//! [`parse`] reads either form into one model, a [`Ruleset`], whose `Display` prints text that
//! `nft -f` loads and `nft list ruleset` would print again. Statements that are not modelled are
//! kept as written ([`Statement::Unknown`], [`Statement::Xt`]), and so are expressions
//! ([`Expr::Other`]). A rule is never read as if it lacked such a condition.
//!
//! An anonymous chain (`jump { … }`) gets a name made of `__chain` and its place. A rule whose
//! first condition nft could not print, and which therefore starts like a comment, is read as a
//! rule.
//!
//! The JSON of nft 1.0 omits the comments of tables and chains and fractions of a second, so
//! these are missing here too. The flag `dynamic` is inferred from the rules.
//!
//! The parsers are written by hand: nft has no published grammar for what it prints, and the
//! output contains constructs that nft itself cannot read back.

mod anonymous_chains;
mod expr;
mod from_json;
mod json;
mod json_expr;
mod json_rule;
mod lex;
mod print;
mod print_expr;
mod print_rule;
mod priority;
mod read;
mod read_expr;
mod read_rule;
mod read_set;
mod read_statement;
mod read_value;
mod statement;
mod warnings;

pub use expr::{BinaryOp, Data, Element, Expr, Fib, FibResult, Relation, TupleDirection, Verdict};
pub use statement::{
    Limit, Log, Nat, NatKind, Queue, Quota, Reject, RejectKind, SetOp, SetUpdate, Statement, Tproxy,
};
pub(crate) use warnings::warnings;

use std::fmt;
use std::time::Duration;

use uturn_model::{Evidence, Origin, SourceName, Text};

use crate::ParseError;
use crate::hash::FastMap;

pub use crate::iptables::{Counters, Policy};

/// Parses the output of `nft list ruleset` or `nft -j list ruleset`. `source` names the text in
/// errors and evidence.
///
/// # Errors
///
/// Returns all errors of the text, each with its place, including tables, chains and sets that
/// are defined more than once.
pub fn parse(source: impl Into<SourceName>, text: &str) -> Result<Ruleset, Vec<ParseError>> {
    let source = source.into();
    let ruleset = match text.trim_start().starts_with('{') {
        true => from_json::read(&source, text),
        false => read::read(&source, text),
    }?;
    let duplicates = ruleset.duplicates();
    if duplicates.is_empty() { Ok(ruleset) } else { Err(duplicates) }
}

/// All tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruleset {
    /// In the order of the text, which is the order of creation.
    pub tables: Vec<Table>,
}

impl Ruleset {
    /// A table by family and name.
    pub fn table(&self, family: TableFamily, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.family == family && &*table.name == name)
    }

    /// Errors for tables, and for chains and sets of a table, that are defined more than once.
    fn duplicates(&self) -> Vec<ParseError> {
        let mut errors = Vec::new();
        let tables =
            self.tables.iter().map(|table| (Some(table.family), &table.name, &table.origin));
        named_twice("table", tables, &mut errors);
        for table in &self.tables {
            let chains = table.chains.iter().map(|chain| (None, &chain.name, &chain.origin));
            named_twice("chain", chains, &mut errors);
            let sets = table.sets.iter().map(|set| (None, &set.name, &set.origin));
            named_twice("set", sets, &mut errors);
        }
        errors
    }
}

fn named_twice<'r>(
    what: &str,
    all: impl ExactSizeIterator<Item = (Option<TableFamily>, &'r Text, &'r Origin)>,
    errors: &mut Vec<ParseError>,
) {
    let mut seen = FastMap::default();
    seen.reserve(all.len());
    for (family, name, origin) in all {
        if let Some(first) = seen.insert((family, &**name), origin) {
            let family = family.map(|family| format!("{family} ")).unwrap_or_default();
            let message = format!("{what} {family}{name} a second time, first at {first}");
            errors.push(ParseError::at(origin.clone(), message));
        }
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// The family of packets that it applies to.
    pub family: TableFamily,
    /// Its name.
    pub name: Text,
    /// `flags`, such as `dormant`, which disables the table.
    pub flags: Vec<Text>,
    /// Its comment.
    pub comment: Option<Text>,
    /// Named counters, quotas, limits and the like.
    pub objects: Vec<Object>,
    /// Sets and maps.
    pub sets: Vec<Set>,
    /// Flowtables.
    pub flowtables: Vec<Flowtable>,
    /// Chains.
    pub chains: Vec<Chain>,
    /// Where it was written.
    pub origin: Origin,
}

impl Table {
    /// A chain by its name.
    pub fn chain(&self, name: &str) -> Option<&Chain> {
        self.chains.iter().find(|chain| &*chain.name == name)
    }

    /// A set or map by its name.
    pub fn set(&self, name: &str) -> Option<&Set> {
        self.sets.iter().find(|set| &*set.name == name)
    }

    pub(crate) fn is_dormant(&self) -> bool {
        self.flags.iter().any(|flag| &**flag == "dormant")
    }
}

/// Implements equality that ignores origins.
macro_rules! equal_but_origin {
    ($kind:ident: $($field:ident),+) => {
        impl PartialEq for $kind {
            fn eq(&self, other: &Self) -> bool {
                $(self.$field == other.$field)&&+
            }
        }

        impl Eq for $kind {}
    };
}

equal_but_origin!(Table: family, name, flags, comment, objects, sets, flowtables, chains);
equal_but_origin!(Chain: name, base, comment, rules);
equal_but_origin!(Rule: statements, comment);
equal_but_origin!(Set: name, key, typeof_key, data, typeof_data, flags, timeout, gc_interval, size, policy, auto_merge, statements, comment, elements);
equal_but_origin!(Object: kind, name, body);
equal_but_origin!(Flowtable: name, priority, devices, lines);

/// The family of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the family of that name")]
pub enum TableFamily {
    Ip,
    Ip6,
    Inet,
    Arp,
    Bridge,
    Netdev,
}

impl TableFamily {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Ip, Self::Ip6, Self::Inet, Self::Arp, Self::Bridge, Self::Netdev];

    /// The name that nft uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
            Self::Inet => "inet",
            Self::Arp => "arp",
            Self::Bridge => "bridge",
            Self::Netdev => "netdev",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.as_str() == word)
    }
}

impl fmt::Display for TableFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A chain.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Its name.
    pub name: Text,
    /// Its hook, for a base chain; `None` for a regular chain.
    pub base: Option<Base>,
    /// Its comment.
    pub comment: Option<Text>,
    /// Its rules, in order.
    pub rules: Vec<Rule>,
    /// Where it was written.
    pub origin: Origin,
}

/// The hook and priority of a base chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The chain type.
    pub kind: ChainKind,
    /// The hook.
    pub hook: BaseHook,
    /// The devices, for `ingress` and `egress`.
    pub devices: Vec<Text>,
    /// Lower priorities run first; symbolic priorities are resolved (`dstnat - 10` is -110).
    pub priority: i32,
    /// The verdict at its end.
    pub policy: Policy,
}

/// The type of a base chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChainKind {
    /// Any rules except NAT.
    Filter,
    /// NAT: sees only the first packet of a connection.
    Nat,
    /// Locally generated packets that it changes are rerouted.
    Route,
}

impl ChainKind {
    /// The name that nft uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Nat => "nat",
            Self::Route => "route",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::Filter, Self::Nat, Self::Route].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The hook of a base chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the hook of that name")]
pub enum BaseHook {
    Ingress,
    Prerouting,
    Input,
    Forward,
    Output,
    Postrouting,
    Egress,
}

impl BaseHook {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Ingress,
        Self::Prerouting,
        Self::Input,
        Self::Forward,
        Self::Output,
        Self::Postrouting,
        Self::Egress,
    ];

    /// The name that nft uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Prerouting => "prerouting",
            Self::Input => "input",
            Self::Forward => "forward",
            Self::Output => "output",
            Self::Postrouting => "postrouting",
            Self::Egress => "egress",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.as_str() == word)
    }
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its conditions and actions, in order.
    pub statements: Vec<Statement>,
    /// Its comment.
    pub comment: Option<Text>,
    /// Where it was written.
    pub origin: Origin,
}

impl Rule {
    /// The rule as evidence: as `nft list ruleset` prints it in a table of `family`.
    pub fn by(&self, family: TableFamily) -> Evidence {
        Evidence::Nftables {
            rule: self.line(family).to_string().into(),
            origin: self.origin.clone(),
        }
    }

    /// As `nft list ruleset` prints it in a table of `family`.
    pub fn line(&self, family: TableFamily) -> impl fmt::Display + '_ {
        print_rule::Line { rule: self, family }
    }
}

/// A named set or map.
#[derive(Clone, Debug)]
pub struct Set {
    /// Its name.
    pub name: Text,
    /// The types of its key, part by part.
    pub key: Vec<Text>,
    /// Whether the key type is given as an expression (`typeof ip daddr`).
    pub typeof_key: bool,
    /// For a map, the types of its data; `verdict` for a verdict map.
    pub data: Option<Vec<Text>>,
    /// Whether the data type is given as an expression.
    pub typeof_data: bool,
    /// `flags`, in alphabetical order.
    pub flags: Vec<Text>,
    /// The default timeout of its elements.
    pub timeout: Option<Duration>,
    /// `gc-interval`
    pub gc_interval: Option<Duration>,
    /// The maximum number of elements.
    pub size: Option<u64>,
    /// `policy performance` or `memory`.
    pub policy: Option<Text>,
    /// `auto-merge`
    pub auto_merge: bool,
    /// Stateful expressions of each element, such as a counter.
    pub statements: Vec<Statement>,
    /// Its comment.
    pub comment: Option<Text>,
    /// Its elements.
    pub elements: Vec<Element>,
    /// Where it was written.
    pub origin: Origin,
}

impl Set {
    pub(crate) fn new(name: Text, origin: Origin) -> Self {
        Self {
            name,
            key: Vec::new(),
            typeof_key: false,
            data: None,
            typeof_data: false,
            flags: Vec::new(),
            timeout: None,
            gc_interval: None,
            size: None,
            policy: None,
            auto_merge: false,
            statements: Vec::new(),
            comment: None,
            elements: Vec::new(),
            origin,
        }
    }

    /// The same set with no elements.
    #[must_use]
    pub fn without_elements(&self) -> Self {
        // No `..`, which would clone the elements first.
        Self {
            name: self.name.clone(),
            key: self.key.clone(),
            typeof_key: self.typeof_key,
            data: self.data.clone(),
            typeof_data: self.typeof_data,
            flags: self.flags.clone(),
            timeout: self.timeout,
            gc_interval: self.gc_interval,
            size: self.size,
            policy: self.policy.clone(),
            auto_merge: self.auto_merge,
            statements: self.statements.clone(),
            comment: self.comment.clone(),
            elements: Vec::new(),
            origin: self.origin.clone(),
        }
    }

    /// Whether rules or timeouts change its elements.
    pub fn changes(&self) -> bool {
        self.flags.iter().any(|flag| matches!(&**flag, "dynamic" | "timeout"))
    }
}

/// A named stateful object; its body is kept as nft prints it.
#[derive(Clone, Debug)]
pub struct Object {
    /// `counter`, `quota`, `limit`, `ct helper`, …
    pub kind: Text,
    /// Its name.
    pub name: Text,
    /// The lines of its body.
    pub body: Vec<Text>,
    /// Where it was written.
    pub origin: Origin,
}

/// A flowtable: connections that a rule adds to it bypass the other rules.
#[derive(Clone, Debug)]
pub struct Flowtable {
    /// Its name.
    pub name: Text,
    /// The priority in the hook `ingress`.
    pub priority: i32,
    /// Its devices.
    pub devices: Vec<Text>,
    /// Further lines as written: `flags offload`, `counter`.
    pub lines: Vec<Text>,
    /// Where it was written.
    pub origin: Origin,
}

/// Parses an expression, such as the key of a set (`typeof ip daddr`).
pub(crate) fn expression(text: &str) -> Option<Expr> {
    let mut lexer = lex::Lexer::new(text);
    let expr = lexer.expr(0).ok()?;
    lexer.at_stop().then_some(expr)
}
