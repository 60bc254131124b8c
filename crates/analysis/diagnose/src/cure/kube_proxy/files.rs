//! The places of kube-proxy's configuration: its ConfigMap, and the arguments of its container.

use uturn_document::edit::{At, Change};
use uturn_model::shell::Command;
use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef};

use crate::cure::{Case, way};

pub(super) const NAMESPACE: &str = "kube-system";

/// The name of the DaemonSet, of its label and of its container.
pub(super) const NAME: &str = "kube-proxy";

/// The argument with the name of the node.
pub(super) const NAME_ARGUMENT: &str = "--hostname-override";

/// The maximum number of arguments that are looked at.
const MAX_ARGUMENTS: usize = 100;

/// Returns the command with which kube-proxy reads its configuration again.
pub(super) fn restart() -> Command {
    Command::new("kubectl -n kube-system rollout restart ds/kube-proxy")
}

/// The configuration of kube-proxy in its ConfigMap.
pub(super) struct Config {
    /// The ConfigMap.
    pub(super) object: ObjectRef,
    /// The key in its data.
    key: &'static str,
    /// The configuration, which is YAML with a key on each line.
    pub(super) text: String,
}

impl Config {
    /// Returns the configuration, if the manifests have it as lines.
    pub(super) fn of(case: &Case<'_>) -> Option<Self> {
        ["kube-proxy", "kube-proxy-config"].into_iter().find_map(|name| {
            let name = NamespacedName::new(NAMESPACE, name).ok()?;
            let object = ObjectRef::namespaced(ObjectKind::ConfigMap, &name);
            ["config.conf", "config"].into_iter().find_map(|key| {
                let text = case.manifests.text_at(&object, &["data", key].map(At::from))?;
                let is_lines = text.lines().any(|line| line.starts_with("kind:"));
                is_lines.then(|| Self { object: object.clone(), key, text })
            })
        })
    }

    pub(super) fn place(&self) -> Vec<At> {
        way!["data", self.key]
    }

    /// Returns the line of a key of the first level, and its value.
    pub(super) fn value(&self, key: &str) -> Option<(usize, String)> {
        self.text.lines().enumerate().find_map(|(at, line)| {
            let value = line.strip_prefix(key)?.strip_prefix(':')?;
            Some((at, value.trim().trim_matches(['"', '\'']).to_owned()))
        })
    }

    /// Returns the change that sets strictARP. Returns `None` if the form of the text does not
    /// allow it.
    pub(super) fn strict_arp(&self) -> Option<Change> {
        let lines: Vec<&str> = self.text.lines().collect();
        let Some((at, value)) = self.value("ipvs") else {
            return Some(Change::Line(lines.len(), "ipvs: {strictARP: true}".to_owned()));
        };
        match &*value {
            "" => {}
            "{}" | "null" | "~" => {
                return Some(Change::Replace(at, "ipvs: {strictARP: true}".to_owned()));
            }
            _ => return None,
        }
        let is_inside = |line: &&&str| line.starts_with([' ', '\t']) || line.is_empty();
        let inside: Vec<&str> = lines[at + 1..].iter().take_while(is_inside).copied().collect();
        let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
        let known = inside.iter().position(|line| line.trim_start().starts_with("strictARP:"));
        let first = inside.iter().find(|line| !line.trim().is_empty());
        Some(match known {
            Some(own) => {
                let line = format!("{}strictARP: true", indent(inside[own]));
                Change::Replace(at + 1 + own, line)
            }
            None => {
                let indent = first.map_or_else(|| "  ".to_owned(), |line| indent(line));
                Change::Line(at + 1, format!("{indent}strictARP: true"))
            }
        })
    }
}

/// The container of kube-proxy in an object.
pub(super) struct Container {
    /// The path to the container within a pod.
    pub(super) place: Vec<At>,
    /// The arguments of its command and of its `args`, by their lists.
    arguments: Vec<(&'static str, Vec<String>)>,
    /// Whether it has the variable NODE_NAME.
    pub(super) has_node_name: bool,
}

impl Container {
    /// Returns the container of an object. `before` is the path to its pods.
    pub(super) fn of(case: &Case<'_>, object: &ObjectRef, before: &[&str]) -> Option<Self> {
        let place = way!["spec", "containers", At::Where("name".to_owned(), NAME.to_owned())];
        let texts = |more: Vec<At>| {
            let before = before.iter().map(|key| At::from(*key));
            let path: Vec<At> = before.chain(place.iter().cloned()).chain(more).collect();
            case.manifests.text_at(object, &path)
        };
        texts(way!["name"])?;
        let items = |list: &'static str| {
            let all = (0..MAX_ARGUMENTS).map_while(|at| texts(way![list, at]));
            (list, all.collect::<Vec<String>>())
        };
        let arguments = vec![items("command"), items("args")];
        let variable = way!["env", At::Where("name".to_owned(), "NODE_NAME".to_owned()), "name"];
        let has_node_name = texts(variable).is_some();
        Some(Self { place, arguments, has_node_name })
    }

    /// Returns the list that has an argument with a value, and its position there. Returns no
    /// position if no list has it, and the last list that is not empty.
    pub(super) fn argument(&self, name: &str) -> (&'static str, Option<usize>) {
        let has = |text: &String| text.split_whitespace().any(|word| is_set(word, name));
        let found = self.arguments.iter().find_map(|(list, all)| {
            let at = all.iter().position(has)?;
            Some((*list, Some(at)))
        });
        let last = self.arguments.iter().rev().find(|(_, all)| !all.is_empty());
        found.unwrap_or((last.map_or("args", |(list, _)| list), None))
    }
}

/// Returns whether a word gives an argument a value.
fn is_set(word: &str, name: &str) -> bool {
    word.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
}

/// Returns an argument, or a command line, with the name of a node.
pub(super) fn with_name(text: &str, node: &Name) -> String {
    let Some(from) = text.find(NAME_ARGUMENT) else { return text.to_owned() };
    let end = text[from..].find(char::is_whitespace).map_or(text.len(), |end| from + end);
    format!("{}{NAME_ARGUMENT}={node}{}", &text[..from], &text[end..])
}
