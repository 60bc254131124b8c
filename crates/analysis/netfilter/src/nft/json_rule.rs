//! Statements in nft's JSON.

use std::time::Duration;

use uturn_model::Text;

use super::from_json::Source;
use super::json::{Json, Node};
use super::json_expr::{counters, verdict};
use super::lex::Lexer;
use super::read_statement::is_usual_burst;
use super::{
    Expr, Limit, Log, Nat, NatKind, Queue, Quota, Reject, RejectKind, Relation, SetOp, SetUpdate,
    Statement, Tproxy,
};

impl Source<'_> {
    /// The statements of a rule; one that is not modelled is kept as written.
    pub(super) fn statements(&self, nodes: &[Node<'_>]) -> Vec<Statement> {
        nodes.iter().map(|node| self.statement(node)).collect()
    }

    fn statement(&self, node: &Node<'_>) -> Statement {
        match &node.value {
            // nft prints statements without a JSON form as text.
            Json::Text(text) => {
                let mut lexer = Lexer::new(text);
                match lexer.statement() {
                    Ok(Some(statement)) if lexer.at_stop() => statement,
                    _ => Statement::Unknown(text.as_ref().into()),
                }
            }
            _ => match node.only() {
                Some((kind, body)) => self
                    .known_statement(kind, body)
                    .unwrap_or_else(|| Statement::Unknown(self.written(node))),
                None => Statement::Unknown(self.written(node)),
            },
        }
    }

    /// A statement by its name and body.
    pub(super) fn statement_of(&self, kind: &str, body: &Node<'_>) -> Statement {
        self.known_statement(kind, body).unwrap_or_else(|| Statement::Unknown(self.written(body)))
    }

    fn known_statement(&self, kind: &str, body: &Node<'_>) -> Option<Statement> {
        if let Some(verdict) = verdict(kind, body) {
            return Some(Statement::Verdict(verdict));
        }
        if let Some(kind) = NatKind::from_word(kind) {
            return self.nat(kind, body).map(Statement::Nat);
        }
        Some(match kind {
            "match" => self.comparison(body)?,
            "vmap" => {
                Statement::Vmap(self.expr(body.field("key")?), self.expr(body.field("data")?))
            }
            "mangle" => {
                Statement::Set(self.expr(body.field("key")?), self.expr(body.field("value")?))
            }
            "counter" if body.is_null() => Statement::Counter(None),
            "counter" | "quota" | "limit" | "ct helper" | "ct timeout" | "ct expectation"
                if body.text().is_some() =>
            {
                Statement::Named(kind.into(), body.text()?.into())
            }
            "counter" => Statement::Counter(Some(counters(body)?)),
            "limit" => Statement::Limit(limit(body)?),
            "quota" => Statement::Quota(quota(body)?),
            "reject" => Statement::Reject(reject(body)?),
            "log" => Statement::Log(log(body)?),
            "queue" => {
                let mut queue = Queue::default();
                if let Json::Map(_) = &body.value {
                    queue.to = body.field("num").map(|to| self.expr(to));
                    queue.flags = body.field("flags").map_or(Some(Vec::new()), words)?;
                }
                Statement::Queue(queue)
            }
            "notrack" => Statement::Notrack,
            "tproxy" => Statement::Tproxy(Tproxy {
                family: body.text_of("family").map(Into::into),
                address: body.field("addr").map(|node| self.expr(node)),
                port: body.field("port").map(|node| self.expr(node)),
            }),
            "set" | "map" => Statement::Update(self.update(kind, body)?),
            "flow" => Statement::Flow(body.text_of("flowtable")?.trim_start_matches('@').into()),
            "xt" => Statement::Xt(body.text_of("type")?.into(), body.text_of("name")?.into()),
            _ => return None,
        })
    }

    fn comparison(&self, body: &Node<'_>) -> Option<Statement> {
        let left = self.expr(body.field("left")?);
        let right = self.expr(body.field("right")?);
        let relation = Relation::from_word(body.text_of("op")?)?;
        let flags =
            super::expr::has_flags(&left) && !matches!(right, Expr::Set(_) | Expr::SetRef(_));
        let relation = if relation == Relation::Any && !flags { Relation::Eq } else { relation };
        Some(Statement::Match { left, relation, right })
    }

    fn nat(&self, kind: NatKind, body: &Node<'_>) -> Option<Nat> {
        let mut nat =
            Nat { kind, family: None, prefix: false, address: None, port: None, flags: Vec::new() };
        if body.is_null() {
            return Some(nat);
        }
        nat.family = body.text_of("family").map(Into::into);
        nat.address = body.field("addr").map(|node| self.expr(node));
        nat.port = body.field("port").map(|node| self.expr(node));
        let all = |name: &str| body.field(name).map_or(Some(Vec::new()), words);
        let kinds = all("type_flags")?;
        nat.prefix = kinds.iter().any(|flag| &**flag == "prefix");
        nat.flags = all("flags")?;
        nat.flags.retain(|flag| &**flag != "netmap");
        Some(nat)
    }

    fn update(&self, kind: &str, body: &Node<'_>) -> Option<SetUpdate> {
        let op = SetOp::from_word(body.text_of("op")?)?;
        let set = body.text_of(kind)?.strip_prefix('@')?.into();
        let element = body.field("elem")?;
        let mut update = SetUpdate {
            op,
            set,
            key: self.expr(element),
            data: None,
            timeout: None,
            statements: Vec::new(),
        };
        if let Some(("elem", element)) = element.only() {
            update.key = self.expr(element.field("val")?);
            update.timeout = match element.field("timeout") {
                None => None,
                Some(seconds) => Some(Duration::from_secs(seconds.number()?)),
            };
        }
        if let Some(data) = body.field("data") {
            update.data = Some(self.data(data)?);
        }
        if let Some(statements) = body.field("stmt") {
            update.statements = self.statements(statements.many());
        }
        Some(update)
    }
}

fn words(node: &Node<'_>) -> Option<Vec<Text>> {
    node.many().iter().map(|item| item.text().map(Into::into)).collect()
}

pub(super) fn limit(body: &Node<'_>) -> Option<Limit> {
    let unit = |name: &str| -> Option<Text> {
        body.text_of(name).filter(|unit| *unit != "packets").map(Into::into)
    };
    let burst = body.field("burst").and_then(Node::number).map(|n| (n, unit("burst_unit")));
    Some(Limit {
        over: matches!(body.field("inv"), Some(Node { value: Json::Bool(true), .. })),
        rate: body.field("rate")?.number()?,
        unit: unit("rate_unit"),
        per: body.text_of("per")?.into(),
        burst: burst.filter(|burst| !is_usual_burst(burst)),
    })
}

fn quota(body: &Node<'_>) -> Option<Quota> {
    let amount = |number: &str, unit: &str| -> Option<(u64, Text)> {
        let unit = body.text_of(unit).unwrap_or("bytes");
        Some((body.field(number)?.number()?, unit.into()))
    };
    Some(Quota {
        over: matches!(body.field("inv"), Some(Node { value: Json::Bool(true), .. })),
        amount: amount("val", "val_unit")?,
        used: amount("used", "used_unit").filter(|(used, _)| *used > 0),
    })
}

/// nft prints the default of a table explicitly, except in old versions.
fn reject(body: &Node<'_>) -> Option<Reject> {
    if body.is_null() {
        return Some(Reject { kind: RejectKind::Icmpx, code: "".into() });
    }
    let kind = RejectKind::from_word(body.text_of("type")?)?;
    let code = match body.field("expr") {
        None => "".into(),
        Some(code) => code.text()?.into(),
    };
    Some(Reject { kind, code })
}

fn log(body: &Node<'_>) -> Option<Log> {
    let mut log = Log::default();
    let Json::Map(fields) = &body.value else { return Some(log) };
    for (name, value) in fields {
        match &**name {
            "prefix" => log.prefix = Some(value.text()?.into()),
            "group" => log.numbers[0] = Some(value.number()?),
            "snaplen" => log.numbers[1] = Some(value.number()?),
            "queue-threshold" => log.numbers[2] = Some(value.number()?),
            "level" => {
                log.level = Some(value.text()?).filter(|level| *level != "warn").map(Into::into);
            }
            "flags" => log.flags = words(value)?,
            _ => return None,
        }
    }
    Some(log)
}
