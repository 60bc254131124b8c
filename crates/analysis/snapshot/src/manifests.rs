//! The texts from which a cluster is read, kept so that they can be edited and read again.
//!
//! The text is the only source: an edit changes it as a person would. An edited cluster is read from
//! all texts again, or, by a [`Draft`] and a [`Reading`], from the documents that changed.

mod draft;
mod items;
mod places;
mod reading;
mod replace;
mod site;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

pub use draft::{Draft, Excerpt, Part};
use places::Places;
pub use reading::Reading;
use site::{Wanted, joined};
use thiserror::Error;
use uturn_document::edit::{self, At, Change, Tree};
use uturn_document::{self as document, Fault, Keep, Named, Room, Source, Value};
use uturn_model::{Capture, Cluster, Name, ObjectKind, ObjectRef, Text};

use crate::bundle::UnpackLimit;
use crate::layout::{OtherFiles, gather_manifests};
use crate::listing::Listing;
use crate::{Loaded, bundle, read_with, scenario};

/// The texts of a cluster, and the captures of its nodes.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    sources: Vec<Source>,
    captures: BTreeMap<Name, Capture>,
    other_files: OtherFiles,
    /// Whether the texts describe the whole cluster.
    complete: bool,
    /// The kinds that an API server returned in full, and the objects that it did not return.
    listing: Listing,
    /// The names of the Scenario and of its case that is the cluster, if the cluster is one.
    case: Option<(Text, String)>,
    known: Known,
}

/// What is found in the texts when it is first needed.
#[derive(Clone, Debug, Default)]
struct Known {
    places: Places,
    reading: Arc<OnceLock<Option<Reading>>>,
}

/// An edit of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The object. [`ObjectKind::Facts`] edits the Facts.
    pub object: ObjectRef,
    /// The path of the place, from the object's root; in Facts, from `spec`.
    pub path: Vec<At>,
    /// The change at that place.
    pub change: Change,
}

/// The reason why an edit cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CannotEdit {
    /// No text has the object.
    #[error("{0} is not among the manifests")]
    NotWritten(ObjectRef),
    /// The place cannot be changed.
    #[error("{1} of {0}: {2}")]
    Place(ObjectRef, String, &'static str),
}

impl Manifests {
    /// Creates manifests from texts that are in memory.
    pub fn of(sources: Vec<Source>) -> Self {
        Self { sources, ..Self::default() }
    }

    /// Reads files, folders and bundles. [`Self::load`] reports the faults of their contents.
    pub fn gather(paths: &[PathBuf], bundles: &[PathBuf]) -> (Self, Vec<Fault>) {
        Self::gather_into(paths, bundles, &mut Room::default())
    }

    /// Reads files, folders and bundles that together, with archives unpacked, are not larger than
    /// `limit`.
    pub fn gather_within(
        paths: &[PathBuf],
        bundles: &[PathBuf],
        limit: UnpackLimit,
    ) -> (Self, Vec<Fault>) {
        Self::gather_into(paths, bundles, &mut Room::of(limit))
    }

    fn gather_into(paths: &[PathBuf], bundles: &[PathBuf], room: &mut Room) -> (Self, Vec<Fault>) {
        let (mut sources, mut other_files, mut faults) =
            gather_manifests(paths, Named::ByUser, room);
        let (mut captures, mut listing, mut is_whole) = (BTreeMap::new(), None, false);
        for path in bundles {
            let bundle = bundle::read(path, room);
            is_whole |= bundle.is_whole();
            let own = bundle.listing().map(|mut own| {
                let files = bundle.sources.iter().map(|source| source.name.clone());
                // Facts are written by people, so their faults are not those of the API server's
                // objects.
                own.saved = files.filter(|name| name.ends_with(".json")).collect();
                own
            });
            listing = match (listing, own) {
                (Some(first), Some(second)) => Some(Listing::and(first, second)),
                (first, second) => first.or(second),
            };
            sources.extend(bundle.sources);
            other_files.add(bundle.other_files);
            captures.extend(bundle.captures);
            faults.extend(bundle.faults);
        }
        // A bundle without a manifest of its own holds the whole cluster.
        let complete = is_whole && listing.is_none();
        let listing = listing.unwrap_or_default();
        (Self { sources, captures, other_files, complete, listing, ..Self::default() }, faults)
    }

    /// Returns the manifests without the files of folders that have faults. Returns `None` if there
    /// are other faults: in a file that the user names, in Facts, or in several files together.
    #[must_use]
    pub fn without_faulty(mut self, faults: &[Fault]) -> Option<Self> {
        self.known = Known::default();
        self.other_files.leave_faulty_out(faults, &mut self.sources).then_some(self)
    }

    /// Adds the objects that an API server returned, and states which kinds it returned in full.
    #[must_use]
    pub fn with_live(mut self, sources: Vec<Source>, listing: Listing) -> Self {
        self.listing = listing;
        self.listing.live.extend(sources.iter().map(|source| source.name.clone()));
        self.sources_mut().extend(sources);
        self
    }

    /// Creates manifests whose cluster is a Scenario's case.
    pub fn of_case(sources: Vec<Source>, scenario: &str, case: &str) -> Self {
        let case = Some((scenario.into(), case.to_owned()));
        Self { sources, case, ..Self::default() }
    }

    /// Marks these texts as the whole cluster if `is_complete`: objects that they lack do not
    /// exist.
    #[must_use]
    pub fn complete_if(mut self, is_complete: bool) -> Self {
        self.complete |= is_complete;
        self.known = Known::default();
        self
    }

    /// Selects a Scenario's case as the cluster.
    #[must_use]
    pub fn with_case(mut self, scenario: &str, case: &str) -> Self {
        self.case = Some((scenario.into(), case.to_owned()));
        self
    }

    /// Returns whether there are captures of nodes.
    pub fn has_captures(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Returns the manifests without captures, so that nodes have the rules that would be
    /// programmed.
    #[must_use]
    pub fn without_captures(&self) -> Self {
        Self { captures: BTreeMap::new(), ..self.clone() }
    }

    /// Returns the total length of all texts.
    pub fn bytes(&self) -> usize {
        self.sources.iter().map(|source| source.text.len()).sum()
    }

    /// The texts.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Returns the texts to be changed, and forgets what was found in them.
    fn sources_mut(&mut self) -> &mut Vec<Source> {
        self.known = Known::default();
        &mut self.sources
    }

    fn text_mut(&mut self, source: usize) -> &mut String {
        &mut self.sources_mut()[source].text
    }

    /// The captures of nodes.
    pub fn captures(&self) -> &BTreeMap<Name, Capture> {
        &self.captures
    }

    /// Returns the kinds that an API server returned in full, and the objects that it did not
    /// return.
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Returns whether these texts are stated to describe the whole cluster.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Reads the texts.
    ///
    /// # Errors
    /// All faults of all texts.
    pub fn load(&self) -> Result<Loaded, Vec<Fault>> {
        let captures = self.captures.clone();
        let (other_files, listing) = (&self.other_files, &self.listing);
        read_with(&self.sources, captures, other_files, listing, self.complete, &mut |objects| {
            // They are the same if they are known already.
            let _ = self.known.reading.set(objects.map(|objects| Reading { objects }));
        })
    }

    /// Returns the decoded objects, without captures of nodes. Returns `None` if an object is
    /// defined more than once, if a text has faults, or if there are Scenarios.
    pub fn reading(&self) -> Option<&Reading> {
        self.known.reading.get_or_init(|| Reading::of(self)).as_ref()
    }

    /// Reads the texts and drops them.
    ///
    /// # Errors
    /// All faults of all texts.
    pub fn into_loaded(self) -> Result<Loaded, Vec<Fault>> {
        let (other_files, listing) = (&self.other_files, &self.listing);
        read_with(self.sources, self.captures, other_files, listing, self.complete, &mut |_| {})
    }

    /// Reads the cluster that the texts describe.
    ///
    /// # Errors
    /// All faults of all texts.
    pub fn cluster(&self) -> Result<Cluster, Vec<Fault>> {
        let Some((name, label)) = &self.case else { return Ok(self.load()?.cluster) };
        let all = scenario::read_all(self.sources.clone())?;
        let cases = all
            .into_iter()
            .filter(|scenario| scenario.name == *name)
            .flat_map(|scenario| scenario.cases);
        let found = cases.into_iter().find(|case| case.label == *label);
        found.map(|case| case.cluster).ok_or_else(Vec::new)
    }

    /// Reads the cluster that the texts describe. The texts are dropped as they are read.
    ///
    /// # Errors
    /// All faults of all texts.
    pub fn into_cluster(self) -> Result<Cluster, Vec<Fault>> {
        match self.case {
            Some(_) => self.cluster(),
            None => Ok(self.into_loaded()?.cluster),
        }
    }

    /// Returns whether one of the texts has this object.
    pub fn has(&self, object: &ObjectRef) -> bool {
        self.site(object).is_some()
    }

    /// Returns the text at a place of an object. `None` if there is none.
    pub fn text_at(&self, object: &ObjectRef, path: &[At]) -> Option<String> {
        let site = self.site(object)?;
        edit::text_at(&self.document(&site), &joined(&site.path, path))
    }

    /// Returns the number of items of the list at a place of an object. `None` if there is none.
    pub fn items_at(&self, object: &ObjectRef, path: &[At]) -> Option<usize> {
        let site = self.site(object)?;
        edit::items_at(&self.document(&site), &joined(&site.path, path))
    }

    /// Returns the manifests with these edits.
    ///
    /// # Errors
    /// Returns an error if no text has an object, or if a place cannot be edited.
    pub fn edited(&self, edits: &[Edit]) -> Result<Self, CannotEdit> {
        let mut new = self.clone();
        for edit in edits {
            let site = new
                .site(&edit.object)
                .ok_or_else(|| CannotEdit::NotWritten(edit.object.clone()))?;
            let path = joined(&site.path, &edit.path);
            let document =
                edit::apply(&new.document(&site), &path, &edit.change).map_err(|why| {
                    CannotEdit::Place(edit.object.clone(), path_text(&edit.path), why.0)
                })?;
            new.replace(site, &document);
        }
        Ok(new)
    }

    /// Returns the manifests with an edit of the Scenario whose case the cluster is.
    ///
    /// # Errors
    /// Returns an error if the place cannot be edited.
    pub fn with_scenario(&self, path: &[At], change: &Change) -> Result<Self, CannotEdit> {
        let name = self.case.as_ref().map_or("", |(name, _)| name);
        let refused = |why| {
            let object = ObjectRef::global(ObjectKind::Facts, format!("scenario {name}"));
            CannotEdit::Place(object, path_text(path), why)
        };
        let site = self.site_of(&Wanted::Scenario(name)).ok_or_else(|| refused("not there"))?;
        let mut new = self.clone();
        let document =
            edit::apply(&self.document(&site), path, change).map_err(|why| refused(why.0))?;
        new.replace(site, &document);
        Ok(new)
    }

    /// Returns the manifests with another object: in the Scenario whose case the cluster is, or
    /// else in a file of its own.
    #[must_use]
    pub fn with_object(&self, file: &str, object: &Tree) -> Self {
        let mut new = self.clone();
        if let Some(site) = self.scenario_site() {
            let path = ["spec", "objects"].map(At::from);
            let add = Change::Append(object.clone());
            if let Ok(document) = edit::apply(&self.document(&site), &path, &add) {
                new.replace(site, &document);
                return new;
            }
        }
        new.sources_mut().push(Source { name: file.into(), text: object.document() });
        new
    }

    /// Returns an object as it is written, as a separate document.
    pub fn object(&self, object: &ObjectRef) -> Option<Tree> {
        let site = self.site(object)?;
        tree_at(&self.document(&site), &site.path)
    }
}

/// Returns the value at a place of the first document that has it.
fn tree_at(text: &str, path: &[At]) -> Option<Tree> {
    let mut found = None;
    document::read(text, Keep::All, &mut |document| {
        found = found.take().or_else(|| {
            let root = document.ok()?;
            let mut node = &root;
            for step in path {
                node = match (step, &node.value) {
                    (At::Key(key), _) => node.get(key)?,
                    (At::Item(at), Value::Seq(items)) => items.get(*at)?,
                    _ => return None,
                };
            }
            Some(Tree::from(node))
        });
        std::ops::ControlFlow::Continue(())
    });
    found
}

fn path_text(path: &[At]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            At::Key(key) if text.is_empty() => text.push_str(key),
            At::Key(key) => text.push_str(&format!(".{key}")),
            At::Item(at) => text.push_str(&format!("[{at}]")),
            At::Where(key, value) => text.push_str(&format!("[{key}={value}]")),
        }
    }
    text
}
