//! The places where things are written, so that evidence can be checked by hand.

use std::fmt;
use std::sync::Arc;

use crate::{Name, ObjectRef, Text};

/// The place where something is written. Lines and columns count from 1; 0 means all of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// A place in a file.
    File {
        /// The path as the user named it; `-` is standard input.
        path: Text,
        /// The line; 0 means the whole file.
        line: u32,
        /// The column; 0 means the whole line.
        column: u32,
    },
    /// A place in the rules that uturn wrote for a node: `uturn rules --node NODE` prints them.
    Generated {
        /// The node.
        node: Name,
        /// The part of the rules.
        part: RulesPart,
        /// The line; 0 means the whole text.
        line: u32,
        /// The column; 0 means the whole line.
        column: u32,
    },
    /// A place in iptables rules that are a field of a document.
    Embedded {
        /// The field.
        field: Arc<Origin>,
        /// The line; 0 means the whole field.
        line: u32,
        /// The column; 0 means the whole line.
        column: u32,
    },
    /// An assumption: what such clusters usually have, or a line of such a text.
    Supposed {
        /// The line; 0 means no text or all of it.
        line: u32,
        /// The column; 0 means the whole line.
        column: u32,
    },
    /// An object that an API server returned.
    Live {
        /// The object's `metadata.resourceVersion`.
        resource_version: Text,
    },
    /// A kernel's behaviour without any configuration.
    Kernel,
    /// Something that follows from a source without a place of its own.
    Derived(DerivedFrom),
}

/// A part of the rules that uturn writes for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RulesPart {
    /// kube-proxy's rules of iptables.
    Iptables,
    /// kube-proxy's sets.
    Ipset,
    /// kube-proxy's rules of nftables.
    Nftables,
    /// kube-proxy's virtual servers.
    Ipvs,
    /// The pod network's rules of iptables.
    PodNetwork,
}

/// A source that was not read from a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DerivedFrom {
    /// A sysctl of a node.
    Sysctl,
    /// The addresses of a node's interfaces.
    Addresses,
    /// A part of a node's state that its capture lacks.
    NotCaptured,
    /// The network between the nodes.
    Fabric,
    /// The cloud of a load balancer.
    Cloud,
    /// The world outside the cluster.
    Outside,
    /// The cluster's DNS.
    Dns,
    /// A client's resolver.
    Resolver,
    /// A statement in Facts.
    Facts,
    /// An option of the command line: `--mode`.
    Option(&'static str),
    /// An object that was not read from a text.
    Object(Arc<ObjectRef>),
    /// A statement of a rule, printed by itself.
    Statement,
}

/// The name of a text whose lines are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceName {
    /// A file, as the user named it; `-` is standard input.
    File(Text),
    /// Rules that uturn wrote for a node.
    Generated(Name, RulesPart),
    /// Rules of iptables that are a field of a document.
    Embedded(Arc<Origin>),
}

impl Origin {
    /// Makes a place in a text.
    pub fn at(source: impl Into<SourceName>, line: u32, column: u32) -> Self {
        match source.into() {
            SourceName::File(path) => Self::File { path, line, column },
            SourceName::Generated(node, part) => Self::Generated { node, part, line, column },
            SourceName::Embedded(field) => Self::Embedded { field, line, column },
        }
    }

    /// Makes the place of a whole line.
    pub fn line_of(source: impl Into<SourceName>, line: u32) -> Self {
        Self::at(source, line, 0)
    }

    /// Makes the place of a whole file.
    pub fn file(path: impl Into<Text>) -> Self {
        Self::File { path: path.into(), line: 0, column: 0 }
    }

    /// The place of an assumption without a text.
    pub const SUPPOSED: Self = Self::Supposed { line: 0, column: 0 };

    /// Makes the place of an object that was not read from a text.
    pub fn object(object: ObjectRef) -> Self {
        Self::Derived(DerivedFrom::Object(Arc::new(object)))
    }

    /// Returns the path of a file.
    ///
    /// Returns `None` if it is not in a file.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::File { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the line; 0 if there is none.
    pub fn line(&self) -> u32 {
        self.position().0
    }

    /// Returns the column; 0 if there is none.
    pub fn column(&self) -> u32 {
        self.position().1
    }

    fn position(&self) -> (u32, u32) {
        match self {
            Self::File { line, column, .. }
            | Self::Generated { line, column, .. }
            | Self::Embedded { line, column, .. }
            | Self::Supposed { line, column } => (*line, *column),
            Self::Live { .. } | Self::Kernel | Self::Derived(_) => (0, 0),
        }
    }

    /// Removes line and column from a place in rules that uturn wrote.
    pub fn clear_generated_line(&mut self) {
        if let Self::Generated { line, column, .. } = self {
            (*line, *column) = (0, 0);
        }
    }

    /// Returns the place of a line and column of a text that begins here. Lines of a block scalar
    /// are lines of its file; the lines of all other texts share one place.
    #[must_use]
    pub fn within(&self, line: u32, column: u32) -> Self {
        match self {
            Self::File { path, line: 0, .. } => Self::at(path, line, column),
            Self::File { path, line: first, column: 0 } => {
                Self::line_of(path, first.saturating_add(line - 1))
            }
            Self::Supposed { .. } => Self::Supposed { line, column },
            other => other.clone(),
        }
    }
}

impl From<&str> for SourceName {
    fn from(path: &str) -> Self {
        Self::File(path.into())
    }
}

impl From<String> for SourceName {
    fn from(path: String) -> Self {
        Self::File(path.into())
    }
}

impl From<Text> for SourceName {
    fn from(path: Text) -> Self {
        Self::File(path)
    }
}

impl From<&Text> for SourceName {
    fn from(path: &Text) -> Self {
        Self::File(path.clone())
    }
}

impl From<&Self> for SourceName {
    fn from(name: &Self) -> Self {
        name.clone()
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.write_str(path),
            Self::Generated(node, part) => write_generated(f, node, *part),
            Self::Embedded(field) => write!(f, "{field} iptables"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, .. } => f.write_str(path)?,
            Self::Generated { node, part, .. } => write_generated(f, node, *part)?,
            Self::Embedded { field, .. } => write!(f, "{field} iptables")?,
            Self::Supposed { .. } => f.write_str("supposed")?,
            Self::Live { resource_version } => write!(f, "resourceVersion {resource_version}")?,
            Self::Kernel => f.write_str("kernel")?,
            Self::Derived(from) => from.fmt(f)?,
        }
        match self.position() {
            (0, _) => Ok(()),
            (line, 0) => write!(f, ":{line}"),
            (line, column) => write!(f, ":{line}:{column}"),
        }
    }
}

fn write_generated(f: &mut fmt::Formatter<'_>, node: &Name, part: RulesPart) -> fmt::Result {
    write!(f, "rules/{node}")?;
    f.write_str(match part {
        RulesPart::Iptables => "",
        RulesPart::Ipset => " ipset",
        RulesPart::Nftables => " nft",
        RulesPart::Ipvs => " ipvs",
        RulesPart::PodNetwork => " pod network",
    })
}

impl fmt::Display for DerivedFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sysctl => "sysctl",
            Self::Addresses => "addr",
            Self::NotCaptured => "not captured",
            Self::Fabric => "fabric",
            Self::Cloud => "cloud",
            Self::Outside => "outside",
            Self::Dns => "dns",
            Self::Resolver => "resolv.conf",
            Self::Facts => "Facts",
            Self::Option(option) => option,
            Self::Object(object) => return object.fmt(f),
            Self::Statement => "statement",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_prints_where_to_look() {
        let node = Name::new("n1").unwrap();
        let generated = |part| SourceName::Generated(node.clone(), part);
        let field = Arc::new(Origin::at("facts.yaml", 9, 3));
        for (origin, printed) in [
            (Origin::file("a.yaml"), "a.yaml"),
            (Origin::line_of("a.yaml", 3), "a.yaml:3"),
            (Origin::at("-", 3, 5), "-:3:5"),
            (Origin::at(generated(RulesPart::Iptables), 7, 0), "rules/n1:7"),
            (Origin::at(generated(RulesPart::PodNetwork), 7, 2), "rules/n1 pod network:7:2"),
            (Origin::at(SourceName::Embedded(field), 2, 0), "facts.yaml:9:3 iptables:2"),
            (Origin::SUPPOSED, "supposed"),
            (Origin::SUPPOSED.within(4, 1), "supposed:4:1"),
            (Origin::Live { resource_version: "812".into() }, "resourceVersion 812"),
            (Origin::Kernel, "kernel"),
            (Origin::Derived(DerivedFrom::Option("--mode")), "--mode"),
        ] {
            assert_eq!(origin.to_string(), printed);
        }
    }

    #[test]
    fn lines_within_a_text() {
        let place = |origin: Origin| origin.within(3, 5).to_string();
        assert_eq!(place(Origin::file("Corefile")), "Corefile:3:5");
        assert_eq!(place(Origin::line_of("cm.yaml", 10)), "cm.yaml:12");
        assert_eq!(place(Origin::at("cm.yaml", 10, 7)), "cm.yaml:10:7");
    }

    #[test]
    fn only_generated_lines_are_left_out() {
        let node = Name::new("n1").unwrap();
        let mut origin = Origin::at(SourceName::Generated(node, RulesPart::Nftables), 7, 2);
        origin.clear_generated_line();
        assert_eq!(origin.to_string(), "rules/n1 nft");
        let mut file = Origin::at("rules/n1.yaml", 7, 2);
        file.clear_generated_line();
        assert_eq!(file.to_string(), "rules/n1.yaml:7:2");
    }
}
