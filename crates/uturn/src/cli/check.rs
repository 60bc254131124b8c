//! The options of `uturn check`.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use uturn_model::NamespacedName;

use super::named::Named;
use super::{ClusterArgs, OfNamespace, Output};
use crate::completion;

#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// What to check
    pub(crate) topic: CheckTopic,
    /// One Service or Ingress, instead of all
    #[arg(value_name = "NS/NAME", add = completion::checked())]
    pub(crate) object: Option<Named<Checked>>,
    #[command(flatten)]
    pub(crate) of: OfNamespace,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}

/// An object with its namespace, as checklists and tables name it: `shop/front`,
/// `ingress/shop/front`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) topic: Option<CheckTopic>,
    pub(crate) name: NamespacedName,
}

impl FromStr for Checked {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (topic, name) = match text.split_once('/') {
            Some((word, name)) if name.contains('/') => {
                let topic = <CheckTopic as ValueEnum>::from_str(word, true);
                (Some(topic.map_err(|_| "expected NAMESPACE/NAME".to_owned())?), name)
            }
            Some(_) => (None, text),
            None => return Err(format!("expected NAMESPACE/NAME, such as default/{text}")),
        };
        let name = name.parse().map_err(|why: uturn_model::InvalidName| why.to_string())?;
        Ok(Self { topic, name })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckTopic {
    /// A Service that cannot be reached, from outside or inside
    #[value(aliases = ["svc", "services"])]
    Service,
    /// An Ingress that cannot be reached
    #[value(aliases = ["ing", "ingresses"])]
    Ingress,
    /// Names that do not resolve
    Dns,
    /// The settings of every node
    #[value(alias = "node")]
    Nodes,
    /// Pods of different nodes that cannot reach each other
    CrossNode,
}

impl CheckTopic {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::Ingress => "Ingress",
            Self::Dns => "DNS",
            Self::Nodes => "node",
            Self::CrossNode => "pair of nodes",
        }
    }
}
