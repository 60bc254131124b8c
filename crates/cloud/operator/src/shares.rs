//! The namespaces that may use each of the user's load balancers.
//!
//! Without an entry, only the namespace of the object that first used a load balancer may use it.
//! With an entry, exactly the entry's namespaces may use it.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use uturn_model::Name;

/// The word for every namespace.
const ANY: &str = "*";

/// The namespaces that may use each load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    namespaces: BTreeMap<String, BTreeSet<String>>,
}

/// An entry: a load balancer and the namespaces that may use it, such as `lb-9f3k2m1q=prod,shop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    balancer: String,
    namespaces: BTreeSet<String>,
}

/// The error for a text that is not an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}: expected LB=NAMESPACE[,NAMESPACE...] such as lb-9f3k2m1q=prod,shop; * is every namespace"
)]
pub struct NoShare(String);

impl FromStr for Share {
    type Err = NoShare;

    fn from_str(text: &str) -> Result<Self, NoShare> {
        let wrong = || NoShare(format!("{text:?}"));
        let (balancer, namespaces) = text.split_once('=').ok_or_else(wrong)?;
        let namespaces: BTreeSet<String> = namespaces.split(',').map(str::to_owned).collect();
        let is_id = !balancer.is_empty()
            && balancer.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_namespace = |text: &String| text == ANY || Name::new(text.as_str()).is_ok();
        if !is_id || !namespaces.iter().all(is_namespace) {
            return Err(wrong());
        }
        Ok(Self { balancer: balancer.to_owned(), namespaces })
    }
}

impl FromIterator<Share> for Shares {
    fn from_iter<T: IntoIterator<Item = Share>>(entries: T) -> Self {
        let mut shares = Self::default();
        for Share { balancer, namespaces } in entries {
            shares.namespaces.entry(balancer).or_default().extend(namespaces);
        }
        shares
    }
}

impl Shares {
    /// Returns whether a namespace may use a load balancer, or `None` if there is no entry for it.
    pub fn allows(&self, balancer: &str, namespace: &str) -> Option<bool> {
        let allowed = self.namespaces.get(balancer)?;
        Some(allowed.contains(namespace) || allowed.contains(ANY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_exactly_who_may() {
        let entries = ["lb-1=prod", "lb-1=shop,bank", "lb-2=*"];
        let shares: Shares =
            entries.into_iter().map(|text| text.parse::<Share>().unwrap()).collect();
        for (balancer, namespace, expected) in [
            ("lb-1", "prod", Some(true)),
            ("lb-1", "bank", Some(true)),
            ("lb-1", "other", Some(false)),
            ("lb-2", "other", Some(true)),
            ("lb-3", "prod", None),
        ] {
            assert_eq!(shares.allows(balancer, namespace), expected, "{balancer} {namespace}");
        }
        for wrong in
            ["", "lb-1", "lb-1=", "=prod", "lb-1=a,,b", "lb-1=Prod", "lb 1=prod", "lb-1=a b"]
        {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
