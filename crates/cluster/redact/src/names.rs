//! The replacements of names: first the whole input is collected, then the replacements are
//! decided, then used.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

use sha2::{Digest, Sha256};

use crate::addresses::{Addresses, Collected};
use crate::words::{Form, Words};

/// The words and addresses of an input: while they are collected, or with their replacements.
#[derive(Debug)]
pub(crate) struct Names {
    key: Vec<u8>,
    state: State,
    /// The names of the interfaces of nodes.
    links: HashSet<String>,
    /// The words that are kept in this input.
    usual: HashSet<&'static str>,
}

#[derive(Debug)]
enum State {
    Collecting(Given),
    Decided { words: Words, addresses: Addresses },
}

/// The collected words and addresses of an input.
#[derive(Debug, Default)]
struct Given {
    words: BTreeSet<String>,
    /// Words in names of objects, including those that are kept.
    in_names: BTreeSet<String>,
    /// Whether regular expressions contain classes of letters.
    has_classes: bool,
    addresses: Collected,
}

impl Names {
    /// Makes an empty collection. `usual` are the words that are kept in this input, of those that
    /// are kept in some inputs only.
    pub(crate) fn new(key: &[u8], usual: HashSet<&'static str>) -> Self {
        let state = State::Collecting(Given::default());
        Self { key: key.to_owned(), state, links: HashSet::new(), usual }
    }

    /// Returns whether nothing is decided yet, and texts are not changed.
    pub(crate) fn is_collecting(&self) -> bool {
        matches!(self.state, State::Collecting(_))
    }

    /// Decides the replacements of everything that was collected.
    pub(crate) fn decide(self) -> Self {
        let state = match self.state {
            State::Collecting(given) => {
                let kept = &given.in_names - &given.words;
                let form = if given.has_classes { Form::Letters } else { Form::Numbers };
                State::Decided {
                    words: Words::decide(&given.words, &kept, form),
                    addresses: given.addresses.decide(&self.key),
                }
            }
            decided => decided,
        };
        Self { state, ..self }
    }

    /// Notes the name of an interface.
    pub(crate) fn note_link(&mut self, name: &str) {
        if self.is_collecting() && !self.links.contains(name) {
            self.links.insert(name.to_owned());
        }
    }

    /// Returns whether a node has an interface with this name.
    pub(crate) fn is_link(&self, name: &str) -> bool {
        self.links.contains(name)
    }

    /// Notes the name of an object: some results depend on which name sorts first.
    pub(crate) fn note_object(&mut self, name: &str) {
        if let State::Collecting(given) = &mut self.state {
            let words = name.split(|letter: char| !letter.is_alphanumeric());
            words.filter(|word| !word.is_empty()).for_each(|word| note(&mut given.in_names, word));
        }
    }

    /// Notes that a regular expression has a class of letters.
    pub(crate) fn note_letters(&mut self) {
        if let State::Collecting(given) = &mut self.state {
            given.has_classes = true;
        }
    }

    /// Returns whether a word is kept in this input that other inputs replace.
    pub(crate) fn is_usual(&self, word: &str) -> bool {
        self.usual.contains(word)
    }

    /// Returns the replacement of a word.
    pub(crate) fn word(&mut self, word: &str) -> String {
        match &mut self.state {
            State::Collecting(Given { words, .. }) => {
                note(words, word);
                word.to_owned()
            }
            State::Decided { words, .. } => words.of(word),
        }
    }

    /// Returns the replacement of an address.
    pub(crate) fn address(&mut self, ip: IpAddr) -> IpAddr {
        match &mut self.state {
            State::Collecting(Given { addresses, .. }) => {
                addresses.address(ip);
                ip
            }
            State::Decided { addresses, .. } => addresses.of(ip),
        }
    }

    /// Returns the replacement of an address that is in the input. Returns `None` for any other
    /// address.
    pub(crate) fn known_address(&self, ip: IpAddr) -> Option<IpAddr> {
        match &self.state {
            State::Collecting(_) => None,
            State::Decided { addresses, .. } => addresses.is_given(ip).then(|| addresses.of(ip)),
        }
    }

    /// Notes the range that contains an address.
    pub(crate) fn range(&mut self, ip: IpAddr, length: u8) {
        if let State::Collecting(Given { addresses, .. }) = &mut self.state {
            addresses.range(ip, length);
        }
    }

    /// Returns the replacement of a hardware address, which is locally administered.
    pub(crate) fn hardware(&self, text: &str) -> String {
        let lower = text.to_ascii_lowercase();
        if self.is_collecting() || matches!(&*lower, "00:00:00:00:00:00" | "ff:ff:ff:ff:ff:ff") {
            return text.to_owned();
        }
        let hash = self.hash(&lower);
        let more = text.split(':').count() - 1;
        let bytes = hash.iter().take(more).map(|byte| format!(":{byte:02x}"));
        format!("02{}", bytes.collect::<String>())
    }

    /// Returns a hash of a text, which reveals nothing without the key.
    pub(crate) fn hash(&self, text: &str) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(&self.key);
        hasher.update(text.as_bytes());
        hasher.finalize().into()
    }

    /// Returns the replacements: the original text by the new one.
    pub(crate) fn table(&self) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
        let State::Decided { words, addresses } = &self.state else {
            return (BTreeMap::new(), BTreeMap::new());
        };
        let words = words.all().map(|(old, new)| (new.to_owned(), old.to_owned()));
        let addresses = addresses.all().map(|(old, new)| (new.to_string(), old.to_string()));
        (words.collect(), addresses.collect())
    }
}

/// Adds a word. Most words are already known.
fn note(words: &mut BTreeSet<String>, word: &str) {
    if !words.contains(word) {
        words.insert(word.to_owned());
    }
}
