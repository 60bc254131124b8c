//! Finds the paths that a file's code imports: those of its `use` lines, and those written out in
//! full (`crate::…`, `super::…`) elsewhere, in macros too. Tests are left out.
//!
//! The tokens are enough for that. The syntax tree of syn would be compiled for this alone: what
//! the derive of clap uses is built without its visitors.

use proc_macro2::{Delimiter, Ident, LexError, TokenStream, TokenTree};

/// A path, segment by segment.
pub(super) type Segments = Vec<String>;

/// What a file imports.
#[derive(Debug, Default)]
pub(super) struct Imports {
    /// Every imported path. Those of `use a::{b, c::*}` are `a::b` and `a::c`.
    pub(super) paths: Vec<Segments>,
    /// The modules that the file declares as tests in files of their own.
    pub(super) tests: Vec<String>,
}

impl Imports {
    /// Reads the code of a file.
    pub(super) fn of(code: &str) -> Result<Self, LexError> {
        let mut imports = Self::default();
        imports.read(code.parse()?);
        Ok(imports)
    }

    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while let Some((token, behind)) = rest.split_first() {
            rest = match token {
                TokenTree::Punct(_) if is_test_attribute(rest) => self.skip_item(&behind[1..]),
                TokenTree::Ident(name) if name == "use" => self.read_tree(behind, &[]),
                TokenTree::Ident(name) if name == "crate" || name == "super" => {
                    self.read_path(name, behind)
                }
                TokenTree::Group(group) => {
                    self.read(group.stream());
                    behind
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => behind,
            };
        }
    }

    /// Reads one tree of a `use` line, below a path. Returns the tokens behind the tree.
    fn read_tree<'t>(&mut self, mut rest: &'t [TokenTree], prefix: &[String]) -> &'t [TokenTree] {
        let mut path = prefix.to_vec();
        while let Some((token, behind)) = rest.split_first() {
            rest = behind;
            match token {
                TokenTree::Punct(mark) if matches!(mark.as_char(), ':' | '*') => {}
                // Within braces, the prefix itself.
                TokenTree::Ident(name) if name == "self" && !prefix.is_empty() => {}
                TokenTree::Ident(name) if name == "as" => rest = behind.get(1..).unwrap_or(&[]),
                TokenTree::Ident(name) => path.push(name.to_string()),
                TokenTree::Group(group) => {
                    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
                    // The last comma may have nothing behind it.
                    let trees = trees.split(|token| is_mark(token, ','));
                    for tree in trees.filter(|tree| !tree.is_empty()) {
                        self.read_tree(tree, &path);
                    }
                    return rest;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => break,
            }
        }
        if !path.is_empty() {
            self.paths.push(path);
        }
        rest
    }

    /// Reads the rest of a path that is written out in full, and returns the tokens behind it.
    fn read_path<'t>(&mut self, first: &Ident, mut rest: &'t [TokenTree]) -> &'t [TokenTree] {
        let mut path = vec![first.to_string()];
        while let [one, two, TokenTree::Ident(name), behind @ ..] = rest
            && is_mark(one, ':')
            && is_mark(two, ':')
        {
            path.push(name.to_string());
            rest = behind;
        }
        if path.len() > 1 {
            self.paths.push(path);
        }
        rest
    }

    /// Returns the tokens behind an item that is for tests.
    fn skip_item<'t>(&mut self, item: &'t [TokenTree]) -> &'t [TokenTree] {
        let is_use = item.iter().take(3).any(|token| is_word(token, "use"));
        let end = item.iter().position(|token| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !is_use,
            token => is_mark(token, ';'),
        });
        let (item, behind) = item.split_at(end.map_or(item.len(), |end| end + 1));
        if let [.., word, TokenTree::Ident(name), TokenTree::Punct(_)] = item
            && is_word(word, "mod")
        {
            self.tests.push(name.to_string());
        }
        behind
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(name) if name == word)
}

fn is_mark(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.as_char() == character)
}

/// Returns whether tokens begin with `#[cfg(test)]`.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let [mark, TokenTree::Group(attribute), ..] = tokens else { return false };
    let inside: Vec<TokenTree> = attribute.stream().into_iter().collect();
    is_mark(mark, '#')
        && matches!(
            inside.as_slice(),
            [cfg, TokenTree::Group(condition)]
                if is_word(cfg, "cfg") && condition.stream().to_string() == "test"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &str) -> Vec<String> {
        let imports = Imports::of(code).unwrap();
        imports.paths.into_iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn trees_are_taken_apart() {
        assert_eq!(
            of("pub(crate) use crate::a::{self, B, c::{D as E, f::*},}; use g;"),
            ["crate::a", "crate::a::B", "crate::a::c::D", "crate::a::c::f", "g"]
        );
    }

    #[test]
    fn paths_in_full_count() {
        assert_eq!(of("fn f(x: super::a::B) { crate::c::d(x) }"), ["super::a::B", "crate::c::d"]);
        assert_eq!(of("impl crate::A for B<super::C> {}"), ["crate::A", "super::C"]);
        assert!(of("fn f() { self.use_it(); superb::x }").is_empty());
    }

    #[test]
    fn macros_are_read() {
        let code =
            "fn f() { assert!(matches!(a::b(), super::C::D { .. } | crate::e), \"super::f\"); }";
        assert_eq!(of(code), ["super::C::D", "crate::e"]);
        assert!(of("fn f() -> impl A + use<'_> { m!(a ? crate : b, superb::x) }").is_empty());
    }

    #[test]
    fn comments_and_texts_are_not_code() {
        let code = "//! [`crate::a`]\n/* crate::b */ const A: &str = r#\"crate::c\"#;\n\
                    /// [`super::d`]\nfn e() {}";
        assert!(of(code).is_empty());
    }

    #[test]
    fn tests_are_left_out() {
        let code = "#[cfg(test)] mod tests { use crate::a; } #[cfg(test)] pub use crate::b::{c, d};\n\
                    #[cfg(test)] #[allow(x)] fn e(a: [u8; 1]) -> super::E { super::f() }\n\
                    #[cfg(not(test))] use crate::c; #[cfg(test)] mod apart; mod d;";
        assert_eq!(of(code), ["crate::c"]);
        assert_eq!(Imports::of(code).unwrap().tests, ["apart"]);
    }
}
