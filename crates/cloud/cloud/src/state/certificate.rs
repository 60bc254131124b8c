//! Certificates, and what a listener or a rule does with one.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A certificate of the account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Its id: eight letters and digits.
    pub id: String,
    /// The name that the user gave it.
    pub name: String,
    /// Whether it is for servers (`SVR`) or an authority for clients' certificates (`CA`).
    pub is_authority: bool,
    /// The certificates in PEM.
    pub chain: String,
    /// The private key in PEM; `None` for an authority.
    pub key: Option<String>,
    /// When it was uploaded.
    pub created: Timestamp,
}

/// What a listener or a rule does with certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerCertificate {
    /// The ids of the certificates that are shown to clients; the first is for clients that ask
    /// for no name of theirs.
    pub servers: Vec<String>,
    /// The id of the authority that clients' certificates have to come from.
    pub authority: Option<String>,
    /// Whether clients may do without a certificate where there is an authority.
    pub clients_may_be_anonymous: bool,
}
