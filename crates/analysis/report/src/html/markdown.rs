//! Renders Markdown as HTML: the explanations of codes.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::markup::Markup;
use crate::xml::escape;

/// Renders a page without its title. A link to a page of `linked` leads to that page; a link to
/// another page names the command that prints it. Raw HTML stays text.
pub(super) fn render(text: &str, linked: &[String]) -> Markup {
    let mut closing = CowStr::Borrowed("");
    let mut is_title = false;
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => {
            is_title = true;
            None
        }
        Event::End(TagEnd::Heading(HeadingLevel::H1)) => {
            is_title = false;
            None
        }
        _ if is_title => None,
        // The page's own headings end at the third level.
        Event::Start(Tag::Heading { .. }) => Some(Event::Html("<h4>".into())),
        Event::End(TagEnd::Heading(_)) => Some(Event::Html("</h4>\n".into())),
        Event::Start(Tag::CodeBlock(_)) => Some(Event::Html("<pre tabindex=\"0\">".into())),
        Event::End(TagEnd::CodeBlock) => Some(Event::Html("</pre>\n".into())),
        Event::Start(Tag::Link { dest_url, link_type, title, id }) => {
            let page = dest_url.strip_suffix(".md").unwrap_or(&dest_url);
            let is_linked = linked.iter().any(|name| name == page);
            if !is_linked && !is_external(&dest_url) {
                closing = format!(" (<code>uturn explain {}</code>)", escape(page)).into();
                return None;
            }
            let dest_url =
                if is_linked { format!("#page-{page}").into() } else { dest_url.clone() };
            Some(Event::Start(Tag::Link { dest_url, link_type, title, id }))
        }
        Event::End(TagEnd::Link) => match std::mem::replace(&mut closing, "".into()) {
            closing if closing.is_empty() => Some(Event::End(TagEnd::Link)),
            closing => Some(Event::Html(closing)),
        },
        Event::Html(raw) | Event::InlineHtml(raw) => Some(Event::Text(raw)),
        event => Some(event),
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    Markup::escaped(page)
}

fn is_external(url: &str) -> bool {
    url.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str, linked: &[&str]) -> String {
        let linked: Vec<String> = linked.iter().map(ToString::to_string).collect();
        render(text, &linked).into_string()
    }

    #[test]
    fn links_lead_somewhere() {
        assert_eq!(
            html("[a](UT101.md) [b](UT102.md) [c](https://x/)", &["UT101"]),
            "<p><a href=\"#page-UT101\">a</a> b (<code>uturn explain UT102</code>) \
             <a href=\"https://x/\">c</a></p>\n"
        );
    }

    #[test]
    fn the_title_is_left_out_and_headings_fit_the_page() {
        assert_eq!(html("# UT101 a `b`\n\nc\n\n## D\n", &[]), "<p>c</p>\n<h4>D</h4>\n");
    }

    #[test]
    fn raw_html_stays_text() {
        assert_eq!(
            html("a <b>b</b>\n\n<script>x</script>\n\n    <pre>\n", &[]),
            "<p>a &lt;b&gt;b&lt;/b&gt;</p>\n&lt;script&gt;x&lt;/script&gt;\n\
             <pre tabindex=\"0\">&lt;pre&gt;\n</pre>\n"
        );
    }

    #[test]
    fn tables_are_tables() {
        let table = html("| a | b |\n| --- | --- |\n| 1 | `2` |\n", &[]);
        assert!(table.contains("<th>a</th>") && table.contains("<td><code>2</code></td>"));
    }

    #[test]
    fn every_page_is_rendered() {
        for (name, text) in uturn_diagnose::pages::texts() {
            let page = html(text, &[]);
            assert!(page.contains("<h4>What it is not</h4>"), "{name}");
            assert!(!page.contains("**") && !page.contains("]("), "{name}: {page}");
        }
    }
}
