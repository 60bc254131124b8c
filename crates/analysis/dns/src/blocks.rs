//! Parses server blocks: keys, and the tokens of each directive, grouped as Caddy's parser does.
//!
//! All tokens of a directive are in one list, even if other directives come between them, since
//! that is what a plugin receives. Snippets and imports are expanded token by token, and line
//! numbers decide where a directive ends, exactly as in Caddy.
//!
//! Written by hand, because the answer depends on Caddy's parser in every detail.

use std::collections::BTreeMap;

use uturn_model::{Origin, dns};

use crate::fault::Fault;
use crate::lexer::{Token, tokens};
use crate::pattern::PatternRoom;

/// The maximum number of tokens of a Corefile, which stops recursive imports.
const MAX_TOKENS: usize = 200_000;

/// The maximum number of imports of a Corefile.
const MAX_IMPORTS: usize = 10_000;

/// The maximum size in bytes of the files and snippets that a Corefile imports, each counted as
/// often as it is imported.
const MAX_IMPORTED: usize = 16 << 20;

/// One server block.
#[derive(Debug)]
pub(crate) struct Block {
    /// The zones, with their schemes and ports.
    pub(crate) keys: Vec<Token>,
    /// The directives with their tokens, in the order of their first occurrence.
    pub(crate) directives: Vec<(String, Vec<Token>)>,
}

/// A Corefile and the files mounted beside it, by number.
pub(crate) struct Files<'c> {
    files: Vec<&'c dns::CorefileFile>,
    main: &'c dns::Corefile,
    patterns: PatternRoom,
}

impl<'c> Files<'c> {
    pub(crate) fn new(main: &'c dns::Corefile) -> Self {
        Self { files: main.beside.iter().collect(), main, patterns: PatternRoom::default() }
    }

    /// Returns the remaining budget for regular expressions.
    pub(crate) fn patterns(&self) -> &PatternRoom {
        &self.patterns
    }

    /// Returns the place of a token.
    pub(crate) fn origin(&self, token: &Token) -> Origin {
        let origin = match token.file {
            0 => &self.main.origin,
            number => &self.files[number - 1].origin,
        };
        origin.within(token.line, token.column)
    }

    /// Returns the display name of a token's file.
    pub(crate) fn called(&self, token: &Token) -> &'c str {
        match token.file {
            0 => "Corefile",
            number => &self.files[number - 1].path,
        }
    }

    /// Returns the text of a mounted file.
    pub(crate) fn text(&self, path: &str) -> Option<&'c str> {
        self.files.iter().find(|file| *file.path == *path).map(|file| &*file.text)
    }

    pub(crate) fn fault(&self, token: &Token, message: impl Into<String>) -> Fault {
        Fault { origin: self.origin(token), message: message.into() }
    }
}

/// Reads all server blocks. Stops at the first error at which CoreDNS would stop.
pub(crate) fn read(files: &Files<'_>) -> Result<Vec<Block>, Fault> {
    let mut rest = tokens(&files.main.text, 0);
    rest.reverse();
    let mut parser = Parser {
        files,
        read: Vec::new(),
        rest,
        snippets: BTreeMap::new(),
        imports: 0,
        imported: 0,
    };
    let mut blocks = Vec::new();
    while parser.next() {
        let block = parser.block()?;
        if !block.keys.is_empty() {
            blocks.push(block);
        }
    }
    Ok(blocks)
}

struct Parser<'f, 'c> {
    files: &'f Files<'c>,
    /// The tokens read so far; the last is the current one.
    read: Vec<Token>,
    /// The remaining tokens in reverse order; imports are pushed at the end.
    rest: Vec<Token>,
    snippets: BTreeMap<String, Vec<Token>>,
    imports: usize,
    /// The bytes of all imports.
    imported: usize,
}

impl<'c> Parser<'_, 'c> {
    fn next(&mut self) -> bool {
        let next = self.rest.pop();
        let there = next.is_some();
        self.read.extend(next);
        there
    }

    fn back(&mut self) {
        self.rest.extend(self.read.pop());
    }

    fn token(&self) -> Token {
        let nothing = Token { file: 0, line: 1, column: 1, text: String::new() };
        self.read.last().cloned().unwrap_or(nothing)
    }

    fn is(&self, word: &str) -> bool {
        self.read.last().is_some_and(|token| token.text == word)
    }

    fn is_new_line(&self) -> bool {
        match self.read.as_slice() {
            [.., before, token] => is_new_line(before, token),
            _ => true,
        }
    }

    fn fault<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(self.files.fault(&self.token(), message))
    }

    fn block(&mut self) -> Result<Block, Fault> {
        let (mut keys, ended) = self.keys()?;
        let mut directives = Vec::new();
        if ended {
            return Ok(Block { keys, directives });
        }
        if let [only] = keys.as_slice()
            && let Some(name) = only.text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'))
        {
            self.snippet(name.to_owned())?;
            keys.clear();
            return Ok(Block { keys, directives });
        }
        let braces = self.is("{");
        if !braces {
            // A single server needs no braces.
            self.back();
        }
        self.directives(&mut directives)?;
        if braces && !self.is("}") {
            return self.fault("expected } at the end of the server block");
        }
        Ok(Block { keys, directives })
    }

    /// Reads the keys of a block. Returns them, and whether the block is empty.
    fn keys(&mut self) -> Result<(Vec<Token>, bool), Fault> {
        let mut keys = Vec::new();
        let mut another = false;
        loop {
            let mut token = self.token();
            token.text = self.settled(&token)?;
            if token.text == "import" && self.is_new_line() {
                self.import()?;
                if !self.next() {
                    return Ok((keys, true));
                }
                continue;
            }
            if token.text == "{" {
                if another {
                    return self.fault("expected another zone after the comma, found {");
                }
                return Ok((keys, false));
            }
            if !token.text.is_empty() {
                another = token.text.ends_with(',');
                if another {
                    token.text.pop();
                }
                keys.push(token);
            }
            if !self.next() {
                return if another {
                    self.fault("expected another zone after the comma, found the end")
                } else {
                    Ok((keys, true))
                };
            }
            if !another && self.is_new_line() {
                return Ok((keys, false));
            }
        }
    }

    fn snippet(&mut self, name: String) -> Result<(), Fault> {
        if self.snippets.contains_key(&name) {
            return self.fault(format!("snippet {name} is defined twice"));
        }
        if !self.is("{") {
            return self.fault("expected { after the name of the snippet");
        }
        let mut open = 1;
        let mut inside = Vec::new();
        while self.next() {
            if self.is("}") {
                open -= 1;
                if open == 0 {
                    self.snippets.insert(name, inside);
                    return Ok(());
                }
            }
            if self.is("{") {
                open += 1;
            }
            inside.push(self.token());
        }
        self.fault("expected } at the end of the snippet")
    }

    fn directives(&mut self, directives: &mut Vec<(String, Vec<Token>)>) -> Result<(), Fault> {
        let mut places = BTreeMap::new();
        while self.next() {
            if self.is("}") {
                return Ok(());
            }
            if self.is("import") {
                self.import()?;
                continue;
            }
            let (name, words) = self.directive()?;
            let at = *places.entry(name.clone()).or_insert(directives.len());
            match directives.get_mut(at) {
                Some((_, known)) => known.extend(words),
                None => directives.push((name, words)),
            }
        }
        Ok(())
    }

    fn directive(&mut self) -> Result<(String, Vec<Token>), Fault> {
        let mut words = vec![self.token()];
        let name = self.settled(&words[0])?;
        let mut open = 0;
        while self.next() {
            if self.is("{") {
                open += 1;
            } else if self.is_new_line() && open == 0 {
                self.back();
                break;
            } else if self.is("}") && open > 0 {
                open -= 1;
            } else if self.is("}") {
                return self.fault("found } without an open block");
            } else if self.is("import") && self.is_new_line() {
                self.import()?;
                continue;
            }
            let mut token = self.token();
            token.text = self.settled(&token)?;
            words.push(token);
        }
        if open > 0 {
            return self.fault(format!("expected }} at the end of {name}, found the end"));
        }
        Ok((name, words))
    }

    /// Replaces `import NAME` by a snippet or files, and steps back to before it.
    fn import(&mut self) -> Result<(), Fault> {
        let follows = |before: Option<&Token>, token: Option<&Token>| {
            let (before, token) = (before?, token?);
            (before.file == token.file && before.last_line() == token.line).then_some(())
        };
        let mut ahead = self.rest.iter().rev();
        let (named, another) = (ahead.next(), ahead.next());
        let Some(named) = named.filter(|named| follows(self.read.last(), Some(named)).is_some())
        else {
            return self.fault("expected the name of a snippet or a file after import");
        };
        if follows(Some(named), another).is_some() {
            return self.fault("expected one name after import, found more");
        }
        let named = named.clone();
        let name = self.settled(&named)?;
        self.imports += 1;
        self.imported += match self.snippets.get(&name) {
            Some(inside) => inside.iter().map(|token| token.text.len()).sum::<usize>(),
            None => {
                self.named(&named, &name)?.iter().map(|(_, file)| file.text.len()).sum::<usize>()
            }
        };
        if self.imports > MAX_IMPORTS {
            return self.fault(format!(
                "imports itself endlessly, or has more than {MAX_IMPORTS} imports"
            ));
        }
        if self.imported > MAX_IMPORTED {
            let most = MAX_IMPORTED >> 20;
            return self.fault(format!("imports more than {most} MiB, each import counted"));
        }
        let inside = match self.snippets.get(&name) {
            Some(inside) => inside.clone(),
            None => self.tokens_of(&self.named(&named, &name)?),
        };
        if self.read.len() + self.rest.len() + inside.len() > MAX_TOKENS {
            return self.fault("imports itself endlessly");
        }
        self.read.pop();
        self.rest.pop();
        self.rest.extend(inside.into_iter().rev());
        Ok(())
    }

    /// Returns the files that an import names, by number.
    fn named(
        &self,
        token: &Token,
        pattern: &str,
    ) -> Result<Vec<(usize, &'c dns::CorefileFile)>, Fault> {
        let path = if pattern.starts_with('/') {
            pattern.to_owned()
        } else {
            format!("{}/{}", dns::COREFILE_FOLDER, pattern.trim_start_matches("./"))
        };
        if path.matches('*').count() > 1 || path.contains(['?', '[']) {
            let message = format!("import {pattern}: only one * is understood");
            return Err(self.files.fault(token, message));
        }
        let files = (1..).zip(self.files.files.iter().copied());
        let mut found: Vec<_> = files.filter(|(_, file)| fits(&path, &file.path)).collect();
        if found.is_empty() && !path.contains('*') {
            let message = format!("import {pattern}: no such file is in a known ConfigMap");
            return Err(self.files.fault(token, message));
        }
        found.sort_by_key(|(_, file)| &*file.path);
        Ok(found)
    }

    fn tokens_of(&self, named: &[(usize, &dns::CorefileFile)]) -> Vec<Token> {
        named.iter().flat_map(|(number, file)| tokens(&file.text, *number)).collect()
    }

    /// Returns the token's text. Fails if it contains environment variables, whose values are
    /// unknown.
    fn settled(&self, token: &Token) -> Result<String, Fault> {
        for (open, close) in [("{%", "%}"), ("{$", "}")] {
            if let Some(start) = token.text.find(open)
                && let Some(end) = token.text[start..].find(close)
                && end > open.len()
            {
                let name = &token.text[start + open.len()..start + end];
                let message = format!(
                    "depends on the environment variable {name} of CoreDNS, which is not known"
                );
                return Err(self.files.fault(token, message));
            }
        }
        Ok(token.text.clone())
    }
}

/// Returns whether a token starts a line, given the token before it.
pub(crate) fn is_new_line(before: &Token, token: &Token) -> bool {
    before.file != token.file || before.last_line() < token.line
}

/// Returns whether a path matches a pattern with at most one `*`, which does not match a slash.
fn fits(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((start, end)) => path
            .strip_prefix(start)
            .and_then(|rest| rest.strip_suffix(end))
            .is_some_and(|middle| !middle.contains('/')),
    }
}
