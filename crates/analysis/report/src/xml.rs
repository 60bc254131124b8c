//! Escapes text for XML and HTML. Text of manifests never becomes markup.

use std::borrow::Cow;

use uturn_model::visible;

/// Escapes text for use between tags and inside quoted attributes, in XML and in HTML.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    match shown(&safe) {
        Cow::Owned(shown) => shown,
        Cow::Borrowed(_) => safe,
    }
}

/// Replaces every character of a text that XML cannot contain or a reader cannot see by an escape
/// such as `\x1b` or `\u{202e}`. The text may have tags.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    visible::lines_and_tabs(text)
}

/// Cuts a text to at most `most` characters, with `…` if some are missing.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_controls_do_not_pass() {
        assert_eq!(
            escape("<a b='c'>&\"\u{1b}\r\n"),
            "&lt;a b=&#39;c&#39;&gt;&amp;&quot;\\x1b\\r\n"
        );
    }

    #[test]
    fn cuts_by_characters() {
        assert_eq!(cut("häuser", 6), "häuser");
        assert_eq!(cut("häuser", 4), "häu…");
        assert_eq!(cut("ab cd", 4), "ab…");
    }
}
