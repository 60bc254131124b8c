//! Parses expressions and elements.

use std::time::Duration;

use uturn_model::Text;

use super::expr::{BARE_META, CT, META, PAYLOAD, has_flags, known, payload};
use super::lex::{Lexer, Parsed, Token};
use super::{
    BinaryOp, Counters, Data, Element, Expr, Fib, FibResult, Relation, Statement, TupleDirection,
    Verdict,
};

/// The maximum nesting of expressions.
const MAX_DEPTH: u8 = 24;

/// The maximum number of operands of one operation.
pub(super) const MAX_OPERANDS: usize = 64;

impl<'a> Lexer<'a> {
    /// Any expression.
    pub(super) fn expr(&mut self, depth: u8) -> Parsed<Expr> {
        let first = self.arithmetic(depth, 0)?;
        let key = self.concat(first, |lexer| lexer.arithmetic(depth, 0))?;
        if !self.take("map") {
            return Ok(key);
        }
        let map = self.map(depth)?;
        Ok(Expr::Map(Box::new((key, map))))
    }

    /// `@name` or `{ … }`
    pub(super) fn map(&mut self, depth: u8) -> Parsed<Expr> {
        match self.token() {
            Token::Mark(b'{') => self.literal(depth + 1),
            Token::Word(word) if word.starts_with('@') => self.literal(depth),
            _ => Err(self.wanted("a map: `{ … }` or `@name`")),
        }
    }

    fn concat(
        &mut self,
        first: Expr,
        mut next: impl FnMut(&mut Self) -> Parsed<Expr>,
    ) -> Parsed<Expr> {
        if self.word() != "." {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take(".") {
            parts.push(next(self)?);
        }
        Ok(Expr::Concat(parts))
    }

    /// `a & b | c`; stops at operators that bind less tightly than `least`.
    fn arithmetic(&mut self, depth: u8, least: u8) -> Parsed<Expr> {
        let (mut left, mut sides) = (self.primary(depth)?, 0);
        while let Some(op) = BinaryOp::from_word(self.word()) {
            let rank = match op {
                BinaryOp::Or => 0,
                BinaryOp::Xor => 1,
                BinaryOp::And => 2,
                BinaryOp::ShiftLeft | BinaryOp::ShiftRight => 3,
            };
            if rank < least {
                break;
            }
            self.advance();
            sides += 1;
            if sides > MAX_OPERANDS {
                return Err(self.fault("more sides of an operation than any rule has".into()));
            }
            let right = self.arithmetic(depth, rank + 1)?;
            left = Expr::Binary(op, Box::new((left, right)));
        }
        Ok(left)
    }

    fn primary(&mut self, depth: u8) -> Parsed<Expr> {
        if depth > MAX_DEPTH {
            return Err(self.fault("expressions within expressions, too many".into()));
        }
        if self.at_mark(b'(') {
            self.advance();
            let inner = self.arithmetic(depth + 1, 0)?;
            self.expect(b')', "`)`")?;
            return Ok(flags(inner));
        }
        let word = self.word();
        match word {
            "meta" => {
                self.advance();
                let key = known(&META, self.word()).ok_or_else(|| self.wanted("what of `meta`"))?;
                self.advance();
                Ok(Expr::Meta(key))
            }
            "ct" => self.ct(),
            "fib" => self.fib(),
            "numgen" => self.numgen(),
            "jhash" | "symhash" => self.hash(depth),
            "rt" | "socket" | "osf" | "ipsec" | "exthdr" | "hbh" | "frag" | "dst" | "mh"
            | "srh" | "tunnel" => self.unmodelled(),
            "vxlan" | "geneve" | "gre" | "gretap" => self.encapsulated(depth),
            _ if word.starts_with('@') => self.reference(),
            _ => match self.header()? {
                Some(expr) => Ok(expr),
                None => match known(&BARE_META, word) {
                    Some(key) => {
                        self.advance();
                        Ok(Expr::Meta(key))
                    }
                    None => self.plain(depth),
                },
            },
        }
    }

    /// `ip saddr`: a protocol followed by one of its fields.
    fn header(&mut self) -> Parsed<Option<Expr>> {
        let protocol = self.word();
        if !PAYLOAD.iter().any(|(name, _)| *name == protocol) {
            return Ok(None);
        }
        let back = *self;
        self.advance();
        let field = self.word();
        if matches!((protocol, field), ("tcp" | "ip" | "sctp", "option" | "chunk")) {
            let place = back.place();
            self.advance();
            self.name("the name of an option")?;
            let next = self.word();
            let ends = ["exists", "missing", "set"].contains(&next);
            if !ends && Relation::from_word(next).is_none() && !self.at_stop() {
                self.advance();
            }
            return Ok(Some(Expr::Other(self.since(place).into())));
        }
        if protocol == "arp" && matches!(field, "saddr" | "daddr") {
            self.advance();
            let field = format!("{field} {}", self.word());
            if let Some(expr) = payload(protocol, &field) {
                self.advance();
                return Ok(Some(expr));
            }
        } else if let Some(expr) = payload(protocol, field) {
            self.advance();
            return Ok(Some(expr));
        }
        *self = back;
        Ok(None)
    }

    fn ct(&mut self) -> Parsed<Expr> {
        self.advance();
        let direction = TupleDirection::from_word(self.word());
        if direction.is_some() {
            self.advance();
        }
        let mut key = self.word().to_owned();
        if matches!(self.word(), "ip" | "ip6") {
            self.advance();
            key = format!("{key} {}", self.word());
        }
        let key = known(&CT, &key).ok_or_else(|| self.wanted("what of `ct`"))?;
        self.advance();
        Ok(Expr::Ct(direction, key))
    }

    fn fib(&mut self) -> Parsed<Expr> {
        let mut fib = Fib::default();
        loop {
            self.advance();
            match self.word() {
                "saddr" => fib.saddr = true,
                "daddr" => {}
                "mark" => fib.mark = true,
                "iif" => fib.iif = true,
                "oif" => fib.oif = true,
                _ => return Err(self.wanted("`saddr`, `daddr`, `mark`, `iif` or `oif`")),
            }
            self.advance();
            if self.word() != "." {
                break;
            }
        }
        fib.result = match self.word() {
            "type" => FibResult::Type,
            // Newer releases print `oif exists` and `oif missing`.
            "oif" | "check" => FibResult::Oif,
            "oifname" => FibResult::Oifname,
            _ => return Err(self.wanted("`type`, `oif`, `oifname` or `check`")),
        };
        self.advance();
        Ok(Expr::Fib(fib))
    }

    fn numgen(&mut self) -> Parsed<Expr> {
        self.advance();
        let inc = match self.word() {
            "inc" => true,
            "random" => false,
            _ => return Err(self.wanted("`inc` or `random`")),
        };
        self.advance();
        let modulus = self.modulus()?;
        Ok(Expr::Numgen { inc, modulus, offset: self.offset()? })
    }

    fn hash(&mut self, depth: u8) -> Parsed<Expr> {
        let over = match self.word() {
            "jhash" => {
                self.advance();
                let first = self.primary(depth + 1)?;
                Some(Box::new(self.concat(first, |lexer| lexer.primary(depth + 1))?))
            }
            _ => {
                self.advance();
                None
            }
        };
        let modulus = self.modulus()?;
        let mut seed = None;
        if self.take("seed") {
            seed = Some(number(self.word()).ok_or_else(|| self.wanted("a seed"))?);
            self.advance();
        }
        Ok(Expr::Hash { over, modulus, seed, offset: self.offset()? })
    }

    fn modulus(&mut self) -> Parsed<u64> {
        if !self.take("mod") {
            return Err(self.wanted("`mod`"));
        }
        match self.number("a number, at least 1")? {
            0 => Err(self.fault("found `mod 0`, expected at least 1".into())),
            some => Ok(some),
        }
    }

    fn offset(&mut self) -> Parsed<u64> {
        if self.take("offset") { self.number("a number") } else { Ok(0) }
    }

    /// An unmodelled expression: the words up to the value that it is compared with.
    fn unmodelled(&mut self) -> Parsed<Expr> {
        let place = self.place();
        let kind = self.word();
        self.advance();
        let words = match kind {
            "rt" if matches!(self.word(), "ip" | "ip6") => 2,
            "ipsec" if self.word() == "in" || self.word() == "out" => {
                self.advance();
                match self.word() {
                    "spnum" => 4,
                    "ip" | "ip6" => 2,
                    _ => 1,
                }
            }
            _ => 1,
        };
        for _ in 0..words {
            self.name("what of it")?;
        }
        if kind == "socket" && self.take("level") {
            self.number("a level")?;
        }
        Ok(Expr::Other(self.since(place).into()))
    }

    /// A header field of the packet, or of an encapsulated packet (`vxlan ip saddr`), which is
    /// not modelled.
    fn encapsulated(&mut self, depth: u8) -> Parsed<Expr> {
        let place = self.place();
        if let Some(own) = self.header()? {
            return Ok(own);
        }
        self.advance();
        match PAYLOAD.iter().any(|(protocol, _)| *protocol == self.word()) {
            true => drop(self.primary(depth + 1)?),
            false => drop(self.name("a field of it")?),
        }
        Ok(Expr::Other(self.since(place).into()))
    }

    /// `@name`, or `@th,16,16`.
    fn reference(&mut self) -> Parsed<Expr> {
        let place = self.place();
        let name = &self.word()[1..];
        self.advance();
        if !matches!(name, "ll" | "nh" | "th" | "ih") || !self.at_mark(b',') {
            return Ok(Expr::SetRef(name.into()));
        }
        for _ in 0..2 {
            self.expect(b',', "`,`")?;
            self.number("a number of bits")?;
        }
        Ok(Expr::Other(self.since(place).into()))
    }

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
    fn plain(&mut self, depth: u8) -> Parsed<Expr> {
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
                let chain: Text = self.name("the name of a chain")?.into();
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

    pub(super) fn duration(&mut self) -> Parsed<Duration> {
        let duration = duration(self.word()).ok_or_else(|| self.wanted("a time: `1h30m`"))?;
        self.advance();
        Ok(duration)
    }

    /// What follows the left operand of a comparison.
    pub(super) fn comparison(&mut self, left: Expr) -> Parsed<Statement> {
        let named = Relation::from_word(self.word());
        if named.is_some() {
            self.advance();
        }
        let flags = has_flags(&left);
        let mut right = self.values(0)?;
        if self.word() == "|" {
            // nft prints `ct state != a,b` as `!= a | b`, and newer releases `tcp flags & (syn |
            // ack) == syn | ack`.
            let mut all = vec![right];
            while self.take("|") {
                all.push(self.values(0)?);
            }
            right = Expr::List(all);
        }
        if self.take("/") {
            // `tcp flags syn / syn,ack`: the mask comes last.
            let mut mask = vec![self.values(0)?];
            while self.take("|") {
                mask.push(self.values(0)?);
            }
            let only = if mask.len() == 1 { mask.pop() } else { None };
            let mask = only.unwrap_or(Expr::List(mask));
            let masked = Expr::Binary(BinaryOp::And, Box::new((left, mask)));
            let relation = named.unwrap_or(Relation::Eq);
            return Ok(Statement::Match { left: masked, relation, right });
        }
        let relation = match named {
            None if flags && !matches!(right, Expr::Set(_) | Expr::SetRef(_)) => Relation::Any,
            None => Relation::Eq,
            Some(relation) => relation,
        };
        if let (Expr::Binary(..), Expr::List(all)) = (&left, &mut right)
            && all.len() == 1
            && let Some(only) = all.pop()
        {
            right = only;
        }
        Ok(Statement::Match { left, relation, right })
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

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if word.bytes().all(|byte| byte.is_ascii_digit()) => word.parse().ok(),
        None => None,
    }
}

/// `1d2h3m4s5ms`
pub(super) fn duration(word: &str) -> Option<Duration> {
    let (mut rest, mut millis) = (word, 0u64);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let scale = match &rest[..unit] {
            "d" => 86_400_000,
            "h" => 3_600_000,
            "m" => 60_000,
            "s" | "" => 1000,
            "ms" => 1,
            _ => return None,
        };
        // Ends at a word between digits and letters.
        if unit == 0 && !rest.is_empty() {
            return None;
        }
        rest = &rest[unit..];
        millis = millis.checked_add(number.checked_mul(scale)?)?;
    }
    Some(Duration::from_millis(millis))
}
