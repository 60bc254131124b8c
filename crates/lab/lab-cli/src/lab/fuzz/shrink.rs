//! Shrinks a scenario that disagrees: removes parts as long as it still disagrees, the largest
//! first.

use serde_json::Value;
use uturn_cli::{Failure, Printer};

use super::Trial;
use super::judge::Judged;
use super::measure::{Lab, Measured};

/// The maximum number of scenarios measured to shrink one.
const TRIES: usize = 150;

/// A path in a document: keys and indices, outermost first.
type Path = Vec<Step>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Place(usize),
}

/// Returns the smallest scenario found for which `lasts` holds.
pub(super) fn shrink(
    trial: &Trial,
    first: &Judged,
    lab: &mut Lab,
    printer: &Printer,
    lasts: &dyn Fn(&Trial, Measured) -> Result<bool, Failure>,
) -> Result<Trial, Failure> {
    let mut best = trial.clone();
    let mut tries = 0;
    let mut depth = 0;
    while depth <= deepest(&best.document) {
        let mut from = 0;
        let paths = parts(&best.document, depth);
        let mut gone: Vec<Path> = Vec::new();
        while from < paths.len() && tries < TRIES {
            printer.progress(&format!("{}: making it smaller ({tries} tries) …", trial.name));
            // A batch has as many candidates as are measured in parallel, each without one more
            // part.
            let mut batch = Vec::new();
            while from < paths.len() && batch.len() < lab.jobs() {
                let path = &paths[from];
                from += 1;
                if let Some(smaller) = without(trial, &best.document, std::slice::from_ref(path))
                    && smaller.case().flows.iter().any(|flow| flow.flow == first.flow)
                {
                    batch.push((path.clone(), smaller));
                }
            }
            tries += batch.len();
            let (tried, smaller): (Vec<Path>, Vec<Trial>) = batch.into_iter().unzip();
            let measured = lab.measure(&smaller)?;
            for ((path, smaller), measured) in tried.into_iter().zip(&smaller).zip(measured) {
                if lasts(smaller, measured)? {
                    gone.push(path);
                }
            }
        }
        best = take_out(trial, best, &gone, lab, lasts)?;
        depth += 1;
    }
    Ok(best)
}

/// Removes all of these parts if possible, else half of them, and so on.
fn take_out(
    trial: &Trial,
    best: Trial,
    gone: &[Path],
    lab: &mut Lab,
    lasts: &dyn Fn(&Trial, Measured) -> Result<bool, Failure>,
) -> Result<Trial, Failure> {
    if gone.is_empty() {
        return Ok(best);
    }
    if let Some(smaller) = without(trial, &best.document, gone) {
        let measured = lab.measure(std::slice::from_ref(&smaller))?.pop();
        if let Some(measured) = measured
            && lasts(&smaller, measured)?
        {
            return Ok(smaller);
        }
    }
    // Removes later parts first, so that earlier indices stay valid.
    let (early, late) = gone.split_at(gone.len() / 2);
    if early.is_empty() {
        return Ok(best);
    }
    let best = take_out(trial, best, late, lab, lasts)?;
    take_out(trial, best, early, lab, lasts)
}

/// Returns the scenario without these parts, or `None` if it cannot be read then.
fn without(trial: &Trial, document: &Value, paths: &[Path]) -> Option<Trial> {
    let mut document = document.clone();
    for path in paths.iter().rev() {
        remove(&mut document, path)?;
    }
    Trial::new(trial.name.clone(), document).ok()
}

fn remove(document: &mut Value, path: &[Step]) -> Option<()> {
    let (last, way) = path.split_last()?;
    let parent = way.iter().try_fold(document, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Place(place) => value.get_mut(*place),
    })?;
    match last {
        Step::Key(key) => drop(parent.as_object_mut()?.shift_remove(key)?),
        Step::Place(place) => {
            let list = parent.as_array_mut()?;
            (*place < list.len()).then(|| list.remove(*place))?;
        }
    }
    Some(())
}

/// Returns the removable parts at one depth, in the order of the document. The provider and the
/// settings of kube-proxy stay, because much would be assumed without them.
fn parts(document: &Value, depth: usize) -> Vec<Path> {
    let mut all = Vec::new();
    for root in ["flows", "objects", "facts"] {
        let path = [Step::Key("spec".into()), Step::Key(root.into())];
        walk(&document["spec"][root], &path, depth, &mut all);
    }
    all
}

/// Fields that an object needs, or that decide how others are read. Their content stays too: a
/// part of it would mean something else.
const STAYS: [&str; 13] = [
    "apiVersion",
    "kind",
    "name",
    "namespace",
    "provider",
    "kubeProxy",
    "status",
    "clusterIP",
    "from",
    "to",
    "protocol",
    "backend",
    "dns",
];

/// Fields that stay, but whose content may be removed.
const HOLDS: [&str; 2] = ["metadata", "spec"];

fn walk(value: &Value, path: &[Step], depth: usize, all: &mut Vec<Path>) {
    let children: Vec<(Step, &Value)> = match value {
        Value::Object(fields) => {
            // Without its text, a pod or node would be assumed.
            let is_thing =
                matches!(fields.get("kind").and_then(Value::as_str), Some("Pod" | "Node"));
            let kept =
                |key: &str| is_thing || STAYS.contains(&key) || depth == 0 && HOLDS.contains(&key);
            fields
                .iter()
                .filter(|(key, _)| !kept(key))
                .map(|(key, value)| (Step::Key(key.clone()), value))
                .collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, item)| (Step::Place(at), item)).collect()
        }
        _ => Vec::new(),
    };
    for (step, child) in children {
        let mut path = path.to_vec();
        path.push(step);
        match depth {
            0 => all.push(path),
            _ => walk(child, &path, depth - 1, all),
        }
    }
}

fn deepest(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(deepest).max().map_or(0, |depth| depth + 1),
        Value::Array(items) => items.iter().map(deepest).max().map_or(0, |depth| depth + 1),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "spec": {
                "flows": [{ "from": "a", "to": "b" }, { "from": "c", "to": "d" }],
                "objects": [
                    { "kind": "Pod", "spec": { "nodeName": "n1" } },
                    { "kind": "Service", "spec": { "type": "NodePort" }, "status": {} },
                ],
                "facts": { "provider": "tke", "nodes": { "n1": { "rpFilter": 1 } } },
            },
        })
    }

    #[test]
    fn the_largest_parts_go_first_and_names_stay() {
        let count = |depth| parts(&document(), depth).len();
        assert_eq!(count(0), 2 + 2 + 1, "two flows, two objects, the facts of nodes");
        assert_eq!(count(1), 1, "n1: the client of a flow and the kind of a pod stay");
        assert_eq!(count(2), 2, "the Service's type, n1's filter");
    }

    #[test]
    fn several_parts_go_at_once() {
        let mut made = document();
        for path in parts(&document(), 0).iter().rev() {
            remove(&mut made, path).unwrap();
        }
        let left =
            json!({ "spec": { "flows": [], "objects": [], "facts": { "provider": "tke" } } });
        assert_eq!(made, left);
        assert_eq!(remove(&mut made, &[Step::Key("none".into())]), None);
    }
}
