//! Anonymous chains, which are written inside the rule that jumps to them, and rules that start
//! like a comment.

use uturn_model::{SourceName, Text};

use super::lex::{Lexer, Token};
use super::{Chain, TableFamily, Verdict};

/// The maximum nesting of anonymous chains: the kernel's own limit on nested jumps.
const MAX_DEPTH: u8 = 16;

/// The context of the rules being parsed, and the anonymous chains found in them.
pub(super) struct RuleContext<'s> {
    pub(super) source: &'s SourceName,
    pub(super) family: TableFamily,
    /// `jump { … }` jumps to a chain that no other rule can name.
    pub(super) anonymous: Vec<Chain>,
    depth: u8,
}

impl<'s> RuleContext<'s> {
    pub(super) fn new(source: &'s SourceName, family: TableFamily) -> Self {
        Self { source, family, anonymous: Vec::new(), depth: 0 }
    }

    pub(super) fn may_go_deeper(&self) -> bool {
        self.depth < MAX_DEPTH
    }
}

impl Lexer<'_> {
    /// Skips to the next rule or the end of the chain. A rule whose first condition nft could not
    /// print starts like a comment.
    pub(super) fn skip_to_rule(&mut self) {
        loop {
            match self.token() {
                Token::Newline | Token::Mark(b';') => {}
                Token::Remark(remark) if !is_rule(remark) => {}
                _ => return,
            }
            self.advance();
        }
    }

    /// The verdict constructor if `jump {` or `goto {` starts here.
    pub(super) fn leads_to_anonymous(&self) -> Option<fn(Text) -> Verdict> {
        let leads = match self.word() {
            "jump" => Verdict::Jump,
            "goto" => Verdict::Goto,
            _ => return None,
        };
        let mut next = *self;
        next.advance();
        next.at_mark(b'{').then_some(leads)
    }

    /// Parses an anonymous chain, and returns the name assigned to it.
    pub(super) fn anonymous(&mut self, context: &mut RuleContext<'_>) -> Text {
        let origin = self.origin(context.source);
        self.advance();
        let (place, line) = (self.place(), origin.line());
        self.advance();
        let name: Text = format!("__chain{line}.{}", self.column(place)).into();
        let mut chain =
            Chain { name: name.clone(), base: None, comment: None, rules: Vec::new(), origin };
        context.depth += 1;
        loop {
            self.skip_to_rule();
            // If the text ends here, the enclosing chain reports it.
            if self.token() == Token::End || self.take_mark(b'}') {
                break;
            }
            if matches!(self.word(), "type" | "policy" | "comment" | "flags") {
                self.no_rule();
            }
            let before = self.place();
            chain.rules.push(self.rule(context));
            if self.place() == before {
                self.advance();
            }
        }
        context.depth -= 1;
        context.anonymous.push(chain);
        name
    }
}

/// Whether a comment is a rule of `iptables-nft` that nft could not print in full: `# xt_addrtype
/// counter packets 0 bytes 0 jump X`, `# match-set X dst counter …`.
fn is_rule(remark: &str) -> bool {
    let text = remark.trim_start_matches('#').trim_start();
    let names_it = ["xt_", "match-set "].iter().any(|start| text.starts_with(start));
    names_it || text.contains(" counter packets ")
}
