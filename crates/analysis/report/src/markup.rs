//! Markup made by templates.

use std::borrow::Cow;
use std::fmt;

use askama::Template;
use askama::filters::HtmlSafe;

use crate::xml::shown;

/// HTML or SVG that a template or a renderer has made. Templates insert it unchanged and escape
/// every other text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup(Cow<'static, str>);

impl Markup {
    /// Renders a template. Characters that HTML and XML cannot hold, or a reader cannot see, become
    /// escapes.
    pub(crate) fn of(template: &impl Template) -> Self {
        let mut text = String::new();
        template
            .render_into(&mut Representable(&mut text))
            .expect("writing to a string does not fail");
        Self(text.into())
    }

    /// Makes markup of a part of the program itself: a style sheet, a script.
    pub(crate) const fn own(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Makes markup of text that a renderer has escaped already.
    pub(crate) fn escaped(text: String) -> Self {
        Self(text.into())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}

/// A writer that replaces characters that HTML and XML cannot contain or a reader cannot see.
struct Representable<'a>(&'a mut String);

impl fmt::Write for Representable<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(&shown(text));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Template)]
    #[template(source = "<p>{{ text }}{{ markup }}</p>", ext = "html")]
    struct Paragraph<'a> {
        text: &'a str,
        markup: Markup,
    }

    #[test]
    fn only_markup_is_not_escaped() {
        let paragraph = Paragraph { text: "<b>'\"&\u{1b}\r\n", markup: Markup::own("<i>x</i>") };
        assert_eq!(
            Markup::of(&paragraph).into_string(),
            "<p>&#60;b&#62;&#39;&#34;&#38;\\x1b\\r\n<i>x</i></p>"
        );
    }
}
