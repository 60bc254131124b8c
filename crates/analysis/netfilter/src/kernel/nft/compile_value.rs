//! Compiles expressions, sets and maps.

use std::net::IpAddr;

use uturn_model::Text;

use super::compile::{Compiler, Names, decides};
use super::encode::encode;
use super::lookup::{Bounds, Data, Given, Lookup};
use super::value::{Type, Value};
use crate::LoadError;
use crate::nft::{self, Element, Expr};

impl Compiler<'_> {
    pub(super) fn values(&mut self, parts: &[&Expr], names: &Names<'_>) -> Vec<Value> {
        parts.iter().map(|part| self.value(part, Type::Number, names)).collect()
    }

    pub(super) fn value(&mut self, expr: &Expr, kind: Type, names: &Names<'_>) -> Value {
        match expr {
            Expr::Binary(op, sides) => {
                let of = typed(&sides.0).1;
                let of = if of == Type::Unknown { kind } else { of };
                let left = self.value(&sides.0, kind, names);
                let right = self.value(&sides.1, of, names);
                match (left, right) {
                    (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
                    both => Value::Binary(*op, Box::new(both)),
                }
            }
            Expr::Map(sides) => {
                let keys = parts(&sides.0);
                let types: Vec<Type> = keys.iter().map(|part| typed(part).1).collect();
                match self.map(&sides.1, &types, names) {
                    Some(map) => Value::Map { key: self.values(&keys, names), map },
                    None => Value::Unknown,
                }
            }
            _ => match typed(expr) {
                (Value::Unknown, _) => match encode(kind, expr) {
                    Some((first, last)) if first == last => Value::Const(first),
                    _ => Value::Unknown,
                },
                (value, _) => value,
            },
        }
    }

    /// A set or map, by its name or its elements.
    pub(super) fn map(&mut self, map: &Expr, types: &[Type], names: &Names<'_>) -> Option<usize> {
        match map {
            Expr::SetRef(name) => self.named_set(name, names),
            Expr::Set(elements) => {
                let lookup = self.lookup(elements, types, names);
                self.rules.lookups.push(lookup);
                Some(self.rules.lookups.len() - 1)
            }
            _ => None,
        }
    }

    pub(super) fn named_set(&mut self, name: &str, names: &Names<'_>) -> Option<usize> {
        let found = names.sets.get(name).copied();
        if found.is_none() {
            let message =
                format!("{} asks the set {name}, and there is no such set", names.place_text());
            self.errors.push(LoadError::at(names.origin.clone(), message));
        }
        found
    }

    pub(super) fn lookup(
        &mut self,
        elements: &[Element],
        types: &[Type],
        names: &Names<'_>,
    ) -> Lookup {
        let mut unmodelled = false;
        let mut known = Vec::with_capacity(elements.len());
        for element in elements {
            let data = match &element.data {
                None => Data::Nothing,
                Some(nft::Data::Verdict(verdict)) => {
                    self.verdict(verdict, names).map_or(Data::Unknown, Data::Verdict)
                }
                Some(nft::Data::Value(value)) => {
                    bounds_of(value, |_| Type::Port).map_or(Data::Unknown, Data::Value)
                }
            };
            let given = Given { data, comment: element.comment.clone() };
            if element.key == Expr::Any {
                known.push((None, given));
                continue;
            }
            let kind = |part: usize| types.get(part).copied().unwrap_or(Type::Unknown);
            match bounds_of(&element.key, kind) {
                Some(bounds) if bounds.len() == types.len() => known.push((Some(bounds), given)),
                _ => unmodelled = true,
            }
            unmodelled |= element.statements.iter().any(decides);
        }
        let mut lookup = Lookup::new(known);
        lookup.unmodelled = unmodelled;
        lookup
    }
}

pub(super) fn ip_of(number: u128, v6: bool) -> IpAddr {
    if v6 { IpAddr::V6(number.into()) } else { IpAddr::V4((number as u32).into()) }
}

pub(super) fn parts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Concat(parts) => parts.iter().collect(),
        single => vec![single],
    }
}

fn bounds_of(expr: &Expr, kind: impl Fn(usize) -> Type) -> Option<Bounds> {
    parts(expr).into_iter().enumerate().map(|(at, part)| encode(kind(at), part)).collect()
}

/// The type of a key that is given as an expression.
pub(super) fn typed_by_text(text: &Text) -> Type {
    nft::expression(text).map_or(Type::Unknown, |expr| typed(&expr).1)
}

/// The value that an expression reads, and its type.
pub(super) fn typed(expr: &Expr) -> (Value, Type) {
    super::value::typed(expr)
}
