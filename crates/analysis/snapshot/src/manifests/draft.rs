//! Edits of manifests that are kept beside them: only the documents that change are copied.

use std::borrow::Cow;
use std::ops::Range;

use uturn_document::Source;
use uturn_document::edit::{self, Tree};
use uturn_model::{ObjectRef, Text};

use super::site::{Site, joined};
use super::{CannotEdit, Edit, Manifests, path_text, tree_at};

/// Manifests with edits.
#[derive(Clone)]
pub struct Draft<'m> {
    base: &'m Manifests,
    changed: Vec<ChangedDocument>,
    /// New objects, each in a text of its own.
    added: Manifests,
}

/// A document of the manifests after edits.
#[derive(Clone)]
pub(super) struct ChangedDocument {
    source: usize,
    range: Range<usize>,
    /// Whether the document begins with the dash of a list item, which `text` lacks.
    is_dashed: bool,
    text: String,
}

/// The changed parts of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The name of the file.
    pub name: Text,
    /// The parts, in the order of the text.
    pub parts: Vec<Part>,
}

/// A part of a text before and after edits, with the lines around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of lines before the part.
    pub lines_before: usize,
    /// The part before the edits. `None` if the file is new.
    pub before: Option<String>,
    /// The part after the edits.
    pub after: String,
}

/// The place of an object in a draft.
enum Place {
    Changed(usize, Site),
    Added,
    Base(Site),
}

impl<'m> Draft<'m> {
    /// Begins a draft without edits. Returns `None` if the cluster is a Scenario's case, whose
    /// objects are parts of one document.
    pub fn of(base: &'m Manifests) -> Option<Self> {
        let added = Manifests::default();
        base.case.is_none().then_some(Self { base, changed: Vec::new(), added })
    }

    /// Adds an object in a file of its own.
    pub fn add(&mut self, file: &str, object: &Tree) {
        self.added = self.added.with_object(file, object);
    }

    /// Edits objects.
    ///
    /// # Errors
    /// Returns an error if no text has an object, or if a place cannot be edited.
    pub fn edit(&mut self, edits: &[Edit]) -> Result<(), CannotEdit> {
        edits.iter().try_for_each(|edit| self.edit_one(edit))
    }

    fn edit_one(&mut self, edit: &Edit) -> Result<(), CannotEdit> {
        let place = self.place(&edit.object);
        let place = place.ok_or_else(|| CannotEdit::NotWritten(edit.object.clone()))?;
        let changed = |text: &str, site: &Site| {
            edit::apply(text, &joined(&site.path, &edit.path), &edit.change)
                .map_err(|why| CannotEdit::Place(edit.object.clone(), path_text(&edit.path), why.0))
        };
        match place {
            Place::Added => self.added = self.added.edited(std::slice::from_ref(edit))?,
            Place::Changed(at, site) => {
                self.changed[at].text = changed(&self.changed[at].text, &site)?;
            }
            Place::Base(site) => {
                let text = changed(&self.base.document(&site), &site)?;
                let Site { source, document: range, is_dashed, .. } = site;
                self.changed.push(ChangedDocument { source, range, is_dashed, text });
            }
        }
        Ok(())
    }

    /// Returns an object as it is written, as a separate document.
    pub fn object(&self, object: &ObjectRef) -> Option<Tree> {
        match self.place(object)? {
            Place::Changed(at, site) => tree_at(&self.changed[at].text, &site.path),
            Place::Added => self.added.object(object),
            Place::Base(_) => self.base.object(object),
        }
    }

    fn place(&self, object: &ObjectRef) -> Option<Place> {
        let base = self.base.site(object);
        let is_there = |site: &Site, changed: &ChangedDocument| {
            (changed.source, &changed.range) == (site.source, &site.document)
        };
        if let Some(site) = base {
            let Some(at) = self.changed.iter().position(|changed| is_there(&site, changed)) else {
                return Some(Place::Base(site));
            };
            let path = self.base.way_in_object(&self.changed[at].text, object)?;
            return Some(Place::Changed(at, Site { path, ..site }));
        }
        self.added.has(object).then_some(Place::Added)
    }

    /// Returns the documents before and after the edits, each in its lines, and whether an API
    /// server returned it.
    pub(super) fn documents(&self) -> impl Iterator<Item = (Option<Source>, Source, bool)> + '_ {
        let changed = self.changed.iter().map(|changed| {
            let base = &self.base.sources[changed.source];
            let is_live = self.base.listing.live.contains(&base.name);
            let above = above(&base.text[..changed.range.start]);
            let placed =
                |text: &str| Source { name: base.name.clone(), text: [&*above, text].concat() };
            (Some(placed(&self.before(changed))), placed(&changed.text), is_live)
        });
        let added = self.added.sources.iter().map(|source| (None, source.clone(), false));
        changed.chain(added)
    }

    fn before(&self, changed: &ChangedDocument) -> Cow<'_, str> {
        self.base.document(&Site {
            source: changed.source,
            document: changed.range.clone(),
            is_dashed: changed.is_dashed,
            path: Vec::new(),
        })
    }

    /// Returns the changed parts of texts, each with this many lines around it, in the order of the
    /// texts.
    pub fn excerpts(&self, around: usize) -> Vec<Excerpt> {
        let mut all: Vec<&ChangedDocument> = self.changed.iter().collect();
        all.sort_by_key(|own| (own.source, own.range.start));
        let of_source = |own: &[&ChangedDocument]| {
            let base = &self.base.sources[own[0].source];
            let is_near = |a: &&ChangedDocument, b: &&ChangedDocument| {
                let between = &base.text[a.range.end..b.range.start];
                between.bytes().filter(|byte| *byte == b'\n').take(2 * around + 1).count()
                    <= 2 * around
            };
            let parts = own.chunk_by(is_near).map(|near| part(&base.text, near, around));
            Excerpt { name: base.name.clone(), parts: parts.collect() }
        };
        let changed = all.chunk_by(|a, b| a.source == b.source).map(of_source);
        let added = self.added.sources.iter().map(|source| {
            let (before, after) = (None, source.text.clone());
            Excerpt {
                name: source.name.clone(),
                parts: vec![Part { lines_before: 0, before, after }],
            }
        });
        changed.chain(added).collect()
    }

    /// Returns the manifests as they are after the edits.
    pub fn into_manifests(self) -> Manifests {
        let mut new = self.base.clone();
        let mut changed = self.changed;
        changed.sort_by_key(|own| std::cmp::Reverse(own.range.start));
        for own in changed {
            let text = own.written().into_owned();
            new.text_mut(own.source).replace_range(own.range, &text);
        }
        new.sources_mut().extend(self.added.sources);
        new
    }
}

impl ChangedDocument {
    /// Returns the document as it stands in its text.
    fn written(&self) -> Cow<'_, str> {
        match self.text.strip_prefix(' ').filter(|_| self.is_dashed) {
            Some(rest) => Cow::Owned(["-", rest].concat()),
            None => Cow::Borrowed(&self.text),
        }
    }
}

/// Returns a part of a text with documents that are near each other.
fn part(text: &str, changed: &[&ChangedDocument], around: usize) -> Part {
    let first = changed.first().map_or(0, |own| own.range.start);
    let last = changed.last().map_or(0, |own| own.range.end);
    let from = before_lines(text, first, around);
    let to = after_lines(text, last, around);
    let mut after = String::new();
    let mut at = from;
    for own in changed {
        after.push_str(&text[at..own.range.start]);
        after.push_str(&own.written());
        at = own.range.end;
    }
    after.push_str(&text[at..to]);
    let lines_before = text[..from].bytes().filter(|byte| *byte == b'\n').count();
    Part { lines_before, before: Some(text[from..to].to_owned()), after }
}

/// Returns blank lines in place of what is above a document, so that its values have their places.
fn above(text: &str) -> String {
    let lines = text.bytes().filter(|byte| *byte == b'\n').count();
    let column = text.rsplit('\n').next().map_or(0, |line| line.chars().count());
    ["\n".repeat(lines), " ".repeat(column)].concat()
}

/// Returns the beginning of the line that is this many lines before the one with a place.
fn before_lines(text: &str, place: usize, lines: usize) -> usize {
    let ends = text[..place].bytes().enumerate().rev().filter(|(_, byte)| *byte == b'\n');
    ends.map(|(at, _)| at + 1).nth(lines).unwrap_or(0)
}

/// Returns the end of the line that is this many lines after the one before a place.
fn after_lines(text: &str, place: usize, lines: usize) -> usize {
    let ends = text[place..].bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    ends.map(|(at, _)| place + at + 1).nth(lines).unwrap_or(text.len())
}
