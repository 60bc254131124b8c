//! What stands for what: first everything that is there is collected, then decided, then used.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

use sha2::{Digest, Sha256};

use crate::addresses::{Addresses, Collected};
use crate::words::{Form, Words};

/// Words and addresses: as they are collected, or as they are replaced.
#[derive(Debug)]
pub(crate) struct Names {
    key: Vec<u8>,
    state: State,
    /// The names of interfaces that nodes have.
    links: HashSet<String>,
    /// Words that stay in this input.
    usual: HashSet<&'static str>,
}

#[derive(Debug)]
enum State {
    Collecting(Given),
    Decided { words: Words, addresses: Addresses },
}

/// What an input has.
#[derive(Debug, Default)]
struct Given {
    words: BTreeSet<String>,
    /// Words in names of objects, also those that stay.
    in_names: BTreeSet<String>,
    /// Whether there are classes of letters in regular expressions.
    has_classes: bool,
    addresses: Collected,
}

impl Names {
    /// None yet. Of the words that stay in some inputs only, these do.
    pub(crate) fn new(key: &[u8], usual: HashSet<&'static str>) -> Self {
        let state = State::Collecting(Given::default());
        Self { key: key.to_owned(), state, links: HashSet::new(), usual }
    }

    /// Whether nothing is decided yet, and texts stay as they are.
    pub(crate) fn is_collecting(&self) -> bool {
        matches!(self.state, State::Collecting(_))
    }

    /// Decides what stands for all that was collected.
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

    /// Whether a node has an interface of this name.
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

    /// Whether a word stays in this input that others do without.
    pub(crate) fn is_usual(&self, word: &str) -> bool {
        self.usual.contains(word)
    }

    /// The word that stands for this one.
    pub(crate) fn word(&mut self, word: &str) -> String {
        match &mut self.state {
            State::Collecting(Given { words, .. }) => {
                note(words, word);
                word.to_owned()
            }
            State::Decided { words, .. } => words.of(word),
        }
    }

    /// The address that stands for this one.
    pub(crate) fn address(&mut self, ip: IpAddr) -> IpAddr {
        match &mut self.state {
            State::Collecting(Given { addresses, .. }) => {
                addresses.address(ip);
                ip
            }
            State::Decided { addresses, .. } => addresses.of(ip),
        }
    }

    /// The address that stands for one that is in the input. Others are none of the input's.
    pub(crate) fn known_address(&self, ip: IpAddr) -> Option<IpAddr> {
        match &self.state {
            State::Collecting(_) => None,
            State::Decided { addresses, .. } => addresses.is_given(ip).then(|| addresses.of(ip)),
        }
    }

    /// Notes the range in which an address is.
    pub(crate) fn range(&mut self, ip: IpAddr, length: u8) {
        if let State::Collecting(Given { addresses, .. }) = &mut self.state {
            addresses.range(ip, length);
        }
    }

    /// The hardware address that stands for this one: locally administered.
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

    /// A number for a text, which says nothing without the key.
    pub(crate) fn hash(&self, text: &str) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(&self.key);
        hasher.update(text.as_bytes());
        hasher.finalize().into()
    }

    /// What stands for what: the new text with the old one.
    pub(crate) fn table(&self) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
        let State::Decided { words, addresses } = &self.state else {
            return (BTreeMap::new(), BTreeMap::new());
        };
        let words = words.all().map(|(old, new)| (new.to_owned(), old.to_owned()));
        let addresses = addresses.all().map(|(old, new)| (new.to_string(), old.to_string()));
        (words.collect(), addresses.collect())
    }
}

/// Adds a word. Most are there already.
fn note(words: &mut BTreeSet<String>, word: &str) {
    if !words.contains(word) {
        words.insert(word.to_owned());
    }
}
