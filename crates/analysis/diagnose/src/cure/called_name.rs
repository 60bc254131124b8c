//! A cure of names that no Service has: the name of the one that is probably meant, wherever the
//! caller's objects state the wrong one.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::pod::PodSpec;
use uturn_model::{
    Client, Destination, Flow, Mechanism, Name, NamespacedName, ObjectKind, ObjectRef, Pod, Text,
    WorkloadKind,
};

use super::template::Template;
use super::{Case, Proposal, way};
use crate::find::meant_service::MeantService;

/// Proposes the name of the Service that is probably meant.
pub(super) fn propose(case: &Case<'_>) -> Option<Proposal> {
    let flow = case.walked().filter(|_| case.has(Mechanism::NameUnresolved))?;
    let (host, port) = match &flow.to {
        Destination::Host(host, port) | Destination::Url { host, port, .. } => (host, *port),
        _ => return None,
    };
    let cluster = case.cluster();
    let pod = calling_pod(case)?;
    let meant = MeantService::of(cluster, pod, host, port)?;
    let new = meant.host(cluster, host)?;
    let made = renamed(case, pod, host, &new)?;
    Some(calling(made, flow, new))
}

/// Returns the pod that makes the call of a case, or one of its workload.
pub(super) fn calling_pod<'c>(case: &Case<'c>) -> Option<&'c Pod> {
    let cluster = case.cluster();
    match &case.walked()?.from {
        Client::Pod(name) => cluster.pods.get(name),
        Client::Workload(kind, name) => {
            let owner = cluster.workloads.get(&(*kind, name.clone()))?.object();
            cluster.pods.values().find(|pod| pod.owner.as_ref() == Some(&owner))
        }
        Client::Node(_) | Client::Outside(_) => None,
    }
}

/// Makes a cure tried with the call of another name.
pub(super) fn calling(mut made: Proposal, flow: &Flow, new: String) -> Proposal {
    let to = match &flow.to {
        Destination::Url { tls, path, port, .. } => {
            Destination::Url { tls: *tls, host: new.into(), port: *port, path: path.clone() }
        }
        Destination::Host(_, port) => Destination::Host(new.into(), *port),
        other => other.clone(),
    };
    made.then = Some(Flow { to, ..flow.clone() });
    made
}

/// Proposes another name wherever the objects of a pod state this one. Returns `None` if none does.
pub(super) fn renamed(case: &Case<'_>, pod: &Pod, host: &str, new: &str) -> Option<Proposal> {
    let mut made = Proposal::new("called-name", 10, String::new()).trial();
    let mut places: Vec<String> = Vec::new();
    for map in config_maps(case, pod, host) {
        let object = ObjectRef::namespaced(ObjectKind::ConfigMap, &map);
        let before = made.edits.len();
        made = in_config_map(case, made, &object, host, new);
        if made.edits.len() > before {
            made = made.costs(format!(
                "whatever else reads {object} gets the new name too; pods that have read it have to \
                 be made anew"
            ));
            places.push(object.to_string());
        }
    }
    if let Some(template) = Template::of_pod(case, pod) {
        let before = made.edits.len();
        made = in_template(case, made, &template, host, new)?;
        if made.edits.len() > before {
            made = made.costs(template.cost());
            places.push(template.object.to_string());
        }
    }
    if places.is_empty() {
        return None;
    }
    made.title = format!("{new} instead of {host} in {}", places.join(" and "));
    Some(made)
}

/// Returns the ConfigMaps that state a name for a pod.
fn config_maps(case: &Case<'_>, pod: &Pod, host: &str) -> Vec<NamespacedName> {
    let cluster = case.cluster();
    let template = pod.owner.as_ref().and_then(|owner| {
        let ObjectKind::Workload(kind) = owner.kind else { return None };
        let name: (WorkloadKind, NamespacedName) = (kind, owner.namespaced_name()?);
        cluster.workloads.get(&name).map(|workload| &workload.template)
    });
    let of = |spec: &PodSpec| -> Vec<Text> {
        let called = spec.containers.iter().flat_map(|own| &own.called);
        called.filter(|own| *own.host == *host).filter_map(|own| own.stated_in.clone()).collect()
    };
    let mut names = of(&pod.spec);
    names.extend(template.into_iter().flat_map(|template| of(template)));
    names.sort_unstable();
    names.dedup();
    let full = |name: Text| {
        let namespace = pod.name.namespace.clone();
        Some(NamespacedName { namespace, name: Name::new(&*name).ok()? })
    };
    names.into_iter().filter_map(full).collect()
}

/// Writes a name in place of another in the texts of a ConfigMap.
fn in_config_map(
    case: &Case<'_>,
    mut made: Proposal,
    object: &ObjectRef,
    host: &str,
    new: &str,
) -> Proposal {
    let written = case.manifests.object(object);
    let Some(Tree::Map(texts)) = written.as_ref().and_then(|written| written.get("data")) else {
        return made;
    };
    for (key, value) in texts {
        let Some(text) = value.as_str() else { continue };
        let place = way!["data", key.as_str()];
        if text.contains('\n') {
            for (at, line) in text.lines().enumerate() {
                if let Some(line) = replaced(line, host, new) {
                    made = made.edit(object.clone(), place.clone(), Change::Replace(at, line));
                }
            }
        } else if let Some(text) = replaced(text, host, new) {
            made = made.edit(object.clone(), place, Change::Set(Tree::text(text)));
        }
    }
    made
}

/// Writes a name in place of another in the command lines and the variables of pods. Returns `None`
/// if there are too many pods.
fn in_template(
    case: &Case<'_>,
    mut made: Proposal,
    template: &Template,
    host: &str,
    new: &str,
) -> Option<Proposal> {
    let written = case.manifests.object(&template.object)?;
    let Some(spec) = template.spec(&written) else { return Some(made) };
    let containers = spec.items_below(&["containers"]);
    for (at, container) in containers.iter().enumerate() {
        let words = ["command", "args"].into_iter().flat_map(|field| {
            let all = container.items_below(&[field]);
            all.iter().enumerate().map(move |(word, text)| (way![field, word], text.as_str()))
        });
        let variables = container.items_below(&["env"]);
        let variables = variables.iter().enumerate().map(|(variable, own)| {
            (way!["env", variable, "value"], own.get("value").and_then(Tree::as_str))
        });
        for (place, text) in words.chain(variables) {
            let Some(text) = text.and_then(|text| replaced(text, host, new)) else { continue };
            let path: Vec<At> = way!["spec", "containers", at].into_iter().chain(place).collect();
            made = template.edit(case, made, &path, &Change::Set(Tree::text(text)))?;
        }
    }
    Some(made)
}

/// Returns a text with another name wherever it has this one as a whole. Returns `None` if it has it
/// nowhere.
fn replaced(text: &str, host: &str, new: &str) -> Option<String> {
    let is_part =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let mut made = String::new();
    let mut from = 0;
    for (at, found) in text.match_indices(host) {
        let before = text[..at].chars().next_back();
        let mut after = text[at + found.len()..].chars();
        let is_whole = match (after.next(), after.next()) {
            // The end of a sentence.
            (Some('.'), next) => next.is_none_or(char::is_whitespace),
            (next, _) => !next.is_some_and(is_part),
        };
        if is_whole && !before.is_some_and(is_part) {
            made.push_str(&text[from..at]);
            made.push_str(new);
            from = at + found.len();
        }
    }
    (from > 0).then(|| made + &text[from..])
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_name_is_replaced_as_a_whole() {
        for (text, new) in [
            ("http://dex:5556/dex-ui", Some("http://test-dex:5556/dex-ui")),
            ("dex,my-dex,dex.example.com", Some("test-dex,my-dex,dex.example.com")),
            ("a: dex", Some("a: test-dex")),
            ("index dex_port my.dex", None),
        ] {
            assert_eq!(replaced(text, "dex", "test-dex").as_deref(), new, "{text}");
        }
    }
}
