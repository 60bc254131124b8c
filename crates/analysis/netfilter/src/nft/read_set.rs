//! Parses sets, maps and flowtables.

use uturn_model::Text;

use super::lex::{Lexer, Parsed, Token};
use super::priority::priority;
use super::read::Reader;
use super::{BaseHook, Flowtable, Set, Statement, TableFamily};
use crate::ParseError;

impl<'a> Reader<'a, '_> {
    pub(super) fn set(&mut self, mut set: Set) -> Set {
        loop {
            self.lexer.skip_blank();
            if self.ends(|| format!("set {}", set.name), &set.origin) {
                set.flags.sort();
                if set.key.is_empty() && self.lexer.token() != Token::End {
                    let message = format!("set {} says no type", set.name);
                    self.errors.push(ParseError::at(set.origin.clone(), message));
                }
                return set;
            }
            if let Err(fault) = self.set_line(&mut set) {
                self.errors.push(fault.error(self.source));
                // Skip the rest of the set.
                self.lexer.skip_block();
                return set;
            }
        }
    }

    fn set_line(&mut self, set: &mut Set) -> Parsed<()> {
        let lexer = &mut self.lexer;
        let word = lexer.word();
        match word {
            "type" | "typeof" => {
                lexer.advance();
                (set.key, set.typeof_key) = (types(lexer)?, word == "typeof");
                if lexer.take(":") {
                    set.typeof_data = word == "typeof" && lexer.word() != "verdict";
                    set.data = Some(types(lexer)?);
                }
            }
            "flags" => {
                lexer.advance();
                set.flags = lexer.words()?;
            }
            "timeout" => {
                lexer.advance();
                set.timeout = Some(lexer.duration()?);
            }
            "gc-interval" => {
                lexer.advance();
                set.gc_interval = Some(lexer.duration()?);
            }
            "size" => {
                lexer.advance();
                set.size = Some(lexer.number("a number of elements")?);
            }
            "policy" => {
                lexer.advance();
                set.policy = Some(lexer.name("`performance` or `memory`")?.into());
            }
            "auto-merge" => {
                lexer.advance();
                set.auto_merge = true;
            }
            "comment" => {
                lexer.advance();
                set.comment = Some(lexer.name("a comment")?.into());
            }
            "elements" => {
                lexer.advance();
                if !lexer.take("=") {
                    return Err(lexer.wanted("`=`"));
                }
                lexer.expect(b'{', "`{`")?;
                match lexer.elements(0) {
                    Ok(mut elements) => set.elements.append(&mut elements),
                    Err(fault) => {
                        lexer.skip_block();
                        return Err(fault);
                    }
                }
            }
            "counter" | "quota" | "limit" | "ct" | "last" => {
                let place = lexer.place();
                let back = *lexer;
                if let Ok(Some(statement)) = lexer.statement() {
                    set.statements.push(statement);
                } else {
                    *lexer = back;
                    let line = self.line();
                    debug_assert!(place <= self.lexer.place());
                    set.statements.push(Statement::Unknown(line.into()));
                }
            }
            _ => return Err(lexer.wanted("a property of a set, such as `type` or `elements`")),
        }
        Ok(())
    }

    pub(super) fn flowtable(&mut self, mut flowtable: Flowtable, family: TableFamily) -> Flowtable {
        loop {
            self.lexer.skip_blank();
            if self.ends(|| format!("flowtable {}", flowtable.name), &flowtable.origin) {
                return flowtable;
            }
            let done = match self.lexer.word() {
                "hook" => {
                    self.lexer.advance();
                    self.lexer.take("ingress");
                    priority(&mut self.lexer, family, BaseHook::Ingress)
                        .map(|priority| flowtable.priority = priority)
                }
                "devices" => {
                    self.lexer.advance();
                    devices_of(&mut self.lexer).map(|devices| flowtable.devices = devices)
                }
                _ => {
                    let place = self.lexer.place();
                    let line = self.line();
                    flowtable.lines.push(line.into());
                    if self.lexer.place() == place {
                        self.lexer.advance();
                    }
                    Ok(())
                }
            };
            if let Err(fault) = done {
                self.errors.push(fault.error(self.source));
                self.lexer.skip_line();
            }
        }
    }
}

/// `= { lo, "eth0" }`
pub(super) fn devices_of(lexer: &mut Lexer<'_>) -> Parsed<Vec<Text>> {
    if !lexer.take("=") {
        return Err(lexer.wanted("`=`"));
    }
    lexer.expect(b'{', "`{`")?;
    let mut devices = Vec::new();
    while !lexer.take_mark(b'}') {
        devices.push(lexer.name("a device")?.into());
        if !lexer.take_mark(b',') && !lexer.at_mark(b'}') {
            return Err(lexer.wanted("`,` or `}`"));
        }
    }
    Ok(devices)
}

/// `ipv4_addr . inet_service`, up to the colon or the end of the line.
fn types(lexer: &mut Lexer<'_>) -> Parsed<Vec<Text>> {
    let mut all: Vec<Text> = Vec::new();
    let mut part = String::new();
    loop {
        let (done, ends) = match lexer.token() {
            Token::Word(".") => (true, false),
            Token::Word(word) if word != ":" => {
                if !part.is_empty() && !part.ends_with(',') {
                    part.push(' ');
                }
                part.push_str(word);
                (false, false)
            }
            // `@ih,32,32`
            Token::Mark(b',') if part.starts_with('@') => {
                part.push(',');
                (false, false)
            }
            _ => (true, true),
        };
        if done {
            if part.is_empty() {
                return Err(lexer.wanted("a type, such as `ipv4_addr`"));
            }
            all.push(std::mem::take(&mut part).into());
        }
        if ends {
            return Ok(all);
        }
        lexer.advance();
    }
}
