//! Inputs of any length, made by repeating a part of a seed: parsing time must grow about
//! linearly with their length.
//!
//! Repeats lines (unchanged, or each with its own name, number or address), pairs of lines that
//! share a name (a declaration and a reference), words within a line, letters of a word, whole
//! seeds, and opening characters that are never closed.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// Placeholder for the number of a repetition.
const NUMBER: char = '\u{e000}';
/// Placeholder for that number as the last three bytes of an address.
const ADDRESS: char = '\u{e001}';

/// Tokens that open, separate, escape, comment out or negate in some format.
const TOKENS: [&str; 27] = [
    "a", "0", " ", "\t", "\n", "\r\n", "\"", "'", "\\", "-", "- ", "!", "! ", ",", ":", "a: ", "#",
    "(", "[", "{", "{\"a\":", "&a ", "*a ", "<", "%", "---\n", "COMMIT\n",
];

/// The largest number of words in a line that are tried. Longer lines are machine-made.
const MAX_WORDS: usize = 16;

/// The largest number of lines of a seed that are tried. Of a longer seed, lines spread over it are
/// tried.
const MAX_LINES: usize = 60;

/// A family of inputs.
#[derive(Clone, Debug)]
pub struct Shape {
    /// A description of what the shape repeats.
    pub name: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Once(String),
    Repeated(String),
}

impl Shape {
    /// Returns an input of about `size` bytes.
    pub fn text(&self, size: usize) -> String {
        let (mut fixed, mut each) = (0, 0);
        for piece in &self.pieces {
            match piece {
                Piece::Once(text) => fixed += text.len(),
                Piece::Repeated(text) => each += numbered(text, 1000).len(),
            }
        }
        let times = size.saturating_sub(fixed) / each.max(1);
        let mut all = String::with_capacity(size + size / 4);
        for piece in &self.pieces {
            match piece {
                Piece::Once(text) => all.push_str(text),
                Piece::Repeated(text) if text.contains([NUMBER, ADDRESS]) => {
                    (0..times).for_each(|number| all.push_str(&numbered(text, number)));
                }
                Piece::Repeated(text) => all.push_str(&text.repeat(times)),
            }
        }
        all
    }
}

fn numbered(text: &str, number: usize) -> String {
    let [.., a, b, c] = number.to_be_bytes();
    text.replace(NUMBER, &number.to_string()).replace(ADDRESS, &format!("10.{a}.{b}.{c}"))
}

/// Returns all shapes of a seed.
pub fn shapes(seed: &str, text: &str) -> Vec<Shape> {
    let mut maker = Maker { seed, shapes: Vec::new() };
    maker.whole(text);
    for (how, text) in layouts(text) {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let tried = different(&lines);
        for &at in &tried {
            maker.openings(how, &lines, at);
            maker.line(how, &lines, at);
            for &other in tried.iter().filter(|other| **other > at) {
                maker.pair(how, &lines, at, other);
            }
        }
    }
    maker.shapes
}

/// Splits JSON into objects and fields, since it is mostly a single line.
fn layouts(text: &str) -> Vec<(&'static str, String)> {
    if text.trim_start().starts_with(['{', '[']) && text.lines().count() < 4 {
        vec![("object", text.replace("},", "},\n")), ("field", text.replace(',', ",\n"))]
    } else {
        vec![("line", text.to_owned())]
    }
}

/// Returns the lines to try: no two of them differ in digits only.
fn different(lines: &[&str]) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let new: Vec<usize> =
        (0..lines.len()).filter(|at| seen.insert(without_digits(lines[*at]))).collect();
    let step = new.len().div_ceil(MAX_LINES).max(1);
    new.into_iter().step_by(step).collect()
}

struct Maker<'a> {
    seed: &'a str,
    shapes: Vec<Shape>,
}

impl Maker<'_> {
    fn add(&mut self, what: &str, pieces: Vec<Piece>) {
        self.shapes.push(Shape { name: format!("{}: {what}", self.seed), pieces });
    }

    fn whole(&mut self, text: &str) {
        self.add("whole", vec![Piece::Repeated(text.into())]);
        self.add("documents", vec![Piece::Repeated(format!("---\n{}\n", text.trim_end()))]);
        self.add("one line", vec![Piece::Repeated(text.replace('\n', " "))]);
    }

    /// Adds unclosed tokens, repeated: before a line, after its first word, at its end.
    fn openings(&mut self, how: &str, lines: &[&str], at: usize) {
        let (before, line) = (lines[..at].concat(), lines[at]);
        let ends = [0, words(line).first().map_or(0, |word| word.1), line.trim_end().len()];
        for (place, end) in ends.into_iter().enumerate() {
            for token in TOKENS {
                let what = format!("{token:?} at {place} in {how} {}", at + 1);
                let start = Piece::Once(format!("{before}{}", &line[..end]));
                self.add(&what, vec![start, Piece::Repeated(token.into())]);
            }
        }
    }

    /// Adds a line repeated, unchanged and with its own values, and repetitions within it.
    fn line(&mut self, how: &str, lines: &[&str], at: usize) {
        let (name, line) = (format!("{how} {}", at + 1), lines[at]);
        let (before, after) = (lines[..at].concat(), lines[at + 1..].concat());
        let among = |pieces: Vec<Piece>| {
            let (start, end) = (Piece::Once(before.clone()), Piece::Once(after.clone()));
            [vec![start], pieces, vec![end]].concat()
        };
        self.add(&name, among(vec![Piece::Repeated(line.into())]));
        for (start, end) in words(line).into_iter().take(MAX_WORDS) {
            let (head, word, tail) = (&line[..start], &line[start..end], &line[end..]);
            let own = format!("{head}{}{tail}", of_its_own(word));
            self.add(&format!("{name}, own {word:?}"), among(vec![Piece::Repeated(own)]));
            let within = |what: String| {
                let rest = Piece::Once(format!("{word}{tail}"));
                among(vec![Piece::Once(head.into()), Piece::Repeated(what), rest])
            };
            let blank = tail.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(tail.len());
            let again = match tail[..blank].trim_end_matches('\n') {
                "" => format!("{word} "),
                blank => format!("{word}{blank}"),
            };
            self.add(&format!("{name}, many {word:?}"), within(again));
            let last = word.chars().next_back().map(String::from).unwrap_or_default();
            self.add(&format!("{name}, long {word:?}"), within(last));
        }
    }

    /// Adds two lines that share a name, repeated with different names.
    fn pair(&mut self, how: &str, lines: &[&str], at: usize, other: usize) {
        let (line, second) = (lines[at], lines[other]);
        let named = |line: &str| -> BTreeSet<String> {
            let all = words(line).into_iter().map(|(start, end)| line[start..end].to_owned());
            all.filter(|word| word.len() > 1).collect()
        };
        for word in named(line).intersection(&named(second)).take(3) {
            let own = |line: &str| line.replace(word, &of_its_own(word));
            let pieces = vec![
                Piece::Once(lines[..at].concat()),
                Piece::Repeated(own(line)),
                Piece::Once(lines[at + 1..other].concat()),
                Piece::Repeated(own(second)),
                Piece::Once(lines[other + 1..].concat()),
            ];
            self.add(&format!("{how}s {} and {}, own {word:?}", at + 1, other + 1), pieces);
        }
    }
}

/// Returns the start and end of each word of a line.
fn words(line: &str) -> Vec<(usize, usize)> {
    let within = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut words: Vec<(usize, usize)> = Vec::new();
    for (at, _) in line.char_indices().filter(|(_, c)| within(*c)) {
        match words.last_mut() {
            Some((_, end)) if *end == at => *end += 1,
            _ => words.push((at, at + 1)),
        }
    }
    words
}

/// Returns the word with the number of the repetition inserted.
fn of_its_own(word: &str) -> String {
    if word.parse::<Ipv4Addr>().is_ok() {
        ADDRESS.into()
    } else if word.bytes().all(|byte| byte.is_ascii_digit()) {
        NUMBER.into()
    } else {
        format!("{word}{NUMBER}")
    }
}

fn without_digits(line: &str) -> String {
    line.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seed: &str, name: &str, size: usize) -> String {
        let all = shapes("s", seed);
        let names: Vec<&str> = all.iter().map(|shape| &*shape.name).collect();
        let shape = all.iter().find(|shape| shape.name == format!("s: {name}"));
        shape.unwrap_or_else(|| panic!("no {name} in {names:#?}")).text(size)
    }

    #[test]
    fn what_is_repeated() {
        let seed = ":A - [0:0]\n-A A -d 10.0.0.1 -j B\n";
        assert_eq!(text(seed, "line 1", 66), ":A - [0:0]\n".repeat(4) + "-A A -d 10.0.0.1 -j B\n");
        assert!(text(seed, "line 1, own \"A\"", 99).contains("\n:A2 - [0:0]\n:A3 - [0:0]\n"));
        assert!(text(seed, "line 2, own \"10.0.0.1\"", 99).contains("-d 10.0.0.2 -j B\n"));
        assert!(text(seed, "line 2, long \"B\"", 99).contains("-j BBBBBBBB"));
        assert!(text(seed, "line 2, many \"-d\"", 99).contains("\n-A A -d -d -d -d "));
    }

    #[test]
    fn two_lines_share_a_name() {
        let pair =
            text(":KUBE - [0:0]\n-A X -j KUBE\nCOMMIT\n", "lines 1 and 2, own \"KUBE\"", 150);
        assert!(pair.contains(":KUBE1 - [0:0]\n:KUBE2 - [0:0]\n"), "{pair}");
        assert!(pair.contains("-A X -j KUBE1\n-A X -j KUBE2\n"), "{pair}");
        assert!(pair.ends_with("\nCOMMIT\n"), "{pair}");
    }

    #[test]
    fn every_shape_grows_as_specified() {
        for seed in ["", "a", "*nat\n:A - [0:0]\nCOMMIT\n", "[{\"a\": [1, 2]}, {\"b\": null}]"] {
            for shape in shapes("s", seed) {
                let (small, large) = (shape.text(1000).len(), shape.text(8000).len());
                let empty = large == 0 && seed.is_empty();
                assert!(empty || (6000..10_000).contains(&large), "{}: {large}", shape.name);
                assert!(empty || (4..14).contains(&(large / small.max(1))), "{}", shape.name);
            }
        }
    }
}
