//! The credentials that a server knows: the secret key and the account of each secret id.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use uturn_cloud_api::SecretKey;

/// The credentials of a server, by their ids.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    by_id: HashMap<String, Credential>,
}

/// The key and the account of a secret id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The key that requests are signed with.
    pub secret_key: SecretKey,
    /// The account whose resources the credential gives access to.
    pub account: String,
}

/// An error in a file of credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", if *line == 0 { String::new() } else { format!("line {line}: ") })]
pub struct CredentialsError {
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// The error.
    pub problem: String,
}

impl Credentials {
    /// Parses lines of the form `SECRET_ID SECRET_KEY [ACCOUNT]`. Skips empty lines and lines that
    /// begin with `#`. Without ACCOUNT, the account has the name of the secret id.
    ///
    /// # Errors
    ///
    /// Returns the first line that has another form or an id that an earlier line has, or an
    /// error for a file without any credential.
    pub fn parse(text: &str) -> Result<Self, CredentialsError> {
        let mut credentials = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line_error = |problem: String| CredentialsError { line: number + 1, problem };
            let words: Vec<&str> = line.split_whitespace().collect();
            let (id, key, account) = match words[..] {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [id, key] => (id, key, id),
                [id, key, account] => (id, key, account),
                _ => {
                    let found = words.len();
                    return Err(line_error(format!(
                        "expected SECRET_ID SECRET_KEY [ACCOUNT], found {found} words"
                    )));
                }
            };
            let Entry::Vacant(entry) = credentials.by_id.entry(id.to_owned()) else {
                return Err(line_error(format!("{id} is on an earlier line already")));
            };
            entry.insert(Credential {
                secret_key: SecretKey::from(key.to_owned()),
                account: account.to_owned(),
            });
        }
        if credentials.by_id.is_empty() {
            let problem = "the file has no credential: write SECRET_ID SECRET_KEY on a line";
            return Err(CredentialsError { line: 0, problem: problem.to_owned() });
        }
        Ok(credentials)
    }

    /// Returns the names of the accounts.
    pub fn accounts(&self) -> BTreeSet<&str> {
        self.by_id.values().map(|credential| credential.account.as_str()).collect()
    }

    /// Returns the credential of a secret id.
    pub fn get(&self, id: &str) -> Option<&Credential> {
        self.by_id.get(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_an_id_a_key_and_perhaps_an_account() {
        let text = "# test keys\n\nid1 key1\n  id2\tkey2 shared \nid3 key3 shared";
        let credentials = Credentials::parse(text).unwrap();
        let account = |id| credentials.get(id).map(|credential| credential.account.as_str());
        assert_eq!(account("id1"), Some("id1"));
        assert_eq!(account("id2"), Some("shared"));
        assert_eq!(account("id3"), Some("shared"));
        assert_eq!(account("id4"), None);
        assert!(!format!("{credentials:?}").contains("key1"));
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text| Credentials::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("id1 key1\nid2\n"),
            "line 2: expected SECRET_ID SECRET_KEY [ACCOUNT], found 1 words"
        );
        assert_eq!(error("id1 a\nid1 b"), "line 2: id1 is on an earlier line already");
        assert!(error("# nothing\n").contains("no credential"));
    }
}
