//! Every object of the tree's examples and scenarios can be edited, and the edit is the only
//! thing that changes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::path::{Path, PathBuf};

use uturn_document::edit::{At, Change, Tree};
use uturn_model::{Cluster, ObjectRef};
use uturn_snapshot::manifests::Edit;
use uturn_snapshot::{Manifests, Source};

fn sources(folder: &str) -> Vec<Source> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(folder);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| Source {
        name: path.file_name().unwrap().to_string_lossy().into(),
        text: fs::read_to_string(path).unwrap(),
    };
    paths.into_iter().map(read).collect()
}

/// A cluster in words, without the lines it was read from.
fn values(cluster: &Cluster) -> String {
    let text = format!("{cluster:#?}");
    let is_place = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("line: ") && !line.starts_with("column: ")
    };
    text.lines().filter(is_place).collect::<Vec<_>>().join("\n")
}

const KEY: &str = "example.com/edited";

fn annotated(manifests: &Manifests, object: &ObjectRef) -> Manifests {
    let path = ["metadata", "annotations", KEY].map(At::from).to_vec();
    let change = Change::Set(Tree::text("a: \"b\" # c"));
    manifests.edited(&[Edit { object: object.clone(), path, change }]).unwrap()
}

/// Only lines were added, but for the one that brackets stand on.
fn is_small(manifests: &Manifests, edited: &Manifests) -> bool {
    assert_eq!(edited.sources().len(), manifests.sources().len());
    let pairs = manifests.sources().iter().zip(edited.sources());
    let changed: Vec<_> = pairs.filter(|(before, after)| before.text != after.text).collect();
    let [(before, after)] = changed.as_slice() else { return false };
    let before: Vec<&str> = before.text.lines().collect();
    let gone = before.iter().filter(|line| !after.text.lines().any(|new| new == **line)).count();
    gone <= 1 && after.text.lines().count() <= before.len() + 2
}

fn check(manifests: &Manifests) -> usize {
    let cluster = manifests.cluster().unwrap();
    let before = values(&cluster);
    let services = cluster.services.values().map(|service| service.object());
    let ingresses = cluster.ingresses.values().map(|ingress| ingress.object());
    let mut edits = 0;
    for object in services.chain(ingresses).filter(|object| manifests.has(object)) {
        let edited = annotated(manifests, &object);
        assert!(is_small(manifests, &edited), "{object}");
        let mut after = edited.cluster().unwrap_or_else(|why| panic!("{object}: {why:?}"));
        let annotations = match object.kind {
            uturn_model::ObjectKind::Service => after
                .services
                .values_mut()
                .find(|service| service.object() == object)
                .map(|service| &mut service.annotations),
            _ => after
                .ingresses
                .values_mut()
                .find(|ingress| ingress.object() == object)
                .map(|ingress| &mut ingress.annotations),
        };
        let annotations = annotations.unwrap();
        assert_eq!(annotations.get(KEY), Some("a: \"b\" # c"), "{object}");
        *annotations = annotations.iter().filter(|(key, _)| *key != KEY).collect();
        assert_eq!(values(&after), before, "{object}");
        edits += 1;
    }
    edits
}

#[test]
fn an_edit_changes_what_it_says_and_nothing_else() {
    let mut edits = check(&Manifests::of(sources("examples/shop")));
    for source in sources("scenarios") {
        let scenario = uturn_snapshot::scenario::read_all(vec![source.clone()]).unwrap().remove(0);
        let label = &scenario.cases[0].label;
        edits += check(&Manifests::of(vec![source]).with_case(&scenario.name, label));
    }
    assert!(edits > 50, "{edits}");
}

#[test]
fn what_is_not_written_cannot_be_edited() {
    let manifests = Manifests::of(sources("examples/shop"));
    let name = uturn_model::NamespacedName::new("shop", "nobody").unwrap();
    let object = ObjectRef::namespaced(uturn_model::ObjectKind::Service, &name);
    let path = vec![At::from("spec")];
    let edit = Edit { object, path, change: Change::Set(Tree::text("x")) };
    let why = manifests.edited(&[edit]).unwrap_err().to_string();
    assert_eq!(why, "Service shop/nobody is not among the manifests");
}

#[test]
fn an_object_in_a_list_and_in_json() {
    let text = r#"{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "shop"},
   "spec": {"clusterIP": "172.16.0.1", "ports": [{"port": 80}]}},
  {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b", "namespace": "shop"},
   "spec": {"clusterIP": "172.16.0.2", "ports": [{"port": 80}]}}
]}
"#;
    let manifests = Manifests::of(vec![Source { name: "list.json".into(), text: text.into() }]);
    assert_eq!(check(&manifests), 2);
}

/// Whatever a text looks like, an edit of it is made or refused; and what was made reads back.
#[test]
fn texts_that_are_broken_are_edited_or_refused() {
    let mut seed = 11u64;
    let mut dice = |limit: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % limit as u64) as usize
    };
    let name = uturn_model::NamespacedName::new("shop", "web").unwrap();
    let object = ObjectRef::namespaced(uturn_model::ObjectKind::Service, &name);
    let facts = ObjectRef::global(uturn_model::ObjectKind::Facts, "facts");
    let pieces = [
        "\n", " ", "- ", "{", "}", "[", "]", ": ", "\"", "'", "&a ", "*a", "|\n", "ä", "---\n",
        "# ", "\t", ",", "? ",
    ];
    let (mut made, mut refused) = (0, 0);
    for source in sources("scenarios").into_iter().chain(sources("examples/shop")) {
        for _ in 0..6 {
            let mut text: Vec<char> = source.text.chars().collect();
            for _ in 0..dice(3) {
                let at = dice(text.len());
                match dice(3) {
                    0 => drop(text.remove(at)),
                    1 => text.truncate(at.max(1)),
                    _ => drop(
                        text.splice(at..at, pieces[dice(pieces.len())].chars()).collect::<Vec<_>>(),
                    ),
                }
            }
            let text: String = text.into_iter().collect();
            let manifests = Manifests::of(vec![Source { name: "x.yaml".into(), text }]);
            let ports = || vec![At::from("spec"), At::from("ports")];
            let edits = [
                Edit {
                    object: object.clone(),
                    path: vec!["metadata".into(), "annotations".into(), KEY.into()],
                    change: Change::Set(Tree::text("1")),
                },
                Edit {
                    object: object.clone(),
                    path: ports(),
                    change: Change::Prepend(Tree::map([("port", Tree::number(1u32))])),
                },
                Edit {
                    object: object.clone(),
                    path: [ports(), vec![At::Where("port".into(), "80".into()), "name".into()]]
                        .concat(),
                    change: Change::Set(Tree::text("x")),
                },
                Edit {
                    object: facts.clone(),
                    path: vec!["nodes".into(), "*".into(), "rpFilter".into()],
                    change: Change::Set(Tree::bare("0")),
                },
            ];
            for edit in edits {
                match manifests.edited(std::slice::from_ref(&edit)) {
                    Ok(edited) => {
                        made += 1;
                        // A text with other faults may have new ones too, but no panic.
                        let _ = edited.load();
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(made > 200 && refused > 50, "{made} made, {refused} refused");
}
