//! The words of the command line for changes to what lives.

use uturn_model::node::Loss;
use uturn_model::{Name, NamespacedName, WorkloadKind};

use super::{LifeChange, LifeError};

const SCALE: &str = "KIND/NAMESPACE/NAME=REPLICAS, such as deploy/shop/web=0";
const POD: &str = "pod/NAMESPACE/NAME, such as pod/shop/web-0";
const NODE: &str = "the name of a node";
const ZONE: &str = "the name of a zone";

impl LifeChange {
    /// Reads the value of `--lose`: a node, with `=unnoticed` for the time until it is noticed.
    ///
    /// # Errors
    /// Returns an error if the text is not the name of a node.
    pub fn lose(text: &str) -> Result<Self, LifeError> {
        let (name, loss) = with_loss(text);
        Ok(Self::Lose { node: node(name)?, loss })
    }

    /// Reads the value of `--lose-zone`: a zone, with `=unnoticed` for the time until it is noticed.
    ///
    /// # Errors
    /// Returns an error if the text is empty.
    pub fn lose_zone(text: &str) -> Result<Self, LifeError> {
        let (zone, loss) = with_loss(text);
        if zone.is_empty() {
            return Err(malformed(text, ZONE));
        }
        Ok(Self::LoseZone { zone: zone.into(), loss })
    }

    /// Reads the value of `--drain`: a node.
    ///
    /// # Errors
    /// Returns an error if the text is not the name of a node.
    pub fn drain(text: &str) -> Result<Self, LifeError> {
        Ok(Self::Drain(node(text)?))
    }

    /// Reads the value of `--scale`: a workload and the number of its pods.
    ///
    /// # Errors
    /// Returns an error if the text is not `KIND/NAMESPACE/NAME=REPLICAS`.
    pub fn scale(text: &str, namespace: Option<&str>) -> Result<Self, LifeError> {
        let parts = || {
            let (object, replicas) = text.rsplit_once('=')?;
            let (kind, name) = object.split_once('/')?;
            Some(Self::Scale {
                kind: WorkloadKind::from_word(kind)?,
                name: named(name, namespace)?,
                replicas: replicas.parse().ok()?,
            })
        };
        parts().ok_or_else(|| malformed(text, SCALE))
    }

    /// Reads the value of `--unready`: a pod, with or without `pod/`.
    ///
    /// # Errors
    /// Returns an error if the text is not `pod/NAMESPACE/NAME`.
    pub fn unready(text: &str, namespace: Option<&str>) -> Result<Self, LifeError> {
        let name = ["pod/", "pods/", "po/"].iter().find_map(|word| text.strip_prefix(word));
        let name = named(name.unwrap_or(text), namespace).ok_or_else(|| malformed(text, POD))?;
        Ok(Self::Unready(name))
    }
}

/// Reads a name with its namespace, or one in the given namespace.
fn named(text: &str, namespace: Option<&str>) -> Option<NamespacedName> {
    match namespace.filter(|_| !text.contains('/')) {
        Some(namespace) => NamespacedName::new(namespace, text).ok(),
        None => text.parse().ok(),
    }
}

fn with_loss(text: &str) -> (&str, Loss) {
    match text.strip_suffix("=unnoticed") {
        Some(name) => (name, Loss::Unnoticed),
        None => (text, Loss::Noticed),
    }
}

fn node(text: &str) -> Result<Name, LifeError> {
    let name = ["node/", "nodes/", "no/"].iter().find_map(|word| text.strip_prefix(word));
    Name::new(name.unwrap_or(text)).map_err(|_| malformed(text, NODE))
}

fn malformed(text: &str, expected: &'static str) -> LifeError {
    LifeError::Malformed { text: text.into(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_as_it_is_written() {
        let all = [
            LifeChange::lose("n1"),
            LifeChange::lose("n1=unnoticed"),
            LifeChange::lose_zone("zone-a"),
            LifeChange::drain("n2"),
            LifeChange::scale("deploy/web=0", Some("shop")),
            LifeChange::unready("pod/shop/web-0", None),
        ];
        let written: Vec<String> =
            all.iter().map(|own| own.as_ref().unwrap().to_string()).collect();
        assert_eq!(
            written,
            [
                "--lose n1",
                "--lose n1=unnoticed",
                "--lose-zone zone-a",
                "--drain n2",
                "--scale deploy/shop/web=0",
                "--unready pod/shop/web-0",
            ]
        );
    }

    #[test]
    fn a_text_that_is_no_change_says_what_is_expected() {
        for text in ["shop/web=1", "deploy/shop/web", "deploy/shop/web=-1", "svc/shop/web=1", "=3"]
        {
            let why = LifeChange::scale(text, None).unwrap_err().to_string();
            assert!(why.contains("deploy/shop/web=0"), "{why}");
        }
        for text in ["", "web-0", "pod/web-0"] {
            assert!(LifeChange::unready(text, None).is_err(), "{text}");
        }
        assert!(LifeChange::lose("").is_err());
        assert!(LifeChange::lose_zone("=unnoticed").is_err());
    }
}
