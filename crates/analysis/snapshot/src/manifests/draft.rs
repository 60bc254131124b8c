//! Edits of manifests that are kept beside them: only the documents that change are copied.

use std::borrow::Cow;
use std::ops::Range;

use uturn_document::Source;
use uturn_document::edit::{self, At, Change, Tree};
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
    /// Begins a draft without edits.
    pub fn new(base: &'m Manifests) -> Self {
        Self { base, changed: Vec::new(), added: Manifests::default() }
    }

    /// Adds an object: to the Scenario whose case the cluster is, or else in a file of its own.
    pub fn add(&mut self, file: &str, object: &Tree) {
        if let Some(site) = self.base.scenario_site() {
            let path = ["spec", "objects"].map(At::from);
            let add = Change::Append(object.clone());
            if self.change(&site, |text| edit::apply(text, &path, &add)).is_ok() {
                return;
            }
        }
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
        let site = match place {
            Place::Added => {
                self.added = self.added.edited(std::slice::from_ref(edit))?;
                return Ok(());
            }
            Place::Changed(_, site) | Place::Base(site) => site,
        };
        let path = joined(&site.path, &edit.path);
        self.change(&site, |text| edit::apply(text, &path, &edit.change))
            .map_err(|why| CannotEdit::Place(edit.object.clone(), path_text(&edit.path), why.0))
    }

    /// Changes the document at a site.
    fn change<E>(
        &mut self,
        site: &Site,
        change: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<(), E> {
        if let Some(at) = self.changed_at(site) {
            self.changed[at].text = change(&self.changed[at].text)?;
            return Ok(());
        }
        // An item of a List may be changed, and then the List as a whole.
        let is_inside = |own: &ChangedDocument| site.has(own.source, &own.range);
        let mut inside: Vec<&ChangedDocument> =
            self.changed.iter().filter(|own| is_inside(own)).collect();
        inside.sort_by_key(|own| own.range.start);
        let before = if inside.is_empty() {
            self.base.document(site)
        } else {
            Cow::Owned(spliced(&self.base.sources[site.source].text, &site.document, &inside))
        };
        let text = change(&before)?;
        self.changed.retain(|own| !is_inside(own));
        let Site { source, document: range, is_dashed, .. } = site.clone();
        self.changed.push(ChangedDocument { source, range, is_dashed, text });
        Ok(())
    }

    /// Returns the number of the changed document that has a site.
    fn changed_at(&self, site: &Site) -> Option<usize> {
        self.changed.iter().position(|own| {
            own.source == site.source
                && own.range.start <= site.document.start
                && site.document.end <= own.range.end
        })
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
        let Some(site) = self.base.site(object) else {
            return self.added.has(object).then_some(Place::Added);
        };
        let Some(at) = self.changed_at(&site) else { return Some(Place::Base(site)) };
        let path = self.base.way_in_object(&self.changed[at].text, object)?;
        Some(Place::Changed(at, Site { path, ..site }))
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

    /// Returns the manifests as they are after the edits, without captures of nodes: these show the
    /// rules as they are, which an edit changes.
    pub fn into_manifests(self) -> Manifests {
        let mut new = self.base.without_captures();
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
    let after = spliced(text, &(from..to), changed);
    let lines_before = text[..from].bytes().filter(|byte| *byte == b'\n').count();
    Part { lines_before, before: Some(text[from..to].to_owned()), after }
}

/// Returns a part of a text with its changed documents, which are given in their order.
fn spliced(text: &str, range: &Range<usize>, changed: &[&ChangedDocument]) -> String {
    let mut all = String::new();
    let mut at = range.start;
    for own in changed {
        all.push_str(&text[at..own.range.start]);
        all.push_str(&own.written());
        at = own.range.end;
    }
    all.push_str(&text[at..range.end]);
    all
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

#[cfg(test)]
mod tests {
    use uturn_model::{NamespacedName, ObjectKind};

    use super::*;

    /// An item is found by itself, and one that refers to another item in the whole List.
    #[test]
    fn an_item_and_the_list_around_it_are_edited_one_after_the_other() {
        let text = "kind: List\nitems:\n- kind: ConfigMap\n  metadata: &same {name: web}\n- kind: \
                    Service\n  metadata: *same\n";
        let manifests = Manifests::of(vec![Source { name: "all".into(), text: text.to_owned() }]);
        let name = NamespacedName::new("default", "web").unwrap();
        let set = |kind, field: &str| Edit {
            object: ObjectRef::namespaced(kind, &name),
            path: vec![field.into()],
            change: Change::Set(Tree::text("new")),
        };
        let (item, list) = (set(ObjectKind::ConfigMap, "a"), set(ObjectKind::Service, "b"));
        for edits in [[item.clone(), list.clone()], [list, item]] {
            let mut draft = Draft::new(&manifests);
            draft.edit(&edits).unwrap();
            let (own, whole) = (draft.into_manifests(), manifests.edited(&edits).unwrap());
            assert_eq!(own.sources(), whole.sources());
        }
    }
}
