//! DNS questions and answers, as far as addresses depend on them.

use std::fmt;
use std::net::IpAddr;

use uturn_model::Family;

/// The type of a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RecordType {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Another type, produced by a rewrite: `HINFO`.
    Other(String),
}

impl RecordType {
    /// Returns the type with this name in upper case.
    pub fn new(word: &str) -> Self {
        match word {
            "A" => Self::A,
            "AAAA" => Self::Aaaa,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Returns the type for addresses of a family.
    pub fn of(family: Family) -> Self {
        match family {
            Family::V4 => Self::A,
            Family::V6 => Self::Aaaa,
        }
    }

    /// Returns the address family of the type's records. Returns `None` for other types.
    pub fn family(&self) -> Option<Family> {
        match self {
            Self::A => Some(Family::V4),
            Self::Aaaa => Some(Family::V6),
            Self::Other(_) => None,
        }
    }
}

impl fmt::Display for RecordType {
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
    /// The name, fully qualified and in lower case, with a trailing dot.
    pub name: String,
    /// The type of the requested records.
    pub kind: RecordType,
}

impl Question {
    /// Makes a question for a name in any spelling.
    pub fn new(name: &str, kind: RecordType) -> Self {
        Self { name: crate::name::normal(name), kind }
    }
}

/// A resource record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    /// The owner name, with a trailing dot.
    pub name: String,
    /// The data.
    pub data: Data,
}

/// The data of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Data {
    /// An address: an A or AAAA record.
    Address(IpAddr),
    /// The target of a CNAME.
    Cname(String),
    /// Data of another type.
    Other,
}

/// A response code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the DNS response code of that name")]
pub enum Rcode {
    NoError,
    FormErr,
    ServFail,
    NxDomain,
    NotImp,
    Refused,
    /// Another code, by its name.
    Other(&'static str),
}

impl Rcode {
    /// All codes that a Corefile can name.
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

    /// Returns the code with a number in a message.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// Returns the number of the code in a message. Numbers from 16 on need EDNS or TSIG.
    pub fn number(self) -> u16 {
        match self {
            Self::NoError => 0,
            Self::FormErr => 1,
            Self::ServFail => 2,
            Self::NxDomain => 3,
            Self::NotImp => 4,
            Self::Refused => 5,
            Self::Other("YXDOMAIN") => 6,
            Self::Other("YXRRSET") => 7,
            Self::Other("NXRRSET") => 8,
            Self::Other("NOTAUTH") => 9,
            Self::Other("NOTZONE") => 10,
            Self::Other("BADSIG") => 16,
            Self::Other("BADKEY") => 17,
            Self::Other("BADTIME") => 18,
            Self::Other("BADMODE") => 19,
            Self::Other("BADNAME") => 20,
            Self::Other("BADALG") => 21,
            Self::Other(_) => 22,
        }
    }

    /// Returns the code with this name in upper case.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.word() == word)
    }

    /// Returns the name of the code.
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

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The response code.
    pub rcode: Rcode,
    /// The answer section, in order.
    pub records: Vec<Record>,
    /// Whether there are records in other sections, as in negative answers.
    pub other_records: bool,
}

impl Reply {
    /// Makes a response without records.
    pub fn code(rcode: Rcode) -> Self {
        Self { rcode, records: Vec::new(), other_records: false }
    }

    /// Makes a negative answer of an authoritative server.
    pub fn nothing(rcode: Rcode) -> Self {
        Self { rcode, records: Vec::new(), other_records: true }
    }

    /// Makes a response with records.
    pub fn records(records: Vec<Record>) -> Self {
        Self { rcode: Rcode::NoError, records, other_records: false }
    }

    /// Makes a response with the addresses of a name that have the queried type.
    pub fn addresses(question: &Question, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let records = addresses
            .into_iter()
            .filter(|ip| question.kind.family() == Some(Family::of(*ip)))
            .map(|ip| Record { name: question.name.clone(), data: Data::Address(ip) });
        Self::records(records.collect())
    }
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A reply.
    Reply(Reply),
    /// No response.
    Silence,
    /// The result depends on something unknown or not modelled.
    Unknown(Unknown),
}

/// The reason why a result is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The unknown facts on which the result depends.
    pub why: String,
    /// The way to find out.
    pub settle: String,
}
