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
mod chain;
mod equality;
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
mod set;
mod statement;
mod table;
mod warnings;

pub use chain::{Base, BaseHook, Chain, ChainKind, Rule};
pub use expr::{BinaryOp, Data, Element, Expr, Fib, FibResult, Relation, TupleDirection, Verdict};
pub use set::Set;
pub use statement::{
    Limit, Log, Nat, NatKind, Queue, Quota, Reject, RejectKind, SetOp, SetUpdate, Statement, Tproxy,
};
pub use table::{Flowtable, Object, Table, TableFamily};
pub(crate) use warnings::warnings;

use uturn_model::{Origin, SourceName, Text};

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
    let ruleset = if text.trim_start().starts_with('{') {
        from_json::read(&source, text)
    } else {
        read::read(&source, text)
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

/// Parses an expression, such as the key of a set (`typeof ip daddr`).
pub(crate) fn expression(text: &str) -> Option<Expr> {
    let mut lexer = lex::Lexer::new(text);
    let expr = lexer.expr(0).ok()?;
    lexer.at_stop().then_some(expr)
}
