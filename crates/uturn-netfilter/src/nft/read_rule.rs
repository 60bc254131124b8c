//! Parses rules, statement by statement.

use uturn_model::Text;

use super::anonymous_chains::RuleContext;
use super::lex::{Lexer, Parsed, Token};
use super::{
    Expr, Limit, Log, Nat, NatKind, Queue, Quota, Reject, RejectKind, Rule, SetOp, SetUpdate,
    Statement, TableFamily, Tproxy,
};

/// Keywords of actions, at which parsing resumes after an unknown statement. It does not resume
/// at a condition: after `vxlan`, `ip saddr` refers to the inner packet.
const BEGINNINGS: [&str; 21] = [
    "accept",
    "drop",
    "continue",
    "return",
    "jump",
    "goto",
    "counter",
    "reject",
    "log",
    "dnat",
    "snat",
    "masquerade",
    "redirect",
    "notrack",
    "tproxy",
    "queue",
    "limit",
    "quota",
    "add",
    "update",
    "xt",
];

/// After an unknown statement, parsing tries to resume at most at this many words.
const MAX_TRIES: usize = 64;

/// The capacity reserved for a rule's statements, which suffices for most.
const USUAL: usize = 2;

impl<'a> Lexer<'a> {
    /// Parses a rule to the end of its line. Accepts any text: what is not understood is kept as
    /// written.
    pub(super) fn rule(&mut self, context: &mut RuleContext<'_>) -> Rule {
        let (origin, family) = (self.origin(context.source), context.family);
        let (statements, comment) = self.statements(context);
        let mut rule = Rule { statements, comment, origin };
        for statement in &mut rule.statements {
            if let Statement::Reject(reject) = statement
                && reject.code.is_empty()
                && reject.kind == RejectKind::Icmpx
            {
                *reject = usual_reject(family);
            }
        }
        rule
    }

    fn statements(&mut self, context: &mut RuleContext<'_>) -> (Vec<Statement>, Option<Text>) {
        let (mut statements, mut comment) = (Vec::with_capacity(USUAL), None);
        loop {
            // A handle has no meaning here; other comments stand for what nft could not print.
            if let Token::Remark(remark) = self.token()
                && !is_handle(remark)
            {
                let tail = after_remark(remark);
                let known = remark.len() - tail.as_ref().map_or(0, |(_, rest)| *rest);
                statements.push(Statement::Unknown(remark[..known].trim_end().into()));
                if let Some(((more, remark_comment), _)) = tail {
                    statements.extend(more);
                    comment = remark_comment.or(comment);
                }
                self.advance();
                break;
            }
            if self.at_stop() {
                break;
            }
            if let Some(leads) = self.leads_to_anonymous()
                && context.may_go_deeper()
            {
                let name = self.anonymous(context);
                statements.push(Statement::Verdict(leads(name)));
                continue;
            }
            let back = *self;
            // Only valid at the end of a rule.
            if self.take("comment") {
                match self.name("a comment") {
                    Ok(text) if self.at_stop() => {
                        comment = Some(text.into());
                        continue;
                    }
                    _ => *self = back,
                }
            }
            match self.statement() {
                Ok(Some(statement)) => statements.push(statement),
                Ok(None) | Err(_) => {
                    *self = back;
                    let (unknown, rest) = self.not_understood();
                    statements.push(Statement::Unknown(unknown.into()));
                    // A comment may still follow.
                    let Some((more, remark_comment)) = rest else { continue };
                    statements.extend(more);
                    comment = remark_comment.or(comment);
                    break;
                }
            }
        }
        statements.shrink_to_fit();
        (statements, comment)
    }

    /// Consumes an unknown statement, up to the first word from which the rest of the rule
    /// parses.
    fn not_understood(&mut self) -> (&'a str, Option<Tail>) {
        let place = self.place();
        let mut tries = 0;
        self.advance_within();
        while !self.at_stop() && self.leads_to_anonymous().is_none() {
            let may_begin = BEGINNINGS.contains(&self.word()) || self.word() == "comment";
            if may_begin && tries < MAX_TRIES {
                tries += 1;
                let back = *self;
                if let Some(tail) = self.understood() {
                    return (back.since(place), Some(tail));
                }
                *self = back;
            }
            self.advance_within();
        }
        (self.since(place), None)
    }

    /// Skips a token, or a block in braces.
    fn advance_within(&mut self) {
        let (place, block) = (self.place(), self.at_mark(b'{'));
        self.advance();
        let mut depth = u32::from(block);
        while depth > 0 && !matches!(self.token(), Token::Newline | Token::End) {
            depth += u32::from(self.at_mark(b'{'));
            depth -= u32::from(self.at_mark(b'}'));
            self.advance();
        }
        if depth > 0 {
            self.block_unclosed(place);
        }
    }

    /// The rest of the rule, if all of it parses.
    fn understood(&mut self) -> Option<Tail> {
        let (mut statements, mut comment) = (Vec::new(), None);
        while !self.at_stop() {
            if self.take("comment") {
                comment = Some(self.name("a comment").ok()?.into());
                return self.ends_well().then_some((statements, comment));
            }
            statements.push(self.statement().ok()??);
        }
        self.ends_well().then_some((statements, comment))
    }

    /// Whether the rule ends here, without anything in a comment.
    fn ends_well(&self) -> bool {
        let odd = matches!(self.token(), Token::Remark(remark) if !is_handle(remark));
        self.at_stop() && !odd
    }

    /// Parses a statement; `None` if none starts here.
    pub(super) fn statement(&mut self) -> Parsed<Option<Statement>> {
        if let Some(verdict) = self.verdict()? {
            return Ok(Some(Statement::Verdict(verdict)));
        }
        let word = self.word();
        let statement = match word {
            "counter" | "limit" | "quota" if self.names_an_object(word)? => {
                Statement::Named(word.into(), self.object_name()?)
            }
            "synproxy" => {
                // `synproxy`, with or without options, replies in the server's place.
                return Ok(None);
            }
            "counter" => Statement::Counter(self.counter()?),
            "limit" => Statement::Limit(self.limit()?),
            "quota" => Statement::Quota(self.quota()?),
            "reject" => Statement::Reject(self.reject()?),
            "log" => Statement::Log(self.log()?),
            "queue" => Statement::Queue(self.queue()?),
            "notrack" => {
                self.advance();
                Statement::Notrack
            }
            "tproxy" => Statement::Tproxy(self.tproxy()?),
            "dnat" | "snat" | "masquerade" | "redirect" => Statement::Nat(self.nat()?),
            "add" | "update" | "delete" => Statement::Update(self.update()?),
            "flow" => {
                self.advance();
                if !self.take("add") && !self.take("offload") {
                    return Err(self.wanted("`add`"));
                }
                let name = self.name("the name of a flowtable")?;
                Statement::Flow(name.trim_start_matches('@').into())
            }
            "xt" => {
                self.advance();
                let kind = self.name("`match`, `target` or `watcher`")?.into();
                Statement::Xt(kind, self.name("the name of an extension")?.into())
            }
            "ct" => return self.ct_object(),
            "meter" | "dup" | "fwd" | "last" | "set" | "map" | "" => {
                return match self.token() {
                    Token::Mark(b'{' | b'(') => self.compared().map(Some),
                    _ => Ok(None),
                };
            }
            _ => return self.compared().map(Some),
        };
        Ok(Some(statement))
    }

    /// Parses an expression and the comparison or lookup that follows it.
    fn compared(&mut self) -> Parsed<Statement> {
        let left = self.expr(0)?;
        if matches!(left, Expr::Word(_) | Expr::Number(_)) {
            return Err(self.wanted("a statement"));
        }
        match self.word() {
            "set" => {
                self.advance();
                let value = self.expr(0)?;
                Ok(Statement::Set(left, value))
            }
            "vmap" => {
                self.advance();
                let map = self.map(0)?;
                Ok(Statement::Vmap(left, map))
            }
            _ => self.comparison(left),
        }
    }

    fn names_an_object(&mut self, kind: &str) -> Parsed<bool> {
        let back = *self;
        self.advance();
        if self.take("name") {
            return Ok(true);
        }
        *self = back;
        debug_assert_eq!(self.word(), kind);
        Ok(false)
    }

    /// The name of an object. A name looked up in a map (`ip saddr map @m`) is not supported.
    fn object_name(&mut self) -> Parsed<Text> {
        let quoted = matches!(self.token(), Token::Quoted(_));
        let name = self.name("the name of an object")?.into();
        let ends = self.at_stop() || BEGINNINGS.contains(&self.word());
        if quoted || ends { Ok(name) } else { Err(self.wanted("the end of a statement")) }
    }

    /// `ct helper set "ftp"`, or a condition on `ct`.
    fn ct_object(&mut self) -> Parsed<Option<Statement>> {
        let back = *self;
        self.advance();
        let kind = self.word();
        if matches!(kind, "helper" | "timeout" | "expectation") {
            self.advance();
            if self.take("set") {
                let name = self.object_name()?;
                return Ok(Some(Statement::Named(format!("ct {kind}").into(), name)));
            }
        }
        *self = back;
        if kind == "count" {
            return Ok(None);
        }
        self.compared().map(Some)
    }

    fn limit(&mut self) -> Parsed<Limit> {
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

    fn quota(&mut self) -> Parsed<Quota> {
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

    fn reject(&mut self) -> Parsed<Reject> {
        self.advance();
        if !self.take("with") {
            // The default, which depends on the table.
            return Ok(Reject { kind: RejectKind::Icmpx, code: "".into() });
        }
        if self.take("tcp") {
            return match self.take("reset") {
                true => Ok(Reject { kind: RejectKind::TcpReset, code: "".into() }),
                false => Err(self.wanted("`reset`")),
            };
        }
        let kind = RejectKind::from_word(self.word());
        let kind = kind.ok_or_else(|| self.wanted("`icmp`, `icmpv6`, `icmpx` or `tcp reset`"))?;
        self.advance();
        self.take("type");
        Ok(Reject { kind, code: self.name("a code, such as `port-unreachable`")?.into() })
    }

    fn log(&mut self) -> Parsed<Log> {
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

    fn queue(&mut self) -> Parsed<Queue> {
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

    fn family(&mut self) -> Option<Text> {
        let family = Some(self.word()).filter(|word| matches!(*word, "ip" | "ip6"));
        if family.is_some() {
            self.advance();
        }
        family.map(Into::into)
    }

    fn tproxy(&mut self) -> Parsed<Tproxy> {
        self.advance();
        let family = self.family();
        if !self.take("to") {
            return Err(self.wanted("`to`"));
        }
        let (address, port) = self.end()?;
        Ok(Tproxy { family, address, port })
    }

    fn nat(&mut self) -> Parsed<Nat> {
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
    fn end(&mut self) -> Parsed<(Option<Expr>, Option<Expr>)> {
        let word = self.word();
        let plain = |text: &str| Some(super::read_expr::value(text)).filter(is_plain);
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

    fn update(&mut self) -> Parsed<SetUpdate> {
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

/// The statements at the end of a rule, and its comment.
type Tail = (Vec<Statement>, Option<Text>);

/// The statements inside a comment (`# match-set x dst drop`): its parsable end, and their
/// length.
fn after_remark(remark: &str) -> Option<(Tail, usize)> {
    let mut lexer = Lexer::new(remark.trim_start_matches('#'));
    let whole = remark.len() - remark.trim_start_matches('#').len();
    let place = lexer.place();
    let (unknown, tail) = lexer.not_understood();
    let used = whole + place + unknown.len();
    tail.map(|tail| (tail, remark.len().saturating_sub(used)))
}

/// `# handle 12`
fn is_handle(remark: &str) -> bool {
    remark
        .strip_prefix("# handle ")
        .is_some_and(|rest| rest.trim_end().bytes().all(|byte| byte.is_ascii_digit()))
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
