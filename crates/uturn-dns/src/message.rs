//! Questions and answers, as far as addresses depend on them.

use std::fmt;
use std::net::IpAddr;

use uturn_model::Family;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Something else, that a rewrite made of the question: `HINFO`.
    Other(String),
}

impl Kind {
    /// The type as it is written in upper case.
    pub fn new(word: &str) -> Self {
        match word {
            "A" => Self::A,
            "AAAA" => Self::Aaaa,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The type for addresses of a family.
    pub fn of(family: Family) -> Self {
        match family {
            Family::V4 => Self::A,
            Family::V6 => Self::Aaaa,
        }
    }

    /// The family of its addresses, where it has any.
    pub fn family(&self) -> Option<Family> {
        match self {
            Self::A => Some(Family::V4),
            Self::Aaaa => Some(Family::V6),
            Self::Other(_) => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Other(word) => word,
        })
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// Lower case, with the dot at the end.
    pub name: String,
    /// What is asked for.
    pub kind: Kind,
}

impl Question {
    /// A question for a name, however it is written.
    pub fn new(name: &str, kind: Kind) -> Self {
        Self { name: crate::name::normal(name), kind }
    }
}

/// One record of an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// Whose it is, with the dot at the end.
    pub name: String,
    /// What it says.
    pub data: Data,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Data {
    /// An address; the record is an A or an AAAA.
    Address(IpAddr),
    /// The name stands for another one.
    Cname(String),
    /// Something that leads to no address.
    Other,
}

/// How a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the DNS response code of that name")]
pub enum Rcode {
    NoError,
    FormErr,
    ServFail,
    NxDomain,
    NotImp,
    Refused,
    /// Any other, by its name.
    Other(&'static str),
}

impl Rcode {
    /// All that a Corefile can name.
    const ALL: [Self; 18] = [
        Self::NoError,
        Self::FormErr,
        Self::ServFail,
        Self::NxDomain,
        Self::NotImp,
        Self::Refused,
        Self::Other("YXDOMAIN"),
        Self::Other("YXRRSET"),
        Self::Other("NXRRSET"),
        Self::Other("NOTAUTH"),
        Self::Other("NOTZONE"),
        Self::Other("BADSIG"),
        Self::Other("BADKEY"),
        Self::Other("BADTIME"),
        Self::Other("BADMODE"),
        Self::Other("BADNAME"),
        Self::Other("BADALG"),
        Self::Other("BADTRUNC"),
    ];

    /// By its name in upper case.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::NoError => "NOERROR",
            Self::FormErr => "FORMERR",
            Self::ServFail => "SERVFAIL",
            Self::NxDomain => "NXDOMAIN",
            Self::NotImp => "NOTIMP",
            Self::Refused => "REFUSED",
            Self::Other(word) => word,
        }
    }
}

/// What comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// How it was answered.
    pub rcode: Rcode,
    /// The answer section, in order.
    pub records: Vec<Record>,
    /// Whether it names an authority, as refusals of names do.
    pub authority: bool,
}

impl Reply {
    /// Nothing but a code.
    pub fn code(rcode: Rcode) -> Self {
        Self { rcode, records: Vec::new(), authority: false }
    }

    /// No such name, or no such record, from who should know.
    pub fn nothing(rcode: Rcode) -> Self {
        Self { rcode, records: Vec::new(), authority: true }
    }

    /// Records.
    pub fn records(records: Vec<Record>) -> Self {
        Self { rcode: Rcode::NoError, records, authority: false }
    }

    /// Addresses for a name; only those of the kind that was asked for.
    pub fn addresses(question: &Question, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let records = addresses
            .into_iter()
            .filter(|ip| question.kind.family() == Some(Family::of(*ip)))
            .map(|ip| Record { name: question.name.clone(), data: Data::Address(ip) });
        Self::records(records.collect())
    }
}

/// What becomes of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A reply.
    Reply(Reply),
    /// Nothing comes back.
    Silence,
    /// It depends on something that is not known or not modelled.
    Unknown(Unknown),
}

/// Why an answer is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What it depends on.
    pub why: String,
    /// What would settle it.
    pub settle: String,
}
