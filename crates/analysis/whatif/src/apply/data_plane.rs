//! Changes of how Services are served: in kube-proxy's ConfigMap where it is given, and in Facts, which
//! win over every object.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::proxy::{CLUSTER_CIDR, LocalDetector};
use uturn_model::{
    Cluster, DerivedFrom, Known, NamespacedName, ObjectKind, ObjectRef, Origin, ProxyMode,
    ServiceProxy, Text,
};
use uturn_snapshot::Manifests;
use uturn_snapshot::manifests::Edit;

use super::{Texts, merge};
use crate::change::DataPlane;

impl Texts<'_> {
    /// States a change of the data plane in the texts.
    pub(super) fn state(&mut self, what: &DataPlane) -> Result<(), String> {
        self.outdates_captures = true;
        match what {
            DataPlane::Mode(mode) => {
                self.configure("mode", &format!("{:?}", mode.as_str()))?;
                if self.manifests.case().is_some() {
                    return self.run_case_in(*mode);
                }
                self.set_fact(&way(&["kubeProxy", "mode"]), &Tree::text(mode.as_str()))
            }
            DataPlane::Release(version) => {
                self.set_fact(&way(&["kubeProxy", "version"]), &Tree::text(version.to_string()))
            }
            DataPlane::ClusterCidr(ranges) => {
                let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
                self.configure("clusterCIDR", &format!("{:?}", ranges.join(",")))
            }
            DataPlane::Program(program) => {
                let word = ServiceProxy::ALL.iter().find(|(own, ..)| own == program);
                let word = word.map_or("none", |(_, word, _)| word);
                self.set_fact(&way(&["kubeProxy", "replacedBy"]), &Tree::text(word))
            }
        }
    }

    /// Has a Scenario run in one mode only, which its Facts do not decide.
    fn run_case_in(&mut self, mode: ProxyMode) -> Result<(), String> {
        let modes = Tree::List(vec![Tree::text(mode.as_str())]);
        let edited = self.manifests.with_scenario(&way(&["spec", "modes"]), &Change::Set(modes));
        self.manifests = edited.map_err(|why| why.to_string())?;
        Ok(())
    }

    /// Sets a key of kube-proxy's configuration, if its ConfigMap is given.
    fn configure(&mut self, key: &str, value: &str) -> Result<(), String> {
        let Some((object, field, text)) = self.configuration() else { return Ok(()) };
        let beginning = format!("{key}:");
        let at = text.lines().position(|line| line.starts_with(&beginning));
        let line = format!("{key}: {value}");
        let change = match at {
            Some(at) => Change::Replace(at, line),
            None => Change::Line(text.lines().count(), line),
        };
        let path = way(&["data", field]);
        let edit = Edit { object, path, change };
        self.manifests = self.manifests.edited(&[edit]).map_err(|why| why.to_string())?;
        Ok(())
    }

    /// Returns kube-proxy's ConfigMap, the key of the configuration in it, and the configuration.
    fn configuration(&self) -> Option<(ObjectRef, &'static str, String)> {
        ["kube-proxy", "kube-proxy-config"].into_iter().find_map(|name| {
            let name = NamespacedName::new("kube-system", name).ok()?;
            let object = ObjectRef::namespaced(ObjectKind::ConfigMap, &name);
            ["config.conf", "config"].into_iter().find_map(|field| {
                let text = self.manifests.text_at(&object, &way(&["data", field]))?;
                let is_lines = text.lines().any(|line| line.starts_with("kind:"));
                is_lines.then(|| (object.clone(), field, text))
            })
        })
    }

    /// Sets a value in the Facts, or in new ones.
    pub(super) fn set_fact(&mut self, path: &[At], value: &Tree) -> Result<(), String> {
        let nested = path.iter().rev().fold(value.clone(), |inner, step| match step {
            At::Key(key) => Tree::Map(vec![(key.clone(), inner)]),
            At::Item(_) | At::Where(..) => inner,
        });
        let is_plain = path.iter().all(|step| matches!(step, At::Key(_)));
        if !is_plain {
            let edit =
                Edit { object: facts(), path: path.to_vec(), change: Change::Set(value.clone()) };
            self.manifests = self.manifests.edited(&[edit]).map_err(|why| why.to_string())?;
            return Ok(());
        }
        self.put_facts(&"changed-facts.yaml".into(), &nested)
    }

    /// Merges values into the Facts.
    pub(super) fn put_facts(&mut self, file: &Text, spec: &Tree) -> Result<(), String> {
        self.outdates_captures = true;
        if !self.manifests.has(&facts()) {
            self.manifests = self.manifests.with_object(file, &document(spec));
            return Ok(());
        }
        // A Scenario has its Facts inside, which are edited value by value.
        let mut edits = Vec::new();
        let old = self.manifests.object(&facts()).unwrap_or(Tree::Map(Vec::new()));
        leaves(&old, spec, &mut Vec::new(), &mut edits);
        self.manifests = self.manifests.edited(&edits).map_err(|why| why.to_string())?;
        Ok(())
    }
}

/// Returns an edit for each value that is set, as deep as mappings are there already.
fn leaves(old: &Tree, new: &Tree, path: &mut Vec<At>, edits: &mut Vec<Edit>) {
    if let (Tree::Map(_), Tree::Map(entries)) = (old, new) {
        for (key, value) in entries {
            path.push(At::Key(key.clone()));
            match old.get(key) {
                Some(own) => leaves(own, value, path, edits),
                None => edits.push(edit(path, value)),
            }
            path.pop();
        }
        return;
    }
    edits.push(edit(path, &merge::merge(old, new, &[], false)));
}

fn edit(path: &[At], value: &Tree) -> Edit {
    Edit { object: facts(), path: path.to_vec(), change: Change::Set(value.clone()) }
}

fn facts() -> ObjectRef {
    ObjectRef::global(ObjectKind::Facts, "Facts")
}

fn document(spec: &Tree) -> Tree {
    Tree::map([
        ("apiVersion", Tree::text("uturn.dev/v1alpha1")),
        ("kind", Tree::text("Facts")),
        ("spec", spec.clone()),
    ])
}

fn way(keys: &[&str]) -> Vec<At> {
    keys.iter().map(|key| At::from(*key)).collect()
}

/// Makes the part of a change that no text can say. Returns whether there is one.
pub(super) fn happen(cluster: &mut Cluster, what: &DataPlane) -> bool {
    let DataPlane::ClusterCidr(ranges) = what else { return false };
    let detector = match ranges.as_slice() {
        [] => LocalDetector::None,
        some => LocalDetector::ClusterCidr(some.to_vec()),
    };
    cluster.proxy.detector =
        Known::stated(detector, Origin::Derived(DerivedFrom::Option("--cluster-cidr")));
    cluster.supposed.retain(|known| known.subject != CLUSTER_CIDR.into());
    true
}

/// Returns the texts with the case of a Scenario that has as many nodes as the case before. The name of
/// a case ends with kube-proxy's mode, which a change may have changed.
pub(super) fn with_same_case(manifests: Manifests) -> Manifests {
    let Some((name, label)) = manifests.case() else { return manifests };
    let (name, nodes) =
        (name.to_owned(), label.rsplit_once(", ").map_or(label, |(nodes, _)| nodes));
    let others = ProxyMode::ALL.map(|mode| format!("{nodes}, {mode}"));
    if manifests.cluster().is_ok() {
        return manifests;
    }
    let all = others.into_iter().map(|label| manifests.clone().with_case(&name, &label));
    let found = all.into_iter().find(|own| own.cluster().is_ok());
    found.unwrap_or(manifests)
}
