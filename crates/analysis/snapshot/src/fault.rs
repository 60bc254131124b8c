//! Faults of an input: the place, what was found, and what was expected.

use std::fmt;

use uturn_model::{Origin, Text, visible};

/// One thing that is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub origin: Origin,
    /// The object that has it: `Service shop/web`.
    pub object: Option<Box<str>>,
    /// The field: `spec.ports[0].port`.
    pub field: Option<String>,
    /// What was found and what was expected.
    pub message: String,
    /// What would help.
    pub hint: Option<String>,
}

impl Fault {
    /// A fault of a place.
    pub fn new(origin: Origin, message: impl Into<String>) -> Self {
        Self { origin, object: None, field: None, message: message.into(), hint: None }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    /// `file:line:column: field: message`, and the hint on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is read cannot add lines.
        write!(f, "{}: ", visible::line(&self.origin.to_string()))?;
        if let Some(field) = &self.field {
            write!(f, "{}: ", visible::line(field))?;
        }
        f.write_str(&visible::line(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\n  {}", visible::line(hint)),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}

/// An oddity of an input, and how it is read anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) origin: Origin,
    pub(crate) message: String,
    pub(crate) assumed: &'static str,
    pub(crate) because: &'static str,
    pub(crate) settle: String,
}

/// An object that is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Twice {
    pub(crate) first: Origin,
    pub(crate) fault: Fault,
}

/// How many faults of one source are kept; the rest is counted.
const MAX: usize = 1000;

/// After how many faults the rest of a source is not read.
const TOO_MANY: usize = 50_000;

/// Faults as they are found: of each source all are counted and the first [`MAX`] kept, so
/// that one bad file does not hide what is wrong with the next.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    kept: Vec<Fault>,
    /// Where those of the source being read begin.
    from: usize,
    /// How many of this source were only counted, and the file of the last.
    more: usize,
    last: Option<Text>,
    /// Notes, which are no faults.
    notes: Vec<Note>,
    /// Objects that occur more than once: one message for all of them.
    twice: Vec<Twice>,
}

impl Faults {
    pub(crate) fn push(&mut self, fault: Fault) {
        if self.is_full() {
            self.more += 1;
            self.last = fault.origin.path().map(Text::from);
        } else {
            self.kept.push(fault);
        }
    }

    /// Keeps that an object is there already.
    pub(crate) fn push_twice(&mut self, twice: Twice) {
        self.twice.push(twice);
    }

    /// The objects that are there twice.
    pub(crate) fn take_twice(&mut self) -> Vec<Twice> {
        std::mem::take(&mut self.twice)
    }

    pub(crate) fn note(&mut self, note: Note) {
        if self.notes.len() < MAX {
            self.notes.push(note);
        }
    }

    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Whether another fault would only be counted.
    pub(crate) fn is_full(&self) -> bool {
        self.kept.len() - self.from >= MAX
    }

    /// How many there are, the ones that are only counted too.
    pub(crate) fn len(&self) -> usize {
        self.kept.len() + self.more
    }

    /// Whether there are so many that reading stops.
    pub(crate) fn gives_up(&self) -> bool {
        self.kept.len() - self.from + self.more >= TOO_MANY
    }

    /// Ends a source: sorts its faults by place, and adds how many were only counted.
    pub(crate) fn finish(&mut self) {
        if let Some(of_source) = self.kept.get_mut(self.from..) {
            of_source.sort_by_key(|fault| (fault.origin.line(), fault.origin.column()));
        }
        if let Some(file) = self.last.take() {
            let rest = if self.gives_up() { "; the rest was not read" } else { "" };
            let message = format!("… and {} more{rest}", self.more);
            self.kept.push(Fault::new(Origin::file(file), message));
        }
        (self.from, self.more) = (self.kept.len(), 0);
    }

    /// What was kept of all sources.
    pub(crate) fn into_vec(mut self) -> Vec<Fault> {
        if self.more > 0 {
            self.finish();
        }
        self.kept
    }
}
