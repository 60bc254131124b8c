//! Parses the JSON of `nft -j list ruleset`.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use uturn_model::{DerivedFrom, Origin, SourceName, Text};

use super::json::{self, Node, Places};
use super::read_statement::usual_reject;
use super::{
    Base, BaseHook, Chain, ChainKind, Expr, Flowtable, Object, Policy, RejectKind, Rule, Ruleset,
    Set, Statement, Table, TableFamily,
};
use crate::ParseError;

/// Parsing stops after this many errors.
const MAX_ERRORS: usize = 100;

/// The text, its name and its line starts.
pub(super) struct Source<'a> {
    name: &'a SourceName,
    text: &'a str,
    places: Places,
}

/// An error and the node it refers to.
type Wrong<'n, 'a> = (&'n Node<'a>, String);

pub(super) fn read(name: &SourceName, text: &str) -> Result<Ruleset, Vec<ParseError>> {
    let source = Source { name, text, places: Places::new(text) };
    let root = json::read(text).map_err(|(at, message)| vec![source.error(at, message)])?;
    let Some(all) = root.field("nftables").and_then(Node::list) else {
        let message = "expected an object with the list `nftables`".to_owned();
        return Err(vec![source.error(root.start, message)]);
    };
    let mut reader =
        Reader { source: &source, ruleset: Ruleset::default(), tables: HashMap::new() };
    let mut errors = Vec::new();
    for node in all {
        if let Err((at, message)) = reader.take(node) {
            errors.push(source.error(at.start, message));
            if errors.len() >= MAX_ERRORS {
                break;
            }
        }
    }
    reader.ruleset.tables.iter_mut().for_each(infer_dynamic);
    if errors.is_empty() { Ok(reader.ruleset) } else { Err(errors) }
}

/// Sets the flag `dynamic`, which nft's JSON omits, on sets with a timeout to which rules add
/// elements.
fn infer_dynamic(table: &mut Table) {
    let statements = table.chains.iter().flat_map(|chain| &chain.rules);
    let put: HashSet<&Text> = statements
        .flat_map(|rule| &rule.statements)
        .filter_map(|statement| match statement {
            Statement::Update(update) => Some(&update.set),
            _ => None,
        })
        .collect();
    for set in &mut table.sets {
        let times = set.flags.iter().any(|flag| &**flag == "timeout");
        if times && put.contains(&set.name) && !set.flags.iter().any(|flag| &**flag == "dynamic") {
            set.flags.push("dynamic".into());
            set.flags.sort();
        }
    }
}

impl Source<'_> {
    /// A node as written, on one line.
    pub(super) fn written(&self, node: &Node<'_>) -> Text {
        let (mut line, mut quoted, mut escaped) = (String::new(), false, false);
        for next in self.text[node.start..node.end].chars() {
            if !quoted && next.is_ascii_whitespace() {
                continue;
            }
            quoted ^= next == '"' && !escaped;
            escaped = next == '\\' && !escaped;
            line.push(next);
        }
        line.into()
    }

    fn origin(&self, node: &Node<'_>) -> Origin {
        self.places.origin(self.name, node.start)
    }

    fn error(&self, at: usize, message: String) -> ParseError {
        ParseError::at(self.places.origin(self.name, at), message)
    }
}

struct Reader<'s> {
    source: &'s Source<'s>,
    ruleset: Ruleset,
    /// Tables by family and name, with their chains by name.
    tables: HashMap<(TableFamily, Text), (usize, HashMap<Text, usize>)>,
}

impl Reader<'_> {
    fn take<'n, 'a>(&mut self, node: &'n Node<'a>) -> Result<(), Wrong<'n, 'a>> {
        let Some((kind, body)) = node.only() else {
            return Err((node, "expected an object with one field, such as `table`".into()));
        };
        let wrong = |what: &str| (body, format!("expected {what} in this {kind}"));
        if kind == "metainfo" {
            return Ok(());
        }
        let family = body.text_of("family").and_then(TableFamily::from_word);
        let family = family.ok_or_else(|| wrong("a `family`"))?;
        let origin = self.source.origin(node);
        if kind == "table" {
            let name: Text = body.text_of("name").ok_or_else(|| wrong("a `name`"))?.into();
            self.tables.insert((family, name.clone()), (self.ruleset.tables.len(), HashMap::new()));
            self.ruleset.tables.push(Table {
                family,
                name,
                flags: texts(body.field("flags")),
                comment: body.text_of("comment").map(Into::into),
                objects: Vec::new(),
                sets: Vec::new(),
                flowtables: Vec::new(),
                chains: Vec::new(),
                origin,
            });
            return Ok(());
        }
        let table: Text = body.text_of("table").ok_or_else(|| wrong("a `table`"))?.into();
        let Some((at, chains)) = self.tables.get_mut(&(family, table.clone())) else {
            return Err((body, format!("there is no table {family} {table} before it")));
        };
        let table = &mut self.ruleset.tables[*at];
        if kind == "rule" {
            let chain = body.text_of("chain").ok_or_else(|| wrong("a `chain`"))?;
            let Some(chain) = chains.get(chain) else {
                return Err((body, format!("there is no chain {chain} before it")));
            };
            let mut statements = match body.field("expr") {
                Some(expr) => {
                    self.source.statements(expr.list().ok_or_else(|| wrong("the list `expr`"))?)
                }
                // Old releases omit rules that they cannot express.
                None => vec![Statement::Unknown("a rule that nft did not print".into())],
            };
            for statement in &mut statements {
                if let Statement::Reject(reject) = statement
                    && reject.kind == RejectKind::Icmpx
                    && reject.code.is_empty()
                {
                    *reject = usual_reject(family);
                }
            }
            let comment = body.text_of("comment").map(Into::into);
            table.chains[*chain].rules.push(Rule { statements, comment, origin });
            return Ok(());
        }
        let name: Text = body.text_of("name").ok_or_else(|| wrong("a `name`"))?.into();
        match kind {
            "chain" => {
                let base = base(body).map_err(wrong)?;
                chains.insert(name.clone(), table.chains.len());
                let comment = body.text_of("comment").map(Into::into);
                table.chains.push(Chain { name, base, comment, rules: Vec::new(), origin });
            }
            "set" | "map" => {
                let set = self.source.set(kind, body, Set::new(name, origin));
                table.sets.push(set.map_err(wrong)?);
            }
            "flowtable" => table.flowtables.push(Flowtable {
                name,
                priority: body.field("prio").and_then(Node::number).unwrap_or(0),
                devices: texts(body.field("dev")),
                lines: texts(body.field("flags")).iter().map(flags_line).collect(),
                origin,
            }),
            _ => {
                let body = object(kind, body).unwrap_or_else(|| vec![self.source.written(body)]);
                table.objects.push(Object { kind: kind.into(), name, body, origin });
            }
        }
        Ok(())
    }
}

fn flags_line(flag: &Text) -> Text {
    format!("flags {flag}").into()
}

fn texts(node: Option<&Node<'_>>) -> Vec<Text> {
    let all = node.into_iter().flat_map(Node::many);
    all.filter_map(|item| item.text().map(Into::into)).collect()
}

fn base(body: &Node<'_>) -> Result<Option<Base>, &'static str> {
    let Some(hook) = body.text_of("hook") else { return Ok(None) };
    let kind = body.text_of("type").and_then(ChainKind::from_word).ok_or("a `type`")?;
    let hook = BaseHook::from_word(hook).ok_or("a known `hook`")?;
    let priority = body.field("prio").and_then(Node::number).ok_or("a number `prio`")?;
    let policy = match body.text_of("policy") {
        None | Some("accept") => Policy::Accept,
        Some("drop") => Policy::Drop,
        Some(_) => return Err("the `policy` accept or drop"),
    };
    Ok(Some(Base { kind, hook, devices: texts(body.field("dev")), priority, policy }))
}

impl Source<'_> {
    /// The types of a key or of a map's data, part by part, and whether they are given as
    /// expressions.
    fn types(&self, node: &Node<'_>) -> (Vec<Text>, bool) {
        let Some(expr) = node.field("typeof") else {
            let all = texts(Some(node));
            return (
                all.iter().flat_map(|types| types.split(" . ").map(Into::into)).collect(),
                false,
            );
        };
        let parts = match self.expr(expr) {
            Expr::Concat(parts) => parts,
            single => vec![single],
        };
        (parts.iter().map(|part| part.to_string().into()).collect(), true)
    }

    fn set(&self, kind: &str, body: &Node<'_>, mut set: Set) -> Result<Set, &'static str> {
        (set.key, set.typeof_key) = self.types(body.field("type").ok_or("a `type`")?);
        if kind == "map" {
            let (data, typeof_data) = self.types(body.field("map").ok_or("the `map`'s type")?);
            (set.data, set.typeof_data) = (Some(data), typeof_data);
        }
        set.flags = texts(body.field("flags"));
        set.flags.sort();
        let seconds = |name: &str| body.field(name).and_then(Node::number).map(Duration::from_secs);
        (set.timeout, set.gc_interval) = (seconds("timeout"), seconds("gc-interval"));
        set.size = body.field("size").and_then(Node::number);
        set.policy = body.text_of("policy").map(Into::into);
        set.auto_merge = body.field("auto-merge").is_some();
        set.comment = body.text_of("comment").map(Into::into);
        if let Some(statements) = body.field("stmt") {
            set.statements = self.statements(statements.many());
        }
        if let Some(elements) = body.field("elem") {
            set.elements = self.elements(elements).ok_or("elements that can be read")?;
        }
        Ok(set)
    }
}

/// The body of an object, as `nft list` prints it.
fn object(kind: &str, body: &Node<'_>) -> Option<Vec<Text>> {
    let number = |name: &str| -> Option<u64> { body.field(name)?.number() };
    let mut lines: Vec<Text> = Vec::new();
    if let Some(comment) = body.text_of("comment") {
        lines.push(format!("comment \"{comment}\"").into());
    }
    match kind {
        "counter" => {
            lines.push(format!("packets {} bytes {}", number("packets")?, number("bytes")?).into());
        }
        "quota" => {
            let amount = |mut bytes: u64| {
                let mut units = ["bytes", "kbytes", "mbytes"].into_iter();
                let mut unit = units.next().unwrap_or("bytes");
                while bytes > 0 && bytes.is_multiple_of(1024) {
                    let Some(next) = units.next() else { break };
                    (bytes, unit) = (bytes / 1024, next);
                }
                format!("{bytes} {unit}")
            };
            let over =
                matches!(body.field("inv"), Some(Node { value: json::Json::Bool(true), .. }));
            let mut line =
                format!("{}{}", if over { "over " } else { "" }, amount(number("bytes")?));
            if let Some(used) = number("used").filter(|used| *used > 0) {
                line = format!("{line} used {}", amount(used));
            }
            lines.push(line.into());
        }
        "limit" => {
            let limit = super::json_rule::limit(body)?;
            let rule = Rule {
                statements: vec![Statement::Limit(limit)],
                comment: None,
                origin: Origin::Derived(DerivedFrom::Statement),
            };
            let line = rule.line(TableFamily::Ip).to_string();
            lines.push(line.trim_start_matches("limit ").into());
        }
        "ct helper" => {
            let text = |name: &str| body.text_of(name);
            lines.push(format!("type \"{}\" protocol {}", text("type")?, text("protocol")?).into());
            lines.extend(text("l3proto").map(|protocol| format!("l3proto {protocol}").into()));
        }
        _ => return None,
    }
    Some(lines)
}
