//! Parses the arguments of statements.

use uturn_model::Text;

use super::lex::{Lexer, Parsed};
use super::{
    Expr, Limit, Log, Nat, NatKind, Queue, Quota, Reject, RejectKind, SetOp, SetUpdate,
    TableFamily, Tproxy,
};

impl<'a> Lexer<'a> {
    pub(super) fn limit(&mut self) -> Parsed<Limit> {
        self.advance();
        if !self.take("rate") {
            return Err(self.wanted("`rate`"));
        }
        self.limit_rate()
    }

    /// The part after `limit rate`.
    fn limit_rate(&mut self) -> Parsed<Limit> {
        let over = self.take("over");
        let wanted = |lexer: &Self| lexer.wanted("a rate: `10/second` or `1 mbytes/second`");
        let (rate, unit, per) = match self.word().split_once('/') {
            Some((rate, per)) => (rate.parse().map_err(|_| wanted(self))?, None, per),
            None => {
                let rate = self.number("a rate")?;
                let (unit, per) = self.word().split_once('/').ok_or_else(|| wanted(self))?;
                (rate, Some(unit).filter(|unit| *unit != "packets"), per)
            }
        };
        self.advance();
        let mut limit =
            Limit { over, rate, unit: unit.map(Into::into), per: per.into(), burst: None };
        if self.take("burst") {
            let burst = self.number("a burst")?;
            let unit = self.name("`packets` or `bytes`")?;
            limit.burst =
                Some((burst, Some(unit).filter(|unit| *unit != "packets").map(Into::into)));
        }
        limit.burst = limit.burst.filter(|burst| !is_usual_burst(burst));
        Ok(limit)
    }

    pub(super) fn quota(&mut self) -> Parsed<Quota> {
        self.advance();
        let over = self.take("over");
        if !over {
            self.take("until");
        }
        let amount = self.amount()?;
        let used = if self.take("used") { Some(self.amount()?) } else { None };
        Ok(Quota { over, amount, used })
    }

    fn amount(&mut self) -> Parsed<(u64, Text)> {
        let number = self.number("an amount")?;
        Ok((number, self.name("`bytes`, `kbytes` or `mbytes`")?.into()))
    }

    pub(super) fn reject(&mut self) -> Parsed<Reject> {
        self.advance();
        if !self.take("with") {
            // The default, which depends on the table.
            return Ok(Reject { kind: RejectKind::Icmpx, code: "".into() });
        }
        if self.take("tcp") {
            return if self.take("reset") {
                Ok(Reject { kind: RejectKind::TcpReset, code: "".into() })
            } else {
                Err(self.wanted("`reset`"))
            };
        }
        let kind = RejectKind::from_word(self.word());
        let kind = kind.ok_or_else(|| self.wanted("`icmp`, `icmpv6`, `icmpx` or `tcp reset`"))?;
        self.advance();
        self.take("type");
        Ok(Reject { kind, code: self.name("a code, such as `port-unreachable`")?.into() })
    }

    pub(super) fn log(&mut self) -> Parsed<Log> {
        self.advance();
        let mut log = Log::default();
        loop {
            let word = self.word();
            match word {
                "prefix" => {
                    self.advance();
                    log.prefix = Some(self.name("a prefix")?.into());
                }
                "group" | "snaplen" | "queue-threshold" => {
                    self.advance();
                    let at = usize::from(word != "group") + usize::from(word == "queue-threshold");
                    log.numbers[at] = Some(self.number("a number")?);
                }
                "level" => {
                    self.advance();
                    let level = self.name("a level")?;
                    log.level = Some(level).filter(|level| *level != "warn").map(Into::into);
                }
                "flags" => {
                    self.advance();
                    let first = self.name("a flag")?;
                    let mut flag = first.to_owned();
                    if matches!(first, "tcp" | "ip") {
                        flag = format!("{flag} {}", self.name("a flag")?);
                        while self.take_mark(b',') {
                            flag = format!("{flag},{}", self.name("a flag")?);
                        }
                    }
                    log.flags.push(flag.into());
                }
                _ => return Ok(log),
            }
        }
    }

    pub(super) fn queue(&mut self) -> Parsed<Queue> {
        self.advance();
        let mut queue = Queue::default();
        loop {
            if self.take("to") || self.take("num") {
                queue.to = Some(self.expr(0)?);
            } else if self.take("flags") || matches!(self.word(), "bypass" | "fanout") {
                queue.flags = self.words()?;
            } else {
                return Ok(queue);
            }
        }
    }

    /// Words separated by commas.
    pub(super) fn words(&mut self) -> Parsed<Vec<Text>> {
        let mut all = vec![self.name("a word")?.into()];
        while self.take_mark(b',') {
            all.push(self.name("a word")?.into());
        }
        Ok(all)
    }

    pub(super) fn family(&mut self) -> Option<Text> {
        let family = Some(self.word()).filter(|word| matches!(*word, "ip" | "ip6"));
        if family.is_some() {
            self.advance();
        }
        family.map(Into::into)
    }

    pub(super) fn tproxy(&mut self) -> Parsed<Tproxy> {
        self.advance();
        let family = self.family();
        if !self.take("to") {
            return Err(self.wanted("`to`"));
        }
        let (address, port) = self.end()?;
        Ok(Tproxy { family, address, port })
    }

    pub(super) fn nat(&mut self) -> Parsed<Nat> {
        let kind = NatKind::from_word(self.word()).ok_or_else(|| self.wanted("a translation"))?;
        self.advance();
        let mut nat =
            Nat { kind, family: None, prefix: false, address: None, port: None, flags: Vec::new() };
        if matches!(kind, NatKind::Dnat | NatKind::Snat) {
            nat.family = self.family();
            nat.prefix = self.take("prefix");
            // `addr . port to` names the types of the map's data, which are known from the map.
            if self.take("addr") && !(self.take(".") && self.take("port")) {
                return Err(self.wanted("`. port`"));
            }
        }
        if self.take("to") {
            (nat.address, nat.port) = self.end()?;
        } else if matches!(kind, NatKind::Dnat | NatKind::Snat) {
            return Err(self.wanted("`to`"));
        }
        if self.take(":") {
            nat.port = Some(self.expr(0)?);
        }
        if matches!(self.word(), "random" | "fully-random" | "persistent") {
            nat.flags = self.words()?;
        }
        Ok(nat)
    }

    /// `10.0.0.1:80`, `[fd00::1]:80`, `:80`, `10.0.0.1-10.0.0.9:80-90`, a map, …
    pub(super) fn end(&mut self) -> Parsed<(Option<Expr>, Option<Expr>)> {
        let word = self.word();
        let plain = |text: &str| Some(super::read_value::value(text)).filter(is_plain);
        if let Some(port) = word.strip_prefix(':') {
            if let Some(port) = plain(port) {
                self.advance();
                return Ok((None, Some(port)));
            }
        } else if word.starts_with('[') {
            // `[fd00::1]:80` or `[fd00::1-fd00::9]:80` or `[fd00::1]-[fd00::9]:80`
            let (addresses, port) = match word.rsplit_once("]:") {
                Some((addresses, port)) => (addresses, plain(port)),
                None => (word.trim_end_matches(']'), None),
            };
            let addresses: String = addresses.chars().filter(|c| !"[]".contains(*c)).collect();
            if let Some(addresses) = plain(&addresses) {
                self.advance();
                return Ok((Some(addresses), port));
            }
        } else if let Some((addresses, port)) = word.split_once(':')
            && let (Some(addresses), Some(port), false) =
                (plain(addresses), plain(port), port.contains(':'))
            && addresses.is_address()
        {
            self.advance();
            return Ok((Some(addresses), Some(port)));
        }
        // The port comes from a map: `:tcp dport map { 80 : 8080 }`, with or without an address.
        let address = match word.split_once(':') {
            Some(("", port)) if !port.is_empty() => Some(None),
            Some((address, port)) if !port.is_empty() && !port.contains(':') => {
                plain(address).filter(Expr::is_address).map(Some)
            }
            _ => None,
        };
        if let Some(address) = address {
            let length = word.find(':').map_or(0, |at| at + 1);
            self.take_beginning(&word[..length]);
            return Ok((address, Some(self.expr(0)?)));
        }
        Ok((Some(self.expr(0)?), None))
    }

    pub(super) fn update(&mut self) -> Parsed<SetUpdate> {
        let op = SetOp::from_word(self.word()).ok_or_else(|| self.wanted("`add`"))?;
        self.advance();
        let set = self.word().strip_prefix('@').ok_or_else(|| self.wanted("a set: `@name`"))?;
        self.advance();
        self.expect(b'{', "`{`")?;
        let mut update = SetUpdate {
            op,
            set: set.into(),
            key: self.expr(1)?,
            data: None,
            timeout: None,
            statements: Vec::new(),
        };
        loop {
            if self.take_mark(b'}') {
                return Ok(update);
            }
            if self.take("timeout") {
                update.timeout = Some(self.duration()?);
            } else if self.take(":") {
                update.data = Some(match self.verdict()? {
                    Some(verdict) => super::Data::Verdict(verdict),
                    None => super::Data::Value(self.expr(1)?),
                });
            } else {
                match self.statement()? {
                    Some(statement) => update.statements.push(statement),
                    None => return Err(self.wanted("`}`")),
                }
            }
        }
    }
}

impl Expr {
    fn is_address(&self) -> bool {
        match self {
            Self::Address(_) | Self::Prefix(..) => true,
            Self::Range(ends) => ends.0.is_address(),
            _ => false,
        }
    }
}

fn is_plain(expr: &Expr) -> bool {
    !matches!(expr, Expr::Word(_) | Expr::Any)
}

/// The default of `reject` in a table of this family.
pub(super) fn usual_reject(family: TableFamily) -> Reject {
    let kind = match family {
        TableFamily::Ip => RejectKind::Icmp,
        TableFamily::Ip6 => RejectKind::Icmpv6,
        _ => RejectKind::Icmpx,
    };
    Reject { kind, code: "port-unreachable".into() }
}

pub(super) fn is_usual_burst(burst: &(u64, Option<Text>)) -> bool {
    match burst {
        (5, None) | (0, _) => true,
        (_, unit) => unit.is_some() && burst.0 == 0,
    }
}
