//! Parses constants and elements of sets and maps.

use uturn_model::Text;

use super::lex::{Lexer, MAX_DEPTH, MAX_OPERANDS, Parsed, Token};
use super::{BinaryOp, Counters, Data, Element, Expr, Statement, Verdict};

impl<'a> Lexer<'a> {
    /// The right operand of a comparison: constants only.
    pub(super) fn values(&mut self, depth: u8) -> Parsed<Expr> {
        let first = self.literal(depth)?;
        if !self.at_mark(b',') {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.take_mark(b',') {
            all.push(self.plain(depth)?);
        }
        Ok(Expr::List(all))
    }

    /// A constant, or a concatenation of constants.
    pub(super) fn literal(&mut self, depth: u8) -> Parsed<Expr> {
        let first = self.plain(depth)?;
        self.concat(first, |lexer| lexer.plain(depth))
    }

    /// The key of an element; `fin | ack` is one key of several flags.
    fn element_key(&mut self, depth: u8) -> Parsed<Expr> {
        let first = self.combined(depth)?;
        self.concat(first, |lexer| lexer.combined(depth))
    }

    fn combined(&mut self, depth: u8) -> Parsed<Expr> {
        let (mut value, mut sides) = (self.plain(depth)?, 0);
        while self.take("|") {
            sides += 1;
            if sides > MAX_OPERANDS {
                return Err(self.fault("more flags than any element has".into()));
            }
            let next = self.plain(depth)?;
            value = Expr::Binary(BinaryOp::Or, Box::new((value, next)));
        }
        Ok(if sides > 0 { flags(value) } else { value })
    }

    /// One constant: a word, a string, a set.
    pub(super) fn plain(&mut self, depth: u8) -> Parsed<Expr> {
        if depth > MAX_DEPTH {
            return Err(self.fault("sets within sets, too many".into()));
        }
        match self.token() {
            Token::Word(word) if word.starts_with('@') => self.reference(),
            Token::Word(word) => {
                self.advance();
                Ok(value(word))
            }
            Token::Quoted(text) => {
                self.advance();
                let first = Expr::Word(text.into());
                if self.word() != "-" {
                    return Ok(first);
                }
                self.advance();
                let last = Expr::Word(self.name("the last of a range")?.into());
                Ok(Expr::Range(Box::new((first, last))))
            }
            Token::Mark(b'{') => {
                self.advance();
                Ok(Expr::Set(self.elements(depth + 1)?))
            }
            // `(fin | syn)`: any of several flags.
            Token::Mark(b'(') => {
                self.advance();
                let mut all = vec![self.plain(depth + 1)?];
                while self.take("|") || self.take_mark(b',') {
                    all.push(self.plain(depth + 1)?);
                }
                self.expect(b')', "`)`")?;
                Ok(Expr::List(all))
            }
            _ => Err(self.wanted("a value")),
        }
    }

    /// Elements up to and including the `}`.
    pub(super) fn elements(&mut self, depth: u8) -> Parsed<Vec<Element>> {
        let mut elements = Vec::new();
        loop {
            while self.token() == Token::Newline {
                self.advance();
            }
            if self.take_mark(b'}') {
                elements.shrink_to_fit();
                return Ok(elements);
            }
            elements.push(self.element(depth)?);
            while self.token() == Token::Newline {
                self.advance();
            }
            if !self.take_mark(b',') && !self.at_mark(b'}') {
                return Err(self.wanted("`,` or `}`"));
            }
        }
    }

    fn element(&mut self, depth: u8) -> Parsed<Element> {
        let mut element = Element::new(self.element_key(depth)?);
        loop {
            match self.word() {
                "timeout" => {
                    self.advance();
                    element.timeout = Some(self.duration()?);
                }
                "expires" => {
                    self.advance();
                    element.expires = Some(self.duration()?);
                }
                "counter" => element.counter = self.counter()?.or(Some(Counters::default())),
                "comment" => {
                    self.advance();
                    element.comment = Some(self.name("a comment")?.into());
                }
                ":" => {
                    self.advance();
                    element.data = Some(self.data(depth)?);
                }
                "limit" | "quota" | "ct" | "last" if element.data.is_none() => {
                    let back = *self;
                    let statement = match self.statement() {
                        Ok(Some(statement)) => statement,
                        _ => {
                            *self = back;
                            Statement::Unknown(self.kept_by_element().into())
                        }
                    };
                    element.statements.push(statement);
                }
                _ => return Ok(element),
            }
        }
    }

    /// A stateful expression of an element that is not modelled: `ct count over 5`, `last used
    /// 3s`.
    fn kept_by_element(&mut self) -> &'a str {
        let (place, next) = (self.place(), ["timeout", "expires", "counter", "comment", ":"]);
        self.advance();
        while matches!(self.token(), Token::Word(word) if !next.contains(&word)) {
            self.advance();
        }
        self.since(place)
    }

    pub(super) fn data(&mut self, depth: u8) -> Parsed<Data> {
        match self.verdict()? {
            Some(verdict) => Ok(Data::Verdict(verdict)),
            None => Ok(Data::Value(self.literal(depth)?)),
        }
    }

    pub(super) fn verdict(&mut self) -> Parsed<Option<Verdict>> {
        let verdict = match self.word() {
            "accept" => Verdict::Accept,
            "drop" => Verdict::Drop,
            "continue" => Verdict::Continue,
            "return" => Verdict::Return,
            leads @ ("jump" | "goto") => {
                self.advance();
                let chain: Text = self.identifier("the name of a chain")?.into();
                let verdict = if leads == "jump" { Verdict::Jump } else { Verdict::Goto };
                return Ok(Some(verdict(chain)));
            }
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(verdict))
    }

    /// `counter`, with its values if present.
    pub(super) fn counter(&mut self) -> Parsed<Option<Counters>> {
        self.advance();
        if !self.take("packets") {
            return Ok(None);
        }
        let packets = self.number("a number of packets")?;
        if !self.take("bytes") {
            return Err(self.wanted("`bytes`"));
        }
        Ok(Some(Counters { packets, bytes: self.number("a number of bytes")? }))
    }
}

/// `fin | syn` is equivalent to `fin,syn`.
pub(super) fn flags(expr: Expr) -> Expr {
    fn words(expr: &Expr, all: &mut Vec<Expr>) -> bool {
        match expr {
            Expr::Word(_) => {
                all.push(expr.clone());
                true
            }
            Expr::Binary(BinaryOp::Or, sides) => words(&sides.0, all) && words(&sides.1, all),
            _ => false,
        }
    }
    let mut all = Vec::new();
    if words(&expr, &mut all) { Expr::List(all) } else { expr }
}

/// A constant by its word, which text and JSON share.
pub(super) fn value(word: &str) -> Expr {
    let first = word.as_bytes().first().copied().unwrap_or(b' ');
    let may_be_number = first.is_ascii_hexdigit() || first == b':';
    if !may_be_number {
        return if word == "*" { Expr::Any } else { Expr::Word(word.into()) };
    }
    if let Some(single) = single(word) {
        return single;
    }
    if let Some((address, length)) = word.split_once('/')
        && let (Ok(address), Ok(length)) = (address.parse(), length.parse())
    {
        return Expr::Prefix(address, length);
    }
    if let Some((first, last)) = word.split_once('-')
        && let (Some(first), Some(last)) = (single(first), single(last))
    {
        return Expr::Range(Box::new((first, last)));
    }
    Expr::Word(word.into())
}

fn single(word: &str) -> Option<Expr> {
    if word.bytes().any(|byte| matches!(byte, b'.' | b':')) {
        return word.parse().ok().map(Expr::Address);
    }
    number(word).map(Expr::Number)
}

pub(super) fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if word.bytes().all(|byte| byte.is_ascii_digit()) => word.parse().ok(),
        None => None,
    }
}
