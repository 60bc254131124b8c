//! Parses rules, statement by statement.

use uturn_model::Text;

use super::anonymous_chains::RuleContext;
use super::lex::{Lexer, Parsed, Token};
use super::read_statement::usual_reject;
use super::{Expr, RejectKind, Rule, Statement};

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

    pub(super) fn statements(
        &mut self,
        context: &mut RuleContext<'_>,
    ) -> (Vec<Statement>, Option<Text>) {
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
                let kind = self.word();
                if !matches!(kind, "match" | "target" | "watcher") {
                    return Err(self.wanted("`match`, `target` or `watcher`"));
                }
                self.advance();
                Statement::Xt(kind.into(), self.name("the name of an extension")?.into())
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
