//! Turns sources into objects: passes each object of each document to the decoder of its kind.

use std::borrow::Borrow;
use std::cell::RefCell;

use uturn_document::{Fault, Faults, Note, Source, Twice};

use crate::decode::Doc;
use crate::decode::objects::Objects;
use crate::documents::{OURS, each_document, each_item, what_it_lacks};
use crate::kinds::take;
use crate::layout::{OtherFiles, TEMPLATE};
use crate::listing::Listing;
use crate::scenario::{self, Scenario};

/// The objects and scenarios of all sources, and the faults.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) objects: Objects,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) faults: RefCell<Faults>,
    /// Whether an object is defined more than once.
    pub(crate) has_repeated: bool,
}

impl Collected {
    /// Returns whether each object is defined once and without faults, and nothing else was read.
    pub(crate) fn is_plain(&self) -> bool {
        self.scenarios.is_empty() && !self.has_repeated && self.faults.borrow().count() == 0
    }
}

/// Reads all documents of all sources. The text of a source that is handed over is dropped once it
/// is read.
pub(crate) fn collect<S: Borrow<Source>>(
    sources: impl IntoIterator<Item = S>,
    other_files: &OtherFiles,
    listing: &Listing,
) -> Collected {
    let Collected { mut objects, mut scenarios, faults, .. } = Collected::default();
    let mut places = scenario::Places::new();
    let mut others = Vec::new();
    for source in sources {
        let source: &Source = source.borrow();
        let may_be_template = other_files.of_folders.contains(&source.name)
            && TEMPLATE_MARKS.iter().any(|mark| source.text.contains(mark));
        let is_live = listing.live.contains(&source.name);
        each_document(source, is_live, &faults, &mut |doc| {
            if let Some(lacks) = what_it_lacks(doc) {
                objects.leave_out("documents that are no objects", &source.name);
                // Only the first `MAX_OTHERS` are reported.
                if others.len() < MAX_OTHERS {
                    others.push((doc.origin(doc.root), lacks));
                }
                return;
            }
            if may_be_template && is_faulty(doc) {
                return objects.leave_out(TEMPLATE, &source.name);
            }
            each_item(doc, &mut |doc, version, kind| {
                if (version, kind) == (OURS, "Scenario") {
                    scenario::add(doc, &mut scenarios, &mut places);
                } else {
                    take(doc, version, kind, &mut objects);
                }
            });
        });
    }
    for (what, files) in &other_files.left_out {
        files.iter().for_each(|file| objects.leave_out(what, file));
    }
    let mut reported = faults.borrow_mut();
    let twice = reported.take_twice();
    let has_repeated = !twice.is_empty();
    match other_files.variants(&twice) {
        Some(fault) => reported.push(fault),
        None => repeated(twice).into_iter().for_each(|note| reported.note(note)),
    }
    if objects.is_empty() && scenarios.is_empty() && reported.count() == 0 {
        match other_files.nothing(objects.has_none()) {
            Some(fault) => reported.push(fault),
            None if !objects.has_none() => {}
            None => others.into_iter().for_each(|(origin, lacks)| {
                let hint = "expected `apiVersion` and `kind`; is this a Kubernetes manifest?";
                reported.push(Fault::new(origin, format!("not an object: {lacks}")).hint(hint));
            }),
        }
    }
    objects.notes = reported.take_notes();
    objects.forget_specs();
    drop(reported);
    Collected { objects, scenarios, faults, has_repeated }
}

/// Returns a note about repeated objects. As with kubectl, the last one counts.
fn repeated(twice: Vec<Twice>) -> Option<Note> {
    let more = match twice.len() {
        0 | 1 => String::new(),
        all => format!(", and so are {} more objects", all - 1),
    };
    let first = twice.into_iter().next()?.fault;
    Some(Note {
        origin: first.origin,
        message: format!("{}{more}", first.message),
        assumed: "the last one counts",
        because: "kubectl applies them in this order",
        settle: "leave the others out".to_owned(),
    })
}

const MAX_OTHERS: usize = 1000;

/// The placeholders of templates in Go and Jinja, shell, and ytt.
const TEMPLATE_MARKS: [&str; 4] = ["{{", "{%", "${", "#@"];

/// Returns whether a document has faults of its own.
fn is_faulty(doc: &Doc<'_>) -> bool {
    let faults = RefCell::new(Faults::default());
    let trial = Doc { faults: &faults, ..*doc };
    each_item(&trial, &mut |doc, version, kind| {
        if version != OURS {
            // Each object is read into an empty collection, so that repeated objects do not count
            // as faults.
            take(doc, version, kind, &mut Objects::default());
        }
    });
    faults.into_inner().count() > 0
}
