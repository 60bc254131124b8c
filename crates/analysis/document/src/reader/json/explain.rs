//! Describes the faults of a text. Only this module computes lines and columns: the first pass
//! keeps offsets.

use super::scan::unescaped;
use crate::reader::{DEPTH, Trouble, shorten};

/// A repeated key, from quote to quote, and the offset of its first occurrence.
pub(super) struct Repeated {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) first: usize,
}

/// The reason why reading ended.
pub(super) struct Failure {
    pub(super) at: usize,
    pub(super) what: What,
    /// The bracket or quote that was left open, and its offset.
    pub(super) open: Option<(char, usize)>,
}

pub(super) enum What {
    Expected(&'static str),
    Deep,
    Endless(&'static str, usize),
}

/// Returns the faults of a text whose first line has number `line`: repeated keys in order, then
/// the error that ended reading.
pub(super) fn troubles(
    text: &str,
    line: u32,
    mut repeated: Vec<Repeated>,
    failure: Option<Failure>,
) -> Vec<Trouble> {
    repeated.sort_unstable_by_key(|key| key.start);
    let mut offsets: Vec<usize> = repeated.iter().flat_map(|key| [key.start, key.first]).collect();
    if let Some(failure) = &failure {
        offsets.push(failure.at);
        offsets.extend(failure.open.map(|(_, at)| at));
    }
    let places = Places::new(text, line, offsets);
    let twice = |key: &Repeated| {
        let ((line, column), (first, _)) = (places.of(key.start), places.of(key.first));
        let key = unescaped(&text[key.start + 1..key.end - 1]);
        let key = shorten(&key);
        let message = format!("duplicate key {key:?}, first at line {first}");
        Trouble::new(line, column, message).into_repeated()
    };
    let mut troubles: Vec<Trouble> = repeated.iter().map(twice).collect();
    troubles.extend(failure.map(|failure| explain(text, &failure, &places)));
    troubles
}

fn explain(text: &str, failure: &Failure, places: &Places) -> Trouble {
    let (line, column) = places.of(failure.at);
    let message = match failure.what {
        What::Deep => format!("nested more than {DEPTH} levels deep"),
        What::Endless(what, most) => return Trouble::endless(line, column, what, most),
        What::Expected(expected) => match text[failure.at..].chars().next() {
            Some(found) => format!("expected {expected}, found {found:?}"),
            None => format!("the file ends where {expected} should be"),
        },
    };
    let trouble = Trouble::new(line, column, message);
    let Some((open, opened)) = failure.open else { return trouble };
    let (line, column) = places.of(opened);
    trouble.with_hint(format!(
        "is the file complete? the {open} at line {line}, column {column} is never closed"
    ))
}

/// The lines and columns of a few offsets in a text, found in one scan.
struct Places(Vec<(usize, (u32, u32))>);

impl Places {
    fn new(text: &str, line: u32, mut offsets: Vec<usize>) -> Self {
        offsets.sort_unstable();
        offsets.dedup();
        let (mut at, mut line, mut column) = (0, line as usize, 1);
        let mut next = |offset| {
            let between = &text[at..offset];
            match between.rfind('\n') {
                Some(last) => {
                    line += between.bytes().filter(|byte| *byte == b'\n').count();
                    column = between[last..].chars().count();
                }
                None => column += between.chars().count(),
            }
            at = offset;
            let small = |number| u32::try_from(number).unwrap_or(u32::MAX);
            (offset, (small(line), small(column)))
        };
        Self(offsets.into_iter().map(&mut next).collect())
    }

    fn of(&self, offset: usize) -> (u32, u32) {
        let at = self.0.partition_point(|(start, _)| *start < offset);
        self.0.get(at).map_or((0, 0), |(_, place)| *place)
    }
}
