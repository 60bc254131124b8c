//! Compiles nftables: names become indices, expressions become values, sets become lookups.

use std::collections::HashMap;

use uturn_model::{DerivedFrom, Origin};

use super::super::index::Index;
use super::compile_value::{ip_of, parts, typed, typed_by_text};
use super::encode::{encode, type_of};
use super::loops::find_loops;
use super::value::{Field, Nat, NatAddress, Op, Test, Type, Value, Verdict};
use super::{Chain, Entered, Rule, RuleTexts, Rules, index_key};
use crate::LoadError;
use crate::nft::{self, Element, Expr, Relation, Ruleset, SetOp, Statement, Table, TableFamily};
use crate::packet_facts::{FactSubject, PacketFact};

/// Identifiers of unmodelled nftables conditions start here; those of iptables are below.
const FIRST_NUMBER: u32 = 1 << 30;

/// Compiles the tables that `counts` selects.
pub(in crate::kernel) fn compile(
    ruleset: &Ruleset,
    counts: impl Fn(&Table) -> bool,
    errors: &mut Vec<LoadError>,
) -> Rules {
    let walked = |table: &Table| {
        !matches!(table.family, TableFamily::Arp | TableFamily::Bridge)
            && !table.is_dormant()
            && counts(table)
    };
    let mut compiler = Compiler { rules: Rules::default(), numbers: HashMap::new(), errors };
    let tables = ruleset.tables.iter().enumerate().filter(|(_, table)| walked(table));
    for (at, table) in tables {
        compiler.table(at, table);
    }
    let mut rules = compiler.rules;
    find_loops(&rules, ruleset, errors);
    let mut bases: Vec<usize> =
        (0..rules.chains.len()).filter(|at| rules.chains[*at].base.is_some()).collect();
    // Of chains with equal priority, the one created last comes first.
    bases.reverse();
    bases.sort_by_key(|at| rules.chains[*at].base.as_ref().map(|base| base.priority));
    rules.bases = bases;
    rules
}

pub(super) struct Compiler<'e> {
    pub(super) rules: Rules,
    pub(super) numbers: HashMap<String, u32>,
    pub(super) errors: &'e mut Vec<LoadError>,
}

/// The names defined in a table, and the place that is being compiled.
pub(super) struct Names<'t> {
    pub(super) table: &'t Table,
    pub(super) chains: HashMap<&'t str, usize>,
    pub(super) sets: HashMap<&'t str, usize>,
    /// The object that contains the current statement: `chain` or `set`, and its name.
    pub(super) place: (&'static str, &'t str),
    pub(super) origin: Origin,
}

impl Names<'_> {
    /// Describes the object that contains the current statement.
    pub(super) fn place_text(&self) -> String {
        let (kind, name) = self.place;
        format!("{kind} {name} of table {} {}", self.table.family, self.table.name)
    }
}

impl Compiler<'_> {
    fn table(&mut self, at: usize, table: &Table) {
        let first = self.rules.chains.len();
        let chains =
            table.chains.iter().enumerate().map(|(at, chain)| (&*chain.name, first + at)).collect();
        for (place, chain) in table.chains.iter().enumerate() {
            let base = chain.base.as_ref().map(|base| Entered {
                family: table.family,
                kind: base.kind,
                hook: base.hook,
                priority: base.priority,
            });
            self.rules.chains.push(Chain {
                table: at,
                at: place,
                rules: Vec::new(),
                index: None,
                base,
            });
        }
        let mut names = Names {
            table,
            chains,
            sets: HashMap::new(),
            place: ("table", &table.name),
            origin: table.origin.clone(),
        };
        for set in &table.sets {
            names.place = ("set", &set.name);
            names.origin = set.origin.clone();
            let types: Vec<Type> = set
                .key
                .iter()
                .map(|part| if set.typeof_key { typed_by_text(part) } else { type_of(part) })
                .collect();
            let mut lookup = self.lookup(&set.elements, &types, &names);
            lookup.name = Some(set.name.clone());
            lookup.changes = set.changes();
            names.sets.insert(&set.name, self.rules.lookups.len());
            self.rules.lookups.push(lookup);
        }
        for (place, chain) in table.chains.iter().enumerate() {
            names.place = ("chain", &chain.name);
            for rule in &chain.rules {
                names.origin = rule.origin.clone();
                let ops = self.rule(rule, &names);
                self.rules.chains[first + place]
                    .rules
                    .push(Rule { ops, texts: RuleTexts::default() });
            }
            let chain = &mut self.rules.chains[first + place];
            chain.index = Index::new(&chain.rules, index_key::key);
        }
    }

    fn rule(&mut self, rule: &nft::Rule, names: &Names<'_>) -> Vec<Op> {
        let mut ops = Vec::new();
        let deciding = rule.statements.iter().rposition(decides);
        for (at, statement) in rule.statements.iter().enumerate() {
            let last = deciding.is_none_or(|deciding| deciding <= at);
            self.statement(statement, last, names, &mut ops);
        }
        let does = |op: &Op| !op.is_condition();
        // Conditions after the last action have no effect.
        let end = ops.iter().rposition(does).map_or(0, |at| at + 1);
        ops.truncate(end);
        ops
    }

    fn statement(
        &mut self,
        statement: &Statement,
        last: bool,
        names: &Names<'_>,
        ops: &mut Vec<Op>,
    ) {
        match statement {
            Statement::Match { left, relation, right } => {
                let op = self.test(statement, (left, *relation, right), names);
                ops.push(op);
            }
            Statement::Verdict(verdict) => {
                ops.extend(self.verdict(verdict, names).map(Op::Verdict));
            }
            Statement::Vmap(key, map) => {
                let parts = parts(key);
                let types: Vec<Type> = parts.iter().map(|part| typed(part).1).collect();
                let map = self.map(map, &types, names);
                let key = self.values(&parts, names);
                match map {
                    Some(map) => {
                        let number = if self.rules.lookups[map].unmodelled {
                            self.unsure_number(statement, names)
                        } else {
                            self.number(statement, names)
                        };
                        ops.push(Op::Vmap { key, map, number });
                    }
                    None => {
                        ops.push(Op::UnknownAction(self.number(statement, names), "vmap".into()));
                    }
                }
            }
            Statement::Set(key, value) => ops.extend(self.set(key, value, names)),
            Statement::Limit(_) | Statement::Quota(_) => {
                ops.push(self.condition(statement, names));
            }
            Statement::Named(kind, _) if matches!(&**kind, "limit" | "quota") => {
                ops.push(Op::UnknownCondition(self.number(statement, names)));
            }
            Statement::Counter(_) | Statement::Named(..) | Statement::Log(_) => {}
            Statement::Nat(nat) => {
                let nat = self.nat(nat, names);
                ops.push(Op::Nat(nat));
            }
            Statement::Reject(reject) => ops.push(Op::Reject(reject.kind, reject.code.clone())),
            Statement::Notrack => ops.push(Op::Notrack),
            Statement::Queue(_) => {
                ops.push(Op::UnknownAction(self.number(statement, names), "queue".into()));
            }
            Statement::Tproxy(proxy) => {
                let port = proxy.port.as_ref().and_then(|port| encode(Type::Port, port));
                let v6 = proxy.family.as_deref().map(|family| family == "ip6");
                ops.push(Op::Proxy { v6, port: port.map(|(port, _)| port as u16) });
            }
            Statement::Flow(name) => ops.push(Op::Flow(name.clone())),
            Statement::Update(update) => {
                if let Some(set) = self.named_set(&update.set, names)
                    && update.op != SetOp::Delete
                {
                    let key = self.values(&parts(&update.key), names);
                    ops.push(Op::Add { set, key });
                }
                for condition in update.statements.iter().filter(|statement| decides(statement)) {
                    ops.push(self.condition(condition, names));
                }
            }
            Statement::Xt(kind, _) if &**kind == "match" => {
                ops.push(Op::UnknownCondition(self.number(statement, names)));
            }
            Statement::Xt(kind, _) if &**kind == "watcher" => {}
            Statement::Xt(_, name) => {
                ops.push(Op::UnknownAction(self.number(statement, names), name.clone()));
            }
            Statement::Unknown(text) if text.starts_with("dup ") || text.starts_with("last") => {}
            Statement::Unknown(text) => {
                let number = self.number(statement, names);
                ops.push(if last {
                    Op::UnknownAction(number, text.clone())
                } else {
                    self.condition(statement, names)
                });
            }
        }
    }

    /// A condition whose answer depends on other packets, or that is not modelled.
    fn condition(&mut self, statement: &Statement, names: &Names<'_>) -> Op {
        let number = self.number(statement, names);
        let over = match statement {
            Statement::Limit(limit) => limit.over,
            Statement::Quota(quota) => quota.over,
            Statement::Unknown(text) if text.starts_with("ct count ") => text.contains(" over "),
            _ => return Op::UnknownCondition(number),
        };
        Op::Limit { number, over }
    }

    /// The identifier of an unmodelled statement; equal statements share one.
    pub(super) fn number(&mut self, statement: &Statement, names: &Names<'_>) -> u32 {
        let modelled = match statement {
            Statement::Match { left, right, .. } => self.is_sure(left) && self.is_sure(right),
            Statement::Vmap(key, map) => self.is_sure(key) && self.is_sure(map),
            _ => false,
        };
        if modelled {
            return FIRST_NUMBER;
        }
        let rule = nft::Rule {
            statements: vec![statement.clone()],
            comment: None,
            origin: Origin::Derived(DerivedFrom::Statement),
        };
        let text = rule.line(names.table.family).to_string();
        let next = FIRST_NUMBER + 1 + self.numbers.len() as u32;
        *self.numbers.entry(text).or_insert(next)
    }

    /// Whether the value is always known, or is not worth an identifier of its own.
    fn is_sure(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Payload(..) | Expr::SetRef(_) => true,
            Expr::Concat(parts) => parts.iter().all(|part| self.is_sure(part)),
            Expr::Meta(key) => {
                matches!(*key, "l4proto" | "mark" | "iifname" | "nfproto")
            }
            Expr::Ct(None, key) => *key == "state",
            Expr::Numgen { .. } | Expr::Set(_) | Expr::Word(_) | Expr::Number(_) => true,
            Expr::Address(_) | Expr::Prefix(..) | Expr::Range(_) | Expr::List(_) => true,
            _ => false,
        }
    }

    fn test(
        &mut self,
        statement: &Statement,
        (left, relation, right): (&Expr, Relation, &Expr),
        names: &Names<'_>,
    ) -> Op {
        if let Some(op) = sender(left, relation, right) {
            return op;
        }
        let parts = parts(left);
        let types: Vec<Type> = parts.iter().map(|part| typed(part).1).collect();
        let not = relation == Relation::Ne;
        let test = match right {
            Expr::Set(_) | Expr::SetRef(_) if matches!(relation, Relation::Eq | Relation::Ne) => {
                self.map(right, &types, names).map(|set| Test::In { not, set })
            }
            Expr::Concat(_) if matches!(relation, Relation::Eq | Relation::Ne) => {
                let lookup = self.lookup(&[Element::new(right.clone())], &types, names);
                self.rules.lookups.push(lookup);
                Some(Test::In { not, set: self.rules.lookups.len() - 1 })
            }
            _ => types.first().and_then(|kind| plain_test(relation, encode(*kind, right)?)),
        };
        let left = self.values(&parts, names);
        let unknown = left.iter().any(|value| matches!(value, Value::Unknown));
        let number = self.number(statement, names);
        let blurred =
            matches!(test, Some(Test::In { set, .. }) if self.rules.lookups[set].unmodelled);
        match test {
            Some(test) if !unknown && !blurred => Op::Test { left, test, number },
            _ => Op::UnknownCondition(self.unsure_number(statement, names)),
        }
    }

    /// Assigns an identifier to a statement that may turn out to be unknown.
    fn unsure_number(&mut self, statement: &Statement, names: &Names<'_>) -> u32 {
        let unknown = Statement::Unknown(
            nft::Rule {
                statements: vec![statement.clone()],
                comment: None,
                origin: Origin::Derived(DerivedFrom::Statement),
            }
            .line(names.table.family)
            .to_string()
            .into(),
        );
        self.number(&unknown, names)
    }

    pub(super) fn verdict(&mut self, verdict: &nft::Verdict, names: &Names<'_>) -> Option<Verdict> {
        Some(match verdict {
            nft::Verdict::Accept => Verdict::Accept,
            nft::Verdict::Drop => Verdict::Drop,
            nft::Verdict::Continue => Verdict::Continue,
            nft::Verdict::Return => Verdict::Return,
            nft::Verdict::Jump(to) => Verdict::Jump(self.chain(to, names)?),
            nft::Verdict::Goto(to) => Verdict::Goto(self.chain(to, names)?),
        })
    }

    fn chain(&mut self, name: &str, names: &Names<'_>) -> Option<usize> {
        let found = names.chains.get(name).copied();
        let message = match found {
            None => format!("{} leads to {name}, and there is no such chain", names.place_text()),
            Some(at) if self.rules.chains[at].base.is_some() => {
                format!("{} leads to {name}, which is attached to a hook", names.place_text())
            }
            Some(_) => return found,
        };
        self.errors.push(LoadError::at(names.origin.clone(), message));
        None
    }

    pub(super) fn set(&mut self, key: &Expr, value: &Expr, names: &Names<'_>) -> Option<Op> {
        let (target, kind) = typed(key);
        Some(match target {
            Value::Field(Field::Mark) => Op::Mark(self.value(value, kind, names)),
            Value::Field(Field::CtMark) => Op::CtMark(self.value(value, kind, names)),
            Value::Field(
                field @ (Field::Source { .. }
                | Field::Destination { .. }
                | Field::SourcePort(_)
                | Field::DestinationPort(_)),
            ) => Op::Header { field, value: self.value(value, kind, names) },
            // Setting any other field does not affect the packet's path.
            _ => return None,
        })
    }

    fn nat(&mut self, nat: &nft::Nat, names: &Names<'_>) -> Nat {
        let address = match &nat.address {
            None => NatAddress::None,
            Some(Expr::Address(ip)) => NatAddress::Range(*ip, *ip),
            Some(Expr::Range(ends)) => match &**ends {
                (Expr::Address(first), Expr::Address(last)) => NatAddress::Range(*first, *last),
                _ => NatAddress::Unknown,
            },
            Some(Expr::Prefix(ip, length)) => encode(Type::Address, &Expr::Prefix(*ip, *length))
                .map_or(NatAddress::Unknown, |(first, last)| {
                    NatAddress::Range(ip_of(first, ip.is_ipv6()), ip_of(last, ip.is_ipv6()))
                }),
            Some(Expr::Map(sides)) => {
                let keys = parts(&sides.0);
                let types: Vec<Type> = keys.iter().map(|part| typed(part).1).collect();
                match self.map(&sides.1, &types, names) {
                    Some(map) => NatAddress::Map { key: self.values(&keys, names), map },
                    None => NatAddress::Unknown,
                }
            }
            Some(_) => NatAddress::Unknown,
        };
        let stated = nat.family.as_deref().or(match names.table.family {
            TableFamily::Ip => Some("ip"),
            TableFamily::Ip6 => Some("ip6"),
            _ => None,
        });
        let v6 = match (stated.map(|family| family == "ip6"), &address) {
            (Some(v6), NatAddress::Range(ip, _)) if ip.is_ipv6() != v6 => {
                let message = format!(
                    "{} translates packets to {ip}, an address of another family",
                    names.place_text()
                );
                self.errors.push(LoadError::at(names.origin.clone(), message));
                Some(v6)
            }
            (None, NatAddress::Range(ip, _)) => Some(ip.is_ipv6()),
            (stated, _) => stated,
        };
        let port = nat.port.as_ref().and_then(|port| encode(Type::Port, port));
        let address =
            if nat.port.is_some() && port.is_none() { NatAddress::Unknown } else { address };
        Nat {
            kind: nat.kind,
            v6,
            prefix: nat.prefix,
            address,
            port: port.map(|(first, last)| (first as u16, last as u16)),
            random: nat.flags.iter().any(|flag| flag.ends_with("random")),
        }
    }
}

/// Whether a statement is a condition or an action, rather than a counter and the like.
pub(super) fn decides(statement: &Statement) -> bool {
    match statement {
        Statement::Counter(_) | Statement::Log(_) => false,
        Statement::Named(kind, _) => matches!(&**kind, "limit" | "quota"),
        _ => true,
    }
}

fn plain_test(relation: Relation, (first, last): (u128, u128)) -> Option<Test> {
    let within = |first, last| Some(Test::Within { not: false, first, last });
    match relation {
        Relation::Eq => within(first, last),
        Relation::Ne => Some(Test::Within { not: true, first, last }),
        Relation::Any => Some(Test::Bits { not: false, bits: first }),
        Relation::None => Some(Test::Bits { not: true, bits: first }),
        // No value is less than 0.
        Relation::Lt => match first.checked_sub(1) {
            Some(below) => within(0, below),
            None => within(1, 0),
        },
        Relation::Le => within(0, last),
        Relation::Gt => within(last.saturating_add(1), u128::MAX),
        Relation::Ge => within(first, u128::MAX),
    }
}

/// Compiles conditions on the sender: `meta skuid 1000-1999`, `meta skgid != 7`.
fn sender(left: &Expr, relation: Relation, right: &Expr) -> Option<Op> {
    let subject = match left {
        Expr::Meta("skuid") => FactSubject::User,
        Expr::Meta("skgid") => FactSubject::Group,
        _ => return None,
    };
    let bounds = match right {
        Expr::Word(name) if &**name == "root" => (0, 0),
        other => encode(Type::Number, other)?,
    };
    let Test::Within { not, first, last } = plain_test(relation, bounds)? else { return None };
    let least = |number: u128| number.min(u128::from(u32::MAX)) as u32;
    (first <= last && first <= u128::from(u32::MAX)).then(|| {
        let fact = PacketFact { subject, first: least(first), last: least(last) };
        Op::Sender { fact, not }
    })
}
