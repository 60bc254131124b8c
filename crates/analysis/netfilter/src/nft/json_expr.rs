//! Expressions and elements in nft's JSON.

use std::time::Duration;

use super::expr::{CT, META, known, payload};
use super::from_json::Source;
use super::json::{Json, Node};
use super::lex::MAX_OPERANDS;
use super::read_value::value;
use super::{BinaryOp, Counters, Data, Element, Expr, Fib, FibResult, TupleDirection, Verdict};

impl Source<'_> {
    /// An expression; one that is not modelled is kept as written.
    pub(super) fn expr(&self, node: &Node<'_>) -> Expr {
        self.known_expr(node).unwrap_or_else(|| Expr::Other(self.written(node)))
    }

    fn known_expr(&self, node: &Node<'_>) -> Option<Expr> {
        match &node.value {
            Json::Text(text) => Some(match text.strip_prefix('@') {
                Some(name) => Expr::SetRef(name.into()),
                None => value(text),
            }),
            Json::Number(_) => node.number().map(Expr::Number),
            Json::Bool(there) => Some(Expr::Word(if *there { "exists" } else { "missing" }.into())),
            Json::List(all) => Some(Expr::List(all.iter().map(|item| self.expr(item)).collect())),
            Json::Map(_) => {
                let (kind, body) = node.only()?;
                self.of_kind(kind, body)
            }
            Json::Null => None,
        }
    }

    fn of_kind(&self, kind: &str, body: &Node<'_>) -> Option<Expr> {
        if let Some(op) = BinaryOp::from_word(kind) {
            return self.binary(op, body);
        }
        let pair = || Some((body.list()?.first()?, body.list()?.get(1)?));
        Some(match kind {
            "concat" => Expr::Concat(body.list()?.iter().map(|part| self.expr(part)).collect()),
            "set" => Expr::Set(self.elements(body)?),
            "prefix" => {
                let Expr::Address(ip) = self.expr(body.field("addr")?) else { return None };
                Expr::Prefix(ip, body.field("len")?.number()?)
            }
            "range" => {
                let (first, last) = pair()?;
                Expr::Range(Box::new((self.expr(first), self.expr(last))))
            }
            // A field of an encapsulated packet.
            "payload" if body.field("tunnel").is_some() => {
                let word = |name: &str| body.text_of(name);
                let (tunnel, protocol) = (word("tunnel")?, word("protocol")?);
                Expr::Other(format!("{tunnel} {protocol} {}", word("field")?).into())
            }
            "payload" => match body.text_of("base") {
                Some(base) => {
                    let offset: u64 = body.field("offset")?.number()?;
                    let length: u64 = body.field("len")?.number()?;
                    Expr::Other(format!("@{base},{offset},{length}").into())
                }
                None => payload(body.text_of("protocol")?, body.text_of("field")?)?,
            },
            "meta" => Expr::Meta(known(&META, body.text_of("key")?)?),
            "ct" => {
                let key = known(&CT, body.text_of("key")?)?;
                let direction = match body.text_of("dir") {
                    None => None,
                    Some(word) => Some(TupleDirection::from_word(word)?),
                };
                Expr::Ct(direction, key)
            }
            "fib" => self.fib(body)?,
            "numgen" => {
                let inc = match body.text_of("mode")? {
                    "inc" => true,
                    "random" => false,
                    _ => return None,
                };
                Expr::Numgen { inc, modulus: modulus(body)?, offset: offset(body) }
            }
            "jhash" => Expr::Hash {
                over: Some(Box::new(self.expr(body.field("expr")?))),
                modulus: modulus(body)?,
                seed: body.field("seed").and_then(Node::number),
                offset: offset(body),
            },
            "symhash" => {
                Expr::Hash { over: None, modulus: modulus(body)?, seed: None, offset: offset(body) }
            }
            "map" => {
                let (key, map) = (body.field("key")?, body.field("data")?);
                Expr::Map(Box::new((self.expr(key), self.expr(map))))
            }
            // Written as `nft list` prints it.
            "rt" => {
                let family =
                    body.text_of("family").map(|family| format!("{family} ")).unwrap_or_default();
                Expr::Other(format!("rt {family}{}", body.text_of("key")?).into())
            }
            "socket" | "osf" => Expr::Other(format!("{kind} {}", body.text_of("key")?).into()),
            "exthdr" | "tcp option" | "ip option" | "sctp chunk" => {
                let name = body.text_of("name")?;
                match body.text_of("field") {
                    None => Expr::Other(format!("{kind} {name}").into()),
                    Some(field) => Expr::Other(format!("{kind} {name} {field}").into()),
                }
            }
            _ => return None,
        })
    }

    /// `{"|": [a, b, c]}` may have more than two operands.
    fn binary(&self, op: BinaryOp, body: &Node<'_>) -> Option<Expr> {
        let sides = body.list().filter(|sides| sides.len() <= MAX_OPERANDS)?;
        let mut sides = sides.iter().map(|operand| self.expr(operand));
        let first = sides.next()?;
        let all = sides.fold(first, |left, right| Expr::Binary(op, Box::new((left, right))));
        Some(super::read_value::flags(all))
    }

    fn fib(&self, body: &Node<'_>) -> Option<Expr> {
        let mut fib = Fib {
            result: match body.text_of("result")? {
                "type" => FibResult::Type,
                "oif" | "check" => FibResult::Oif,
                "oifname" => FibResult::Oifname,
                _ => return None,
            },
            ..Fib::default()
        };
        for flag in body.field("flags")?.many() {
            match flag.text()? {
                "saddr" => fib.saddr = true,
                "daddr" => {}
                "mark" => fib.mark = true,
                "iif" => fib.iif = true,
                "oif" => fib.oif = true,
                _ => return None,
            }
        }
        Some(Expr::Fib(fib))
    }

    /// The elements of a set or, as pairs, of a map.
    pub(super) fn elements(&self, node: &Node<'_>) -> Option<Vec<Element>> {
        let all = match &node.value {
            Json::List(all) => all.as_slice(),
            _ => std::slice::from_ref(node),
        };
        all.iter().map(|element| self.element(element)).collect()
    }

    fn element(&self, node: &Node<'_>) -> Option<Element> {
        if let Json::List(pair) = &node.value {
            let [key, data] = pair.as_slice() else { return None };
            let mut element = self.element(key)?;
            element.data = Some(self.data(data)?);
            return Some(element);
        }
        let Some(("elem", body)) = node.only() else {
            return Some(Element::new(self.expr(node)));
        };
        let mut element = Element::new(self.expr(body.field("val")?));
        let Json::Map(fields) = &body.value else { return None };
        for (name, value) in fields {
            match &**name {
                "val" => {}
                "comment" => element.comment = Some(value.text()?.into()),
                "timeout" => element.timeout = Some(Duration::from_secs(value.number()?)),
                "expires" => element.expires = Some(Duration::from_secs(value.number()?)),
                "counter" => element.counter = Some(counters(value)?),
                _ => element.statements.push(self.statement_of(name, value)),
            }
        }
        Some(element)
    }

    pub(super) fn data(&self, node: &Node<'_>) -> Option<Data> {
        match node.only().and_then(|(kind, body)| verdict(kind, body)) {
            Some(verdict) => Some(Data::Verdict(verdict)),
            None => Some(Data::Value(self.expr(node))),
        }
    }
}

pub(super) fn verdict(kind: &str, body: &Node<'_>) -> Option<Verdict> {
    Some(match kind {
        "accept" => Verdict::Accept,
        "drop" => Verdict::Drop,
        "continue" => Verdict::Continue,
        "return" => Verdict::Return,
        "jump" => Verdict::Jump(body.text_of("target")?.into()),
        "goto" => Verdict::Goto(body.text_of("target")?.into()),
        _ => return None,
    })
}

pub(super) fn counters(body: &Node<'_>) -> Option<Counters> {
    let number = |name: &str| body.field(name)?.number();
    Some(Counters { packets: number("packets")?, bytes: number("bytes")? })
}

fn modulus(body: &Node<'_>) -> Option<u64> {
    body.field("mod")?.number().filter(|modulus| *modulus > 0)
}

fn offset(body: &Node<'_>) -> u64 {
    body.field("offset").and_then(Node::number).unwrap_or(0)
}
