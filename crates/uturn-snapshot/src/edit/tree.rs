//! What is written into a document, and how it looks there.

/// A value to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A text.
    Text(String),
    /// A number, or a truth value: written as it is.
    Bare(String),
    /// A list.
    List(Vec<Tree>),
    /// A mapping.
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A truth value, or a number as it is written.
    pub fn bare(text: impl Into<String>) -> Self {
        Self::Bare(text.into())
    }

    /// A number.
    pub fn number(number: impl Into<u64>) -> Self {
        Self::Bare(number.into().to_string())
    }

    /// A mapping.
    pub fn map<const N: usize>(entries: [(&str, Tree); N]) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// On one line. `strict` is as JSON wants it.
    pub(super) fn flow(&self, strict: bool) -> String {
        match self {
            Self::Text(text) => word(text, strict),
            Self::Bare(text) => text.clone(),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| item.flow(strict)).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(key, value)| format!("{}: {}", word(key, strict), value.flow(strict)))
                    .collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    /// What stands after `key:` or `-` in a block whose entries are indented so far, with the
    /// blank or the line's end before it and the line's end after it.
    fn after(&self, indent: usize) -> String {
        match self {
            Self::Map(entries) if !entries.is_empty() => {
                format!("\n{}", pairs(entries, indent + 2))
            }
            Self::List(items) if !items.is_empty() => format!("\n{}", list(items, indent)),
            Self::Text(text) if is_lines(text) => format!(" |\n{}", lines(text, indent + 2)),
            other => format!(" {}\n", other.flow(false)),
        }
    }

    /// A document of its own.
    pub fn document(&self) -> String {
        match self {
            Self::Map(entries) if !entries.is_empty() => pairs(entries, 0),
            other => format!("{}\n", other.flow(false)),
        }
    }
}

/// `key: value` in a block, with its line's end.
pub(super) fn pair(key: &str, value: &Tree, indent: usize) -> String {
    format!("{}{}:{}", " ".repeat(indent), word(key, false), value.after(indent))
}

/// `- value` in a block, with its line's end.
pub(super) fn item(value: &Tree, indent: usize) -> String {
    let dash = format!("{}- ", " ".repeat(indent));
    match value {
        Tree::Map(entries) if !entries.is_empty() => {
            let below = pairs(entries, indent + 2);
            format!("{dash}{}", below.trim_start_matches(' '))
        }
        other => format!("{dash}{}\n", other.flow(false)),
    }
}

fn pairs(entries: &[(String, Tree)], indent: usize) -> String {
    entries.iter().map(|(key, value)| pair(key, value, indent)).collect()
}

fn list(items: &[Tree], indent: usize) -> String {
    items.iter().map(|child| item(child, indent)).collect()
}

/// Whether a text can stand as lines below its key.
pub(super) fn is_lines(text: &str) -> bool {
    text.ends_with('\n')
        && !text.ends_with("\n\n")
        && text.trim() != ""
        && !text.starts_with([' ', '\n', '\t'])
        && text.chars().all(|c| c == '\n' || !c.is_control())
}

/// Lines, each indented unless it is empty.
pub(super) fn lines(text: &str, indent: usize) -> String {
    let pad = " ".repeat(indent);
    text.lines()
        .map(|line| if line.is_empty() { "\n".into() } else { format!("{pad}{line}\n") })
        .collect()
}

/// A text on one line, in quotes where it could be taken for something else.
pub(super) fn word(text: &str, strict: bool) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'/' | b'.');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let bare = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && text.bytes().all(plain)
        && !words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if bare && !strict {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
