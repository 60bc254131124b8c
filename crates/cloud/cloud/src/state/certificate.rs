//! Certificates, and their use by listeners and rules.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A certificate of the account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The id: eight letters and digits.
    pub id: String,
    /// The name that the user gave the certificate.
    pub name: String,
    /// Whether the certificate is an authority for clients' certificates (`CA`) instead of a
    /// server's (`SVR`).
    pub is_authority: bool,
    /// The certificates in PEM.
    pub chain: String,
    /// The private key in PEM; `None` for an authority.
    pub key: Option<String>,
    /// The time of its upload.
    pub created: Timestamp,
}

/// The certificates that a listener or a rule uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerCertificate {
    /// The ids of the certificates that are presented to clients. The first is for clients whose
    /// server name matches none.
    pub servers: Vec<String>,
    /// The id of the authority that has to have issued clients' certificates.
    pub authority: Option<String>,
    /// Whether clients may connect without a certificate although there is an authority.
    pub clients_may_be_anonymous: bool,
}
