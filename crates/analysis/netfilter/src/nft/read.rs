//! Parses the text of `nft list ruleset`: tables and their contents.

use std::collections::HashMap;

use uturn_model::SourceName;

use super::anonymous_chains::RuleContext;
use super::lex::{Lexer, Parsed, Token};
use super::priority::priority;
use super::read_set::devices_of;
use super::{
    Base, BaseHook, Chain, ChainKind, Flowtable, Object, Policy, Ruleset, Set, Table, TableFamily,
};
use crate::ParseError;

/// Parsing stops after this many errors.
const MAX_ERRORS: usize = 100;

pub(super) fn read(source: &SourceName, text: &str) -> Result<Ruleset, Vec<ParseError>> {
    let mut reader = Reader { lexer: Lexer::new(text), source, errors: Vec::new() };
    let (mut ruleset, mut places) = (Ruleset::default(), HashMap::new());
    loop {
        reader.lexer.skip_blank();
        if reader.lexer.token() == Token::End || reader.errors.len() >= MAX_ERRORS {
            break;
        }
        match reader.table_head() {
            Ok(table) => {
                let table = reader.table(table);
                let key = (table.family, table.name.clone());
                let at = *places.entry(key).or_insert(ruleset.tables.len());
                match ruleset.tables.get_mut(at) {
                    Some(there) => there.add(table),
                    None => ruleset.tables.push(table),
                }
            }
            Err(fault) => {
                reader.errors.push(fault.error(source));
                reader.lexer.skip_line();
            }
        }
    }
    reader.errors.extend(reader.lexer.unclosed().map(|fault| fault.error(source)));
    reader.errors.sort_by_key(|error| (error.origin.line(), error.origin.column()));
    if reader.errors.is_empty() { Ok(ruleset) } else { Err(reader.errors) }
}

impl Table {
    /// Merges a table that appears twice.
    fn add(&mut self, more: Self) {
        self.comment = more.comment.or(self.comment.take());
        self.objects.extend(more.objects);
        self.sets.extend(more.sets);
        self.flowtables.extend(more.flowtables);
        self.chains.extend(more.chains);
    }
}

pub(super) struct Reader<'a, 's> {
    pub(super) lexer: Lexer<'a>,
    pub(super) source: &'s SourceName,
    pub(super) errors: Vec<ParseError>,
}

impl<'a> Reader<'a, '_> {
    /// `table ip filter {`
    fn table_head(&mut self) -> Parsed<Table> {
        let lexer = &mut self.lexer;
        let origin = lexer.origin(self.source);
        if !lexer.take("table") {
            return Err(lexer.wanted("`table`"));
        }
        let family = match TableFamily::from_word(lexer.word()) {
            Some(family) => {
                lexer.advance();
                family
            }
            None => TableFamily::Ip,
        };
        let name = lexer.identifier("the name of a table")?.into();
        lexer.expect(b'{', "`{`")?;
        Ok(Table {
            family,
            name,
            flags: Vec::new(),
            comment: None,
            objects: Vec::new(),
            sets: Vec::new(),
            flowtables: Vec::new(),
            chains: Vec::new(),
            origin,
        })
    }

    fn table(&mut self, mut table: Table) -> Table {
        loop {
            self.lexer.skip_blank();
            if self.errors.len() >= MAX_ERRORS
                || self.ends(|| format!("table {}", table.name), &table.origin)
            {
                return table;
            }
            if let Err(fault) = self.part(&mut table) {
                self.errors.push(fault.error(self.source));
                self.lexer.skip_line();
            }
        }
    }

    /// Whether a block ends here; reports an error if the text ends first.
    pub(super) fn ends(&mut self, what: impl Fn() -> String, origin: &uturn_model::Origin) -> bool {
        if self.lexer.token() == Token::End {
            let message =
                format!("the text ends within {}, which begins at {origin}: it is cut", what());
            self.errors.push(self.lexer.fault(message).error(self.source));
            return true;
        }
        self.lexer.take_mark(b'}')
    }

    pub(super) fn part(&mut self, table: &mut Table) -> Parsed<()> {
        let origin = self.lexer.origin(self.source);
        let word = self.lexer.word();
        match word {
            "comment" => {
                self.lexer.advance();
                table.comment = Some(self.lexer.name("a comment")?.into());
            }
            "flags" => {
                self.lexer.advance();
                table.flags = self.lexer.words()?;
            }
            "chain" => {
                self.lexer.advance();
                let name = self.lexer.identifier("the name of a chain")?.into();
                self.lexer.expect(b'{', "`{`")?;
                let chain = Chain { name, base: None, comment: None, rules: Vec::new(), origin };
                let (chain, unnamed) = self.chain(chain, table.family);
                table.chains.push(chain);
                table.chains.extend(unnamed);
            }
            "set" | "map" => {
                self.lexer.advance();
                let name = self.lexer.identifier("the name of a set")?.into();
                self.lexer.expect(b'{', "`{`")?;
                let set = self.set(Set::new(name, origin));
                table.sets.push(set);
            }
            "flowtable" => {
                self.lexer.advance();
                let name = self.lexer.identifier("the name of a flowtable")?.into();
                self.lexer.expect(b'{', "`{`")?;
                let flowtable =
                    Flowtable { name, priority: 0, devices: Vec::new(), lines: Vec::new(), origin };
                let flowtable = self.flowtable(flowtable, table.family);
                table.flowtables.push(flowtable);
            }
            "" => return Err(self.lexer.wanted("a chain, a set, a map or an object")),
            _ => {
                let object = self.object(&origin)?;
                table.objects.push(object);
            }
        }
        Ok(())
    }

    /// `counter name { … }`, `ct helper name { … }`
    fn object(&mut self, origin: &uturn_model::Origin) -> Parsed<Object> {
        let mut words = Vec::new();
        while let Token::Word(word) = self.lexer.token() {
            words.push(word);
            self.lexer.advance();
        }
        let known = ["counter", "quota", "limit", "ct", "secmark", "synproxy", "tunnel"];
        let name = words.pop().filter(|_| known.contains(&words.first().copied().unwrap_or("")));
        let Some(name) = name else {
            return Err(self.lexer.fault("expected a chain, a set, a map or an object".into()));
        };
        self.lexer.expect(b'{', "`{`")?;
        let kind = words.join(" ");
        let mut object = Object {
            kind: kind.into(),
            name: name.into(),
            body: Vec::new(),
            origin: origin.clone(),
        };
        loop {
            self.lexer.skip_blank();
            if self.ends(|| format!("{} {name}", object.kind), origin) {
                return Ok(object);
            }
            let line = self.line();
            object.body.push(line.into());
        }
    }

    /// The rest of a line or statement, including blocks in braces.
    pub(super) fn line(&mut self) -> &'a str {
        let (place, mut depth) = (self.lexer.place(), 0u32);
        loop {
            match self.lexer.token() {
                Token::End => break,
                Token::Mark(b'{') => depth += 1,
                Token::Mark(b'}') if depth == 0 => break,
                Token::Mark(b'}') => depth -= 1,
                Token::Newline | Token::Mark(b';') if depth == 0 => break,
                _ => {}
            }
            self.lexer.advance();
        }
        self.lexer.since(place)
    }

    /// Parses a chain and the anonymous chains in its rules.
    fn chain(&mut self, mut chain: Chain, family: TableFamily) -> (Chain, Vec<Chain>) {
        let mut context = RuleContext::new(self.source, family);
        loop {
            self.lexer.skip_to_rule();
            if self.ends(|| format!("chain {}", chain.name), &chain.origin) {
                chain.rules.shrink_to_fit();
                return (chain, context.anonymous);
            }
            let back = self.lexer;
            let head = match self.lexer.word() {
                "type" => Some(self.base(&mut chain, family)),
                "policy" => Some(self.policy(&mut chain)),
                // `offload`: the network card processes the chain as far as it can.
                "flags" if chain.base.is_some() => {
                    self.lexer.advance();
                    Some(self.lexer.words().map(drop))
                }
                "comment" if chain.comment.is_none() => {
                    self.lexer.advance();
                    let named = self.lexer.name("a comment");
                    Some(named.map(|text| chain.comment = Some(text.into())))
                }
                _ => None,
            };
            match head {
                Some(Ok(())) => {}
                Some(Err(fault)) => {
                    self.errors.push(fault.error(self.source));
                    self.lexer.skip_line();
                }
                None => {
                    let rule = self.lexer.rule(&mut context);
                    chain.rules.push(rule);
                }
            }
            // Always make progress.
            if self.lexer.place() == back.place() {
                self.lexer.advance();
            }
        }
    }

    /// `type filter hook input device "eth0" priority filter + 5;`
    fn base(&mut self, chain: &mut Chain, family: TableFamily) -> Parsed<()> {
        let lexer = &mut self.lexer;
        lexer.advance();
        let kind = ChainKind::from_word(lexer.word())
            .ok_or_else(|| lexer.wanted("`filter`, `nat` or `route`"))?;
        lexer.advance();
        if !lexer.take("hook") {
            return Err(lexer.wanted("`hook`"));
        }
        let hook = BaseHook::from_word(lexer.word())
            .ok_or_else(|| lexer.wanted("a hook, such as `prerouting`"))?;
        lexer.advance();
        let mut devices = Vec::new();
        if lexer.take("device") {
            devices.push(lexer.name("a device")?.into());
        } else if lexer.take("devices") {
            devices = devices_of(lexer)?;
        }
        let priority = priority(lexer, family, hook)?;
        chain.base = Some(Base { kind, hook, devices, priority, policy: Policy::Accept });
        Ok(())
    }

    pub(super) fn policy(&mut self, chain: &mut Chain) -> Parsed<()> {
        self.lexer.advance();
        let policy = match self.lexer.word() {
            "accept" => Policy::Accept,
            "drop" => Policy::Drop,
            _ => return Err(self.lexer.wanted("`accept` or `drop`")),
        };
        let Some(base) = &mut chain.base else {
            return Err(self.lexer.fault("a policy in a chain that has no hook".into()));
        };
        base.policy = policy;
        self.lexer.advance();
        Ok(())
    }
}
