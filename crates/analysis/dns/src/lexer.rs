//! Splits a Corefile into tokens as Caddy's lexer does.
//!
//! Tokens are separated by white space; a token that *starts* with a quote extends to the next
//! quote, and only there does a backslash escape a quote. A `#` starts a comment even within a
//! token. Only quotes and braces span lines.

/// A token and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The file of the token: 0 is the Corefile, others are imported.
    pub(crate) file: usize,
    /// The line of the first character, counted from 1.
    pub(crate) line: u32,
    /// The column of the first character, counted in characters from 1.
    pub(crate) column: u32,
    pub(crate) text: String,
}

impl Token {
    /// Returns the line of the token's last character, as Caddy counts.
    pub(crate) fn last_line(&self) -> u32 {
        self.line + self.text.matches('\n').count() as u32
    }
}

/// Splits a text into tokens.
pub(crate) fn tokens(text: &str, file: usize) -> Vec<Token> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut tokens = Vec::new();
    let mut word: Option<Token> = None;
    let (mut line, mut column) = (1u32, 0u32);
    let (mut comment, mut quoted, mut escaped) = (false, false, false);
    for letter in text.chars() {
        let at = (line, column + 1);
        (line, column) = if letter == '\n' { (line + 1, 0) } else { (line, column + 1) };
        if quoted {
            if !escaped && letter == '\\' {
                escaped = true;
                continue;
            }
            if !escaped && letter == '"' {
                quoted = false;
                tokens.extend(word.take());
                continue;
            }
            if let Some(word) = &mut word {
                if escaped && letter != '"' {
                    word.text.push('\\');
                }
                word.text.push(letter);
            }
            escaped = false;
            continue;
        }
        if letter.is_whitespace() {
            if letter == '\r' {
                continue;
            }
            comment &= letter != '\n';
            tokens.extend(word.take());
            continue;
        }
        comment |= letter == '#';
        if comment {
            continue;
        }
        let Some(word) = &mut word else {
            let (line, column) = at;
            quoted = letter == '"';
            let text = if quoted { String::new() } else { letter.to_string() };
            word = Some(Token { file, line, column, text });
            continue;
        };
        word.text.push(letter);
    }
    // An unclosed quote ends at the end of the text; an empty token is dropped.
    tokens.extend(word.filter(|word| !word.text.is_empty()));
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        tokens(text, 0).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_are_cut_as_caddy_cuts_them() {
        assert_eq!(words(".:53 {\n\terrors # a } comment\n}"), [".:53", "{", "errors", "}"]);
        assert_eq!(words("a \"b c\" d\"e f\""), ["a", "b c", "d\"e", "f\""]);
        assert_eq!(words(r#""a \"b\" \n""#), [r#"a "b" \n"#]);
        assert_eq!(words("a#b c\nd"), ["a", "d"]);
        assert_eq!(words("\"open\nline"), ["open\nline"]);
        assert_eq!(words("\"\" \""), [""]);
        assert_eq!(words("a\rb\r\n\u{feff}"), ["ab", "\u{feff}"]);
    }

    #[test]
    fn places_are_counted_from_one() {
        let tokens = tokens("\u{feff}a {\n  \"x\ny\" z\n}", 0);
        let places: Vec<_> = tokens.iter().map(|token| (token.line, token.column)).collect();
        assert_eq!(places, [(1, 1), (1, 3), (2, 3), (3, 4), (4, 1)]);
        assert_eq!(tokens[2].last_line(), 3);
    }
}
