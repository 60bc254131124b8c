//! The lines of a Corefile: where its server blocks and their directives begin and end. Edits need
//! lines; what they mean is judged by the trial.

/// A server block.
pub(super) struct ServerBlock {
    /// The keys of the block: its zones, with their schemes and ports.
    keys: Vec<String>,
    /// The line of its closing brace.
    pub(super) close: usize,
    pub(super) directives: Vec<Directive>,
}

impl ServerBlock {
    /// Returns the block's zones as they are written.
    pub(super) fn zones(&self) -> String {
        self.keys.join(" ")
    }

    /// Returns whether it is only used by imports.
    pub(super) fn is_snippet(&self) -> bool {
        self.keys.iter().all(|key| key.starts_with('('))
    }

    /// Returns whether a zone is the root.
    pub(super) fn is_root(&self) -> bool {
        self.keys.iter().any(|key| {
            let bare = key.rsplit("//").next().unwrap_or(key);
            bare.is_empty() || bare.starts_with(['.', ':'])
        })
    }
}

/// A directive of a server block.
pub(super) struct Directive {
    /// The number of its first line.
    pub(super) line: usize,
    /// Its first line.
    pub(super) text: String,
    /// The line of its closing brace, if it has a block.
    pub(super) close: Option<usize>,
    /// The words of its first line without the brace, and those of its block by line.
    words: Vec<String>,
    block: Vec<(String, Vec<String>)>,
}

impl Directive {
    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Returns the words behind its name, without those of its block.
    pub(super) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Returns all its words, its block included.
    pub(super) fn all_words(&self) -> Vec<String> {
        let block = self.block.iter().flat_map(|(_, words)| words);
        self.words.iter().chain(block).cloned().collect()
    }

    /// Returns whether a line of its block begins with a word.
    pub(super) fn has(&self, word: &str) -> bool {
        self.block.iter().any(|(_, words)| words.first().is_some_and(|first| first == word))
    }

    /// Returns the indentation of its first line.
    pub(super) fn indent(&self) -> String {
        indent(&self.text).to_owned()
    }

    /// Returns the indentation of the lines of its block.
    pub(super) fn inside(&self) -> String {
        let first = self.block.first().map(|(line, _)| indent(line).to_owned());
        first.unwrap_or_else(|| format!("{}   ", self.indent()))
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// Returns the words of a line without its comment.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().take_while(|word| !word.starts_with('#')).map(str::to_owned).collect()
}

/// Returns the server blocks of a file whose braces are at the ends of lines.
pub(super) fn blocks(text: &str) -> Vec<ServerBlock> {
    let mut all = Vec::new();
    let mut open: Option<ServerBlock> = None;
    let mut inner: Option<Directive> = None;
    let mut depth = 0_usize;
    for (at, line) in text.lines().enumerate() {
        let mut words = words(line);
        let opens = words.last().is_some_and(|word| word == "{");
        let closes = words.first().is_some_and(|word| word == "}");
        if opens {
            words.pop();
        }
        match (depth, &mut open) {
            (0, _) if opens => {
                let keys = words.iter().map(|key| key.trim_end_matches(',').to_owned()).collect();
                open = Some(ServerBlock { keys, close: at, directives: Vec::new() });
            }
            (1, block) if closes => {
                all.extend(block.take().map(|block| ServerBlock { close: at, ..block }));
            }
            (1, Some(block)) if !words.is_empty() => {
                let text = line.to_owned();
                let made = Directive { line: at, text, close: None, words, block: Vec::new() };
                if opens {
                    inner = Some(made);
                } else {
                    block.directives.push(made);
                }
            }
            (2, Some(block)) if closes => {
                let done = inner.take();
                block.directives.extend(done.map(|own| Directive { close: Some(at), ..own }));
            }
            (2.., _) if !words.is_empty() => {
                if let Some(own) = &mut inner {
                    own.block.push((line.to_owned(), words));
                }
            }
            _ => {}
        }
        if opens {
            depth += 1;
        } else if closes {
            depth = depth.saturating_sub(1);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::blocks;

    const TEXT: &str = ".:53, example.org {
    errors
    hosts { # names
        10.0.0.1 a.example
    }
    rewrite stop {
        name regex (.*)\\.a a
        answer auto
    }

    forward . /etc/resolv.conf
}
(snippet) {
    cache 30
}
";

    #[test]
    fn blocks_and_directives_have_their_lines() {
        let all = blocks(TEXT);
        let [first, second] = all.as_slice() else { panic!("two blocks: {}", all.len()) };
        assert_eq!((first.zones().as_str(), first.close), (".:53 example.org", 11));
        assert!(first.is_root() && !first.is_snippet());
        assert!(second.is_snippet() && !second.is_root());
        let lines: Vec<(&str, usize, Option<usize>)> =
            first.directives.iter().map(|own| (own.name(), own.line, own.close)).collect();
        assert_eq!(
            lines,
            [
                ("errors", 1, None),
                ("hosts", 2, Some(4)),
                ("rewrite", 5, Some(8)),
                ("forward", 10, None)
            ]
        );
        let hosts = &first.directives[1];
        assert!(hosts.arguments().is_empty() && !hosts.has("fallthrough"));
        assert_eq!((hosts.inside().len(), hosts.indent().len()), (8, 4));
        assert!(first.directives[2].has("answer"));
        assert_eq!(first.directives[3].arguments(), [".", "/etc/resolv.conf"]);
    }

    #[test]
    fn open_ends_are_no_blocks() {
        for text in ["", "}", "{", ". {\n", ". {\n}\n}\n", "a {\n b {\n", "# . {\n}"] {
            assert!(blocks(text).len() <= 1, "{text}");
        }
    }
}
