//! Redacts the parts of a cluster that could not be read.

use std::collections::HashSet;
use std::sync::LazyLock;

use uturn_model::cluster::Unread;

use crate::names::Names;
use crate::text::{NAMES, Vocabulary, redact as redact_text};
use crate::words::list;

static SENTENCES: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| list(include_str!("known/sentences.txt")));

/// Redacts the description of a part that could not be read.
pub(crate) fn redact(unread: &Unread, names: &mut Names) -> Unread {
    let vocabulary = Vocabulary { words: Some(&SENTENCES), ..NAMES };
    let mut of = |text: &str| redact_text(text, names, vocabulary).into();
    Unread { what: of(&unread.what), known: of(&unread.known), why: of(&unread.why) }
}
