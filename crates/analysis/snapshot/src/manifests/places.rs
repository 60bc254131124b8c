//! The documents of texts and the items of their Lists, found once for all objects that are sought.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use uturn_document::{self as document, Source};

use super::items;

/// A document of a text.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) range: Range<usize>,
    /// The items, if the document is a List; their places in the text.
    pub(super) items: Option<Vec<Range<usize>>>,
    /// Whether an item may be a reference to another one, which has the content.
    pub(super) has_references: bool,
}

/// The documents of each source.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<OnceLock<Vec<OnceLock<Vec<Document>>>>>);

impl Places {
    /// Returns the documents of the source with this number.
    pub(super) fn of(&self, sources: &[Source], number: usize) -> &[Document] {
        let all = self.0.get_or_init(|| sources.iter().map(|_| OnceLock::new()).collect());
        all[number].get_or_init(|| find(&sources[number].text))
    }
}

fn find(text: &str) -> Vec<Document> {
    let of = |range: Range<usize>| {
        let own = &text[range.clone()];
        let items = items::of_list(own);
        // JSON has no references, and its texts may have any character.
        let has_references = !own.trim_start().starts_with('{') && own.contains('*');
        let moved = |item: Range<usize>| range.start + item.start..range.start + item.end;
        let items = items.map(|items| items.into_iter().map(moved).collect());
        Document { range, items, has_references }
    };
    document::cut(text).into_iter().map(of).collect()
}
