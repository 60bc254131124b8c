//! Everything that is supposed says how to settle it, and what it says settles it. The list is
//! `suppositions.txt`: a case is a cluster in which something is supposed, and the same one with what
//! settles it. `docs/suppositions.md` is made of the list, and each place in the sources that makes
//! an assumption is in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use uturn_model::{Assumption, Flow, Protocol};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Source, read};

const LIST: &str = include_str!("suppositions.txt");

/// The crates below `crates/analysis` whose sources make assumptions. Those of `clouds` are all
/// about how load balancers behave, and are printed by one place of `path`.
const CRATES: [&str; 5] = ["model", "netfilter", "path", "scan", "snapshot"];

/// A section of the list: its kind, its name, and its fields or its text.
struct Section<'l> {
    kind: &'l str,
    name: &'l str,
    body: &'l str,
}

impl<'l> Section<'l> {
    fn all(kind: &str) -> Vec<Self> {
        let read = |section: &'l str| {
            let (head, body) = section.split_once('\n').unwrap();
            let (kind, name) = head.split_once(' ').unwrap_or((head, ""));
            Self { kind, name, body }
        };
        let all: Vec<Self> =
            LIST.split("=== ").filter(|section| !section.is_empty()).map(read).collect();
        assert!(all.iter().all(|own| matches!(own.kind, "case" | "unsettled" | "document")));
        all.into_iter().filter(|own| own.kind == kind).collect()
    }

    fn find(&self, field: &str) -> Option<&'l str> {
        self.body.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(": "))
    }

    fn get(&self, field: &str) -> &'l str {
        self.find(field).unwrap_or_else(|| panic!("no {field} in {}", self.body))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Returns everything that is supposed of a cluster, of all calls in it, and of one flow.
fn supposed(documents: &str, flow: Option<(&str, &str)>) -> Vec<Assumption> {
    let all = Section::all("document");
    let text = documents.split(' ').map(|name| {
        all.iter().find(|own| own.name == name).unwrap_or_else(|| panic!("no {name}")).body
    });
    let text = text.collect::<Vec<_>>().join("---\n");
    let cluster = read(vec![Source { name: "made.yaml".into(), text }]).unwrap().cluster;
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let mut supposed = engine.supposed().to_vec();
    for met in scanner.scan(&scanner.targets()).unwrap() {
        supposed.extend(met.verdicts.iter().flat_map(|verdict| verdict.supposed.clone()));
    }
    if let Some((from, to)) = flow {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let verdicts = engine.cases(&Flow { from, to, protocol: Protocol::Tcp }).unwrap();
        supposed.extend(verdicts.into_iter().flat_map(|verdict| verdict.supposed));
    }
    supposed
}

#[test]
fn what_a_supposition_asks_for_settles_it() {
    let mut wrong = Vec::new();
    for case in Section::all("case") {
        let (about, settle) = (case.get("about"), case.get("settle"));
        let flow = case.find("from").map(|from| (from, case.get("to")));
        let about_it = |documents: &str| {
            let all = supposed(documents, flow).into_iter().map(|own| own.to_string());
            all.filter(|own| own.contains(about)).collect::<Vec<_>>()
        };
        let (before, after) = (about_it(case.get("before")), about_it(case.get("after")));
        if !before.iter().any(|own| own.contains(settle)) || !after.is_empty() {
            wrong.push(format!("{about}: {before:?} is {after:?} with {settle}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_page_has_all_suppositions() {
    let mut rows =
        vec!["| what is supposed | what settles it |".to_owned(), "| --- | --- |".into()];
    let (open, settled): (Vec<_>, Vec<_>) =
        Section::all("case").into_iter().partition(|case| case.get("by").starts_with("no field: "));
    rows.extend(
        settled.iter().map(|case| format!("| {} | {} |", case.get("shown"), case.get("by"))),
    );
    let settled = rows.join("\n");
    let mut rows =
        vec!["| what is supposed | how to find out |".to_owned(), "| --- | --- |".into()];
    rows.extend(open.iter().map(|case| {
        format!("| {} | {} |", case.get("shown"), case.get("by").trim_start_matches("no field: "))
    }));
    let unsettled = Section::all("unsettled");
    rows.extend(unsettled.iter().map(|own| {
        let by = own.find("by").unwrap_or_else(|| own.get("settle"));
        format!("| {} | {by} |", own.get("shown"))
    }));
    let open = rows.join("\n");
    let page = fs::read_to_string(root().join("docs/suppositions.md")).unwrap();
    assert!(page.contains(&settled), "docs/suppositions.md should have:\n{settled}");
    assert!(page.contains(&open), "docs/suppositions.md should have:\n{open}");
}

/// Returns how many assumptions the sources make, by the file below `crates/analysis`.
fn made() -> BTreeMap<String, usize> {
    let analysis = root().join("crates/analysis");
    let mut folders: Vec<PathBuf> =
        CRATES.iter().map(|own| analysis.join(own).join("src")).collect();
    let mut made = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.extend((name != "tests").then_some(path));
                continue;
            }
            if name == "tests.rs" {
                continue;
            }
            let name = path.strip_prefix(&analysis).unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            let count = assumptions_in(&name, &text);
            if count > 0 {
                made.insert(name, count);
            }
        }
    }
    made
}

fn assumptions_in(name: &str, text: &str) -> usize {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    // A literal begins with a field or another value's fields; a type or a function does not.
    let literals = text.split("Assumption {").skip(1).filter(|rest| {
        let rest = rest.trim_start();
        let field = rest.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        !field.is_empty() && rest[field.len()..].starts_with(':')
    });
    let is_deriving = name.starts_with("snapshot/src/derive/") || name == "snapshot/src/derive.rs";
    let of = |call: &str| if is_deriving { text.matches(call).count() } else { 0 };
    let calls = of(".assume(") + of("no_effect(assumptions");
    // The functions that the calls are of make their own literal or call.
    let own = usize::from(text.contains("fn assume(\n        &mut self,\n        about:"))
        + usize::from(text.contains("fn no_effect("));
    literals.count() + calls - own
}

#[test]
fn every_assumption_of_the_sources_is_in_the_list() {
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for section in Section::all("case").into_iter().chain(Section::all("unsettled")) {
        let file = section.get("in");
        // Those of another row's place.
        if file != "-" {
            *listed.entry(file.to_owned()).or_default() += 1;
        }
        if section.kind == "unsettled" {
            let text = fs::read_to_string(root().join("crates/analysis").join(file)).unwrap();
            assert!(text.contains(section.get("settle")), "{}", section.body);
        }
    }
    let made = made();
    let wrong: Vec<String> = made
        .iter()
        .filter(|(file, count)| listed.get(*file) != Some(count))
        .map(|(file, count)| format!("{file} makes {count}, listed: {:?}", listed.get(file)))
        .chain(listed.keys().filter(|file| !made.contains_key(*file)).cloned())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
