//! Clouds, and programs that make load balancers where there is no cloud, as identities.
//!
//! Which ones there are, how each is recognised and how its load balancers behave is data of
//! `uturn-lb`'s module `cloud`: nothing here names one.

use std::fmt;

/// A cloud, or a program that makes load balancers in its place: its word and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cloud {
    word: &'static str,
    name: &'static str,
}

impl Cloud {
    /// A cloud with the word that Facts use and the name that its vendor uses.
    pub const fn new(word: &'static str, name: &'static str) -> Self {
        Self { word, name }
    }

    /// The word of Facts: `aws`.
    pub const fn word(self) -> &'static str {
        self.word
    }

    /// The vendor's name for it: `AWS`.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl fmt::Display for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
