//! The pages of codes as HTML: the part of Markdown that they use. What is not known stays
//! text.

use crate::xml::escape;

/// A page without its first heading, with links to those that are there.
pub(super) fn html(text: &str, there: &[String]) -> String {
    let mut page = Page { there, ..Page::default() };
    for line in text.lines() {
        page.line(line);
    }
    page.close_all();
    page.html
}

#[derive(Default)]
struct Page<'a> {
    there: &'a [String],
    html: String,
    /// What is gathered: a paragraph, or an item's words.
    words: String,
    /// Open lists, with the column that their items begin at.
    lists: Vec<(usize, &'static str)>,
    code: Vec<String>,
    /// Rows of a table.
    rows: Vec<Vec<String>>,
    fenced: bool,
    blank: bool,
}

impl Page<'_> {
    fn line(&mut self, line: &str) {
        if line.trim_start().starts_with("```") {
            self.fenced = !self.fenced;
            return match self.fenced {
                true => self.flush(),
                false => self.close_code(),
            };
        }
        let indent = line.len() - line.trim_start().len();
        let inner = self.lists.last().map_or(0, |(column, _)| column + 2);
        let is_code = indent >= inner + 4 || (indent >= 4 && self.lists.is_empty());
        if self.fenced || (is_code && (self.blank || !self.code.is_empty())) {
            self.flush();
            self.code.push(line.to_owned());
            self.blank = false;
            return;
        }
        if line.trim().is_empty() {
            if self.code.is_empty() {
                self.flush();
            } else {
                self.code.push(String::new());
            }
            self.blank = true;
            return;
        }
        self.close_code();
        let text = line.trim_start();
        if let Some(row) = text.strip_prefix('|').filter(|_| self.words.is_empty()) {
            if self.blank {
                self.close_all_but_table();
            }
            let cells = row.trim_end().trim_end_matches('|').split('|');
            self.blank = false;
            self.rows.push(cells.map(|cell| cell.trim().to_owned()).collect());
            return;
        }
        self.close_table();
        if let Some(heading) = text.strip_prefix("##") {
            self.close_all();
            let heading = heading.trim_start_matches('#').trim();
            self.html.push_str(&format!("<h4>{}</h4>\n", self.inline(heading)));
        } else if let Some((kind, words)) = item(text) {
            self.flush();
            while self.lists.last().is_some_and(|(column, _)| *column > indent) {
                self.close_list();
            }
            if self.lists.last().is_none_or(|(column, _)| *column < indent) {
                self.html.push_str(&format!("<{kind}>\n"));
                self.lists.push((indent, kind));
            } else {
                self.html.push_str("</li>\n");
            }
            self.html.push_str("<li>");
            self.words.push_str(words);
        } else {
            if self.blank && indent == 0 {
                self.close_all();
            }
            if !self.words.is_empty() {
                self.words.push(' ');
            }
            self.words.push_str(text);
        }
        self.blank = false;
    }

    fn close_table(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let is_rule =
            |row: &Vec<String>| row.iter().all(|cell| cell.bytes().all(|b| b"-: ".contains(&b)));
        if rows.is_empty() {
            return;
        }
        self.html.push_str("<table>\n");
        for (at, row) in rows.iter().filter(|row| !is_rule(row)).enumerate() {
            let (tag, scope) = if at == 0 { ("th", " scope=\"col\"") } else { ("td", "") };
            let cells: String = row
                .iter()
                .map(|cell| format!("<{tag}{scope}>{}</{tag}>", self.inline(cell)))
                .collect();
            self.html.push_str(&format!("<tr>{cells}</tr>\n"));
        }
        self.html.push_str("</table>\n");
    }

    fn flush(&mut self) {
        self.close_table();
        let words = std::mem::take(&mut self.words);
        if words.is_empty() {
            return;
        }
        match self.lists.is_empty() {
            true => self.html.push_str(&format!("<p>{}</p>\n", self.inline(&words))),
            false => self.html.push_str(&self.inline(&words)),
        }
    }

    fn close_list(&mut self) {
        self.flush();
        if let Some((_, kind)) = self.lists.pop() {
            self.html.push_str(&format!("</li>\n</{kind}>\n"));
        }
    }

    fn close_code(&mut self) {
        while self.code.last().is_some_and(|line| line.trim().is_empty()) {
            self.code.pop();
        }
        if self.code.is_empty() {
            return;
        }
        let lines = std::mem::take(&mut self.code);
        let indent = |line: &String| line.len() - line.trim_start().len();
        let least = lines.iter().filter(|one| !one.trim().is_empty()).map(indent).min();
        let least = least.unwrap_or(0);
        let lines: Vec<String> =
            lines.iter().map(|line| escape(line.get(least..).unwrap_or_default())).collect();
        self.html.push_str(&format!("<pre tabindex=\"0\">{}</pre>\n", lines.join("\n")));
    }

    fn close_all(&mut self) {
        self.close_code();
        self.close_all_but_table();
        self.flush();
    }

    fn close_all_but_table(&mut self) {
        if !self.words.is_empty() {
            self.flush();
        }
        while !self.lists.is_empty() {
            self.close_list();
        }
    }

    /// Code, bold and links within a line.
    fn inline(&self, text: &str) -> String {
        let mut html = String::new();
        for (at, part) in text.split('`').enumerate() {
            if at % 2 == 1 {
                html.push_str(&format!("<code>{}</code>", escape(part)));
                continue;
            }
            for (at, part) in part.split("**").enumerate() {
                match at % 2 {
                    1 => html.push_str(&format!("<b>{}</b>", escape(part))),
                    _ => html.push_str(&self.linked(part)),
                }
            }
        }
        html
    }

    fn linked(&self, text: &str) -> String {
        let link = || {
            let (before, rest) = text.split_once('[')?;
            let (what, rest) = rest.split_once("](")?;
            let (to, after) = rest.split_once(')')?;
            Some((before, what, to, after))
        };
        let Some((before, what, to, after)) = link() else { return escape(text) };
        let page = to.strip_suffix(".md").unwrap_or(to);
        let what = match self.there.iter().any(|one| one == page) {
            true => format!("<a href=\"#page-{}\">{}</a>", escape(page), escape(what)),
            // A page of the network has to be named, one of ours is printed by explain.
            false if to.starts_with("https://") => {
                format!("<a href=\"{}\">{}</a>", escape(to), escape(what))
            }
            false => format!("{} (<code>uturn explain {}</code>)", escape(what), escape(page)),
        };
        format!("{}{what}{}", escape(before), self.linked(after))
    }
}

fn item(text: &str) -> Option<(&'static str, &str)> {
    if let Some(words) = text.strip_prefix("- ") {
        return Some(("ul", words));
    }
    let (number, words) = text.split_once(". ")?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_number.then_some(("ol", words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_somewhere() {
        let there = ["UT101".to_owned()];
        assert_eq!(
            html("[a](UT101.md) [b](UT102.md) [c](https://x/)", &there),
            "<p><a href=\"#page-UT101\">a</a> b (<code>uturn explain UT102</code>) \
             <a href=\"https://x/\">c</a></p>\n"
        );
    }

    #[test]
    fn lists_code_and_words() {
        let text = "One `a<b` and **bold**,\nstill one.\n\n- first\n  goes on\n- second\n  - inner\n\n\
                    Then:\n\n    code <x>\n\n      more\n\nEnd.\n1. one\n2. two\n\n| a | b |\n| --- | --- |\n| 1 | `2` |\n\n## Next\n";
        assert_eq!(
            html(text, &[]),
            "<p>One <code>a&lt;b</code> and <b>bold</b>, still one.</p>\n<ul>\n<li>first goes on\
             </li>\n<li>second<ul>\n<li>inner</li>\n</ul>\n</li>\n</ul>\n<p>Then:</p>\n\
             <pre tabindex=\"0\">code &lt;x&gt;\n\n  more</pre>\n<p>End.</p>\n<ol>\n<li>one</li>\n\
             <li>two</li>\n</ol>\n<table>\n<tr><th scope=\"col\">a</th><th scope=\"col\">b</th></tr>\n\
             <tr><td>1</td><td><code>2</code></td></tr>\n</table>\n<h4>Next</h4>\n"
        );
    }
}
