//! Faults of an input: the place, what was found, and what was expected.

use std::fmt;

use uturn_model::{Origin, Text, visible};

/// A fault of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place of the fault.
    pub origin: Origin,
    /// The object that has the fault: `Service shop/web`.
    pub object: Option<Box<str>>,
    /// The field that has the fault: `spec.ports[0].port`.
    pub field: Option<String>,
    /// What was found and what was expected.
    pub message: String,
    /// A suggestion how to cure the fault.
    pub hint: Option<String>,
}

impl Fault {
    /// Creates a fault at a place, without object, field or hint.
    pub fn new(origin: Origin, message: impl Into<String>) -> Self {
        Self { origin, object: None, field: None, message: message.into(), hint: None }
    }

    /// Adds a hint to the fault.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    /// Writes `file:line:column: field: message`, and the hint on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Text from the input cannot add lines to the message.
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
pub struct Note {
    /// The place of the oddity.
    pub origin: Origin,
    /// What was found.
    pub message: String,
    /// How it is read.
    pub assumed: &'static str,
    /// The reason for reading it so.
    pub because: &'static str,
    /// What the user can do to settle it.
    pub settle: String,
}

/// An object that was defined before, at the place `first`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twice {
    /// The place of the first definition.
    pub first: Origin,
    /// The fault of the second one.
    pub fault: Fault,
}

/// The maximum number of faults that are kept for one source; further faults are only counted.
const MAX: usize = 1000;

/// The number of faults after which the rest of a source is not read.
const TOO_MANY: usize = 50_000;

/// The faults found so far. For each source, all faults are counted and the first 1000 are kept,
/// so that one bad file does not hide the faults of the next.
#[derive(Debug, Default)]
pub struct Faults {
    kept: Vec<Fault>,
    /// The index in `kept` of the current source's first fault.
    from: usize,
    /// The number of faults of the current source that were only counted, and the file of the last.
    more: usize,
    last: Option<Text>,
    /// Notes, which are not faults.
    notes: Vec<Note>,
    /// Objects that are defined more than once: one message reports all of them.
    twice: Vec<Twice>,
}

impl Faults {
    /// Records a fault of the current source.
    pub fn push(&mut self, fault: Fault) {
        if self.is_full() {
            self.more += 1;
            self.last = fault.origin.path().map(Text::from);
        } else {
            self.kept.push(fault);
        }
    }

    /// Records that an object is defined more than once.
    pub fn push_twice(&mut self, twice: Twice) {
        self.twice.push(twice);
    }

    /// Takes the objects that are defined more than once.
    pub fn take_twice(&mut self) -> Vec<Twice> {
        std::mem::take(&mut self.twice)
    }

    /// Records a note. Only the first 1000 are kept.
    pub fn note(&mut self, note: Note) {
        if self.notes.len() < MAX {
            self.notes.push(note);
        }
    }

    /// Takes the notes.
    pub fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Returns whether a further fault of the current source would only be counted.
    pub fn is_full(&self) -> bool {
        self.kept.len() - self.from >= MAX
    }

    /// Returns the number of all faults, including those that were only counted.
    pub fn count(&self) -> usize {
        self.kept.len() + self.more
    }

    /// Returns whether the current source has so many faults that reading stops.
    pub fn gives_up(&self) -> bool {
        self.kept.len() - self.from + self.more >= TOO_MANY
    }

    /// Ends the current source: sorts its kept faults by place, and adds a fault that states how
    /// many were only counted.
    pub fn finish(&mut self) {
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

    /// Returns the kept faults of all sources.
    pub fn into_vec(mut self) -> Vec<Fault> {
        if self.more > 0 {
            self.finish();
        }
        self.kept
    }
}
