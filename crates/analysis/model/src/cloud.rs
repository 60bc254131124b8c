//! The identities of clouds, and of programs that make load balancers where there is no cloud.
//!
//! The list of clouds, how each is recognised and how its load balancers behave are data of
//! `uturn-lb`'s module `cloud`: this module names none.

use std::fmt;

/// A cloud, or a program that makes load balancers in its place: its word and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cloud {
    word: &'static str,
    name: &'static str,
}

impl Cloud {
    /// Makes a cloud with the word that Facts use and the name that its vendor uses.
    pub const fn new(word: &'static str, name: &'static str) -> Self {
        Self { word, name }
    }

    /// Returns the word of Facts: `aws`.
    pub const fn word(self) -> &'static str {
        self.word
    }

    /// Returns the vendor's name for it: `AWS`.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl fmt::Display for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
