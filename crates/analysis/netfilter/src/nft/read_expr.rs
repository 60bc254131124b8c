//! Parses expressions and elements.

use std::time::Duration;

use super::expr::{BARE_META, CT, META, PAYLOAD, has_flags, known, payload};
use super::lex::{Lexer, MAX_DEPTH, MAX_OPERANDS, Parsed, Token};
use super::read_value::{flags, number};
use super::{BinaryOp, Expr, Fib, FibResult, Relation, Statement, TupleDirection};

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

    pub(super) fn concat(
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
                let key =
                    known(&META, self.word()).ok_or_else(|| self.wanted("a key of `meta`"))?;
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

    pub(super) fn ct(&mut self) -> Parsed<Expr> {
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
        let key = known(&CT, &key).ok_or_else(|| self.wanted("a key of `ct`"))?;
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
            self.name("a field of it")?;
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
        if PAYLOAD.iter().any(|(protocol, _)| *protocol == self.word()) {
            drop(self.primary(depth + 1)?);
        } else {
            self.name("a field of it")?;
        }
        Ok(Expr::Other(self.since(place).into()))
    }

    /// `@name`, or `@th,16,16`.
    pub(super) fn reference(&mut self) -> Parsed<Expr> {
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

    pub(super) fn duration(&mut self) -> Parsed<Duration> {
        let duration = duration(self.word()).ok_or_else(|| self.wanted("a time: `1h30m`"))?;
        self.advance();
        Ok(duration)
    }

    /// Reads the operator and the right operand of a comparison, after its left operand.
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
