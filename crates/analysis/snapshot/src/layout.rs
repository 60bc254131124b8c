//! Recognises files in folders that are not manifests to apply: parts of kustomizations and Helm
//! charts, and other YAML or JSON files.

mod foreign;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use uturn_document::whole_file;
use uturn_document::{
    self as document, Fault, Gathered, Keep, Named, Node, Note, Room, Source, Twice, Value,
    gather_selected,
};
use uturn_model::shell::Command;
use uturn_model::{Origin, Text};

use crate::wanted::WANTED;

/// Reads files and folders up to the limit of `room`. Files of folders that have no object of a
/// cluster, or that belong to other projects, are left out.
pub(crate) fn gather_manifests(
    paths: &[PathBuf],
    named: Named,
    room: &mut Room,
) -> (Vec<Source>, OtherFiles, Vec<Fault>) {
    let mut other_files = OtherFiles::default();
    let mut select = |folder: &Path, entries: &mut Vec<PathBuf>| {
        other_files.look_at(folder);
        let siblings = foreign::Siblings::of(entries);
        entries.retain(|path| {
            let is_foreign = siblings.make_foreign(path);
            if is_foreign {
                other_files.leave_folder_out(path, foreign::manifests(path));
            }
            !is_foreign
        });
    };
    let Gathered { mut sources, of_folders, faults } =
        gather_selected(paths, named, room, &mut select);
    other_files.of_folders = of_folders;
    other_files.leave_out(&mut sources);
    (sources, other_files, faults)
}

/// The files that are not manifests.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherFiles {
    /// Files that have no object of a cluster, by the reason.
    pub(crate) left_out: BTreeMap<&'static str, Vec<Text>>,
    /// Files that were found in a folder rather than named by the user.
    pub(crate) of_folders: HashSet<Text>,
    kustomizations: Vec<Kustomization>,
    charts: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
struct Kustomization {
    folder: PathBuf,
    /// Whether the kustomization changes its resources.
    changes: bool,
    /// Files that the kustomization uses as patches or the like.
    parts: Vec<PathBuf>,
    /// Manifests that the kustomization includes.
    resources: Vec<PathBuf>,
}

/// The reasons why files of a folder have no objects.
pub(crate) const TEMPLATE: &str = "templates that are not filled in";
const PART: &str = "files that kustomizations use for patches or ConfigMaps";
const FOREIGN: &str =
    "files in folders of dependencies or of tests' data; name a folder with -f to read it";
const FAULTY: &str = "files with errors";
const OTHER: &str = "files that cannot be read and name no apiVersion";

/// The maximum size of a kustomization, in bytes.
const MAX_KUSTOMIZATION: u64 = 16 << 20;

const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The fields of a kustomization that name manifests, or its own kind and name.
const PLAIN: [&str; 7] =
    ["apiVersion", "kind", "metadata", "resources", "bases", "components", "sortOptions"];

impl OtherFiles {
    /// Records a chart or kustomization in a folder that is being read.
    fn look_at(&mut self, folder: &Path) {
        if folder.join("Chart.yaml").is_file() {
            self.charts.push(folder.to_owned());
        }
        let found = KUSTOMIZATIONS.iter().map(|name| folder.join(name)).find(|path| path.is_file());
        // A kustomization only names files; one that is too long is ignored.
        let text = found.and_then(|path| whole_file::text_of(&path, MAX_KUSTOMIZATION).ok());
        if let Some(text) = text {
            self.kustomizations.push(Kustomization::read(folder, &text));
        }
    }

    /// Records that this many manifests of a folder are not read.
    fn leave_folder_out(&mut self, folder: &Path, manifests: usize) {
        if manifests > 0 {
            let names = std::iter::repeat_n(name(folder), manifests);
            self.left_out.entry(FOREIGN).or_default().extend(names);
        }
    }

    /// Merges the files of another.
    pub(crate) fn add(&mut self, other: Self) {
        for (why, files) in other.left_out {
            self.left_out.entry(why).or_default().extend(files);
        }
        self.of_folders.extend(other.of_folders);
        self.kustomizations.extend(other.kustomizations);
        self.charts.extend(other.charts);
    }

    /// Records that a file was found in a folder rather than named by the user.
    pub(crate) fn note_of_folder(&mut self, source: &Source) {
        self.of_folders.insert(source.name.clone());
    }

    /// Removes the files of folders that have no objects of a cluster.
    pub(crate) fn leave_out(&mut self, sources: &mut Vec<Source>) {
        let parts = self.kustomizations.iter().flat_map(|each| &each.parts);
        let parts: HashSet<PathBuf> = parts.filter_map(|path| path.canonicalize().ok()).collect();
        let templates: Vec<PathBuf> =
            self.charts.iter().map(|chart| chart.join("templates")).collect();
        let mut left_out: BTreeMap<&'static str, Vec<Text>> = BTreeMap::new();
        sources.retain(|source| {
            if !self.of_folders.contains(&source.name) {
                return true;
            }
            let path = Path::new(&*source.name);
            let is_part =
                !parts.is_empty() && path.canonicalize().is_ok_and(|real| parts.contains(&real));
            let of_chart = templates.iter().any(|folder| path.starts_with(folder));
            let why = if is_part { Some(PART) } else { what_else(&source.text, of_chart) };
            if let Some(why) = why {
                left_out.entry(why).or_default().push(source.name.clone());
            }
            why.is_none()
        });
        for (why, files) in left_out {
            self.left_out.entry(why).or_default().extend(files);
        }
    }

    /// Removes files of folders that have faults: faults in files of other tools should not prevent
    /// the rest from being read. Returns `false` if there are other faults: in a file that the user
    /// names, in Facts, or in several files together.
    pub(crate) fn leave_faulty_out(&mut self, faults: &[Fault], sources: &mut Vec<Source>) -> bool {
        let files: Option<HashSet<&str>> = faults.iter().map(|fault| fault.origin.path()).collect();
        let Some(files) = files.filter(|files| !files.is_empty()) else { return false };
        let is_ours = |source: &Source| source.text.contains("uturn.dev/");
        let is_faulty = |source: &Source| {
            files.contains(&*source.name)
                && self.of_folders.contains(&source.name)
                && !is_ours(source)
        };
        let (faulty, rest): (Vec<Source>, Vec<Source>) =
            std::mem::take(sources).into_iter().partition(is_faulty);
        *sources = rest;
        let names: Vec<Text> = faulty.into_iter().map(|source| source.name).collect();
        let are_all = names.len() == files.len();
        self.left_out.entry(FAULTY).or_default().extend(names);
        are_all
    }

    /// Returns notes on objects that only exist after rendering.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let changing: Vec<&Kustomization> =
            self.kustomizations.iter().filter(|each| each.changes).collect();
        let kustomizations = changing.first().map(|first| Note {
            origin: place(&first.folder),
            message: match changing.len() {
                1 => "a kustomization".to_owned(),
                more => format!("a kustomization, the first of {more}"),
            },
            assumed: "its files as they are",
            because: "its changes are not known before it is rendered",
            settle: kustomize(&first.folder),
        });
        let templates = self.left_out.get(TEMPLATE).map_or(0, Vec::len);
        let charts = self.charts.first().filter(|_| templates > 0).map(|first| Note {
            origin: place(first),
            message: format!("a Helm chart ({templates} files here are templates)"),
            assumed: "its templates make no objects",
            because: "they are not filled in",
            settle: helm(first),
        });
        kustomizations.into_iter().chain(charts).collect()
    }

    /// Returns the fault if charts or kustomizations are the reason why there are no objects.
    /// `at_all` means that there are not even objects that uturn ignores.
    pub(crate) fn nothing(&self, at_all: bool) -> Option<Fault> {
        let have = |what| at_all || self.left_out.contains_key(what);
        if let Some(chart) = self.charts.first().filter(|_| have(TEMPLATE)) {
            let fault = Fault::new(place(chart), "a Helm chart, whose templates are not filled in");
            return Some(fault.hint(format!("render it first: {}", helm(chart))));
        }
        let first = self.kustomizations.first().filter(|_| have(PART))?;
        let fault = Fault::new(place(&first.folder), "a kustomization without a complete object");
        Some(fault.hint(format!("render it first: {}", kustomize(&first.folder))))
    }

    /// Reports objects that exist several times because kustomizations make variants of them:
    /// each in a file that a kustomization uses, and with another name or namespace once
    /// rendered.
    pub(crate) fn variants(&self, twice: &[Twice]) -> Option<Fault> {
        if self.kustomizations.is_empty() || twice.is_empty() {
            return None;
        }
        let files = self.kustomizations.iter().flat_map(|each| {
            each.resources.iter().filter_map(move |path| Some((path.canonicalize().ok()?, each)))
        });
        let files: HashMap<PathBuf, &Kustomization> = files.collect();
        let of = |file: &str| files.get(&Path::new(file).canonicalize().ok()?).copied();
        let mut variants = twice.iter().filter_map(|each| {
            of(each.fault.origin.path()?)?;
            Some((&each.fault, of(each.first.path()?)?))
        });
        let (first, base) = variants.next()?;
        let more = match variants.count() {
            0 => String::new(),
            more => format!(", and {more} more like it"),
        };
        let message = format!(
            "its kustomizations build on one another: at {}, {}{more}",
            first.origin, first.message
        );
        let hint = format!("render the one that is applied: {}", kustomize(&base.folder));
        Some(Fault::new(place(&base.folder), message).hint(hint))
    }
}

fn name(path: &Path) -> Text {
    path.to_string_lossy().into()
}

fn place(folder: &Path) -> Origin {
    Origin::file(name(folder))
}

fn kustomize(folder: &Path) -> String {
    Command::new("kubectl kustomize").path(folder).words("| uturn scan -f -").to_string()
}

fn helm(chart: &Path) -> String {
    Command::new("helm template").path(chart).words("| uturn scan -f -").to_string()
}

/// Returns why a file of a folder has no objects, or `None` if it is a manifest.
fn what_else(text: &str, of_chart: bool) -> Option<&'static str> {
    let is_template = text.contains("{{") || text.contains("{%");
    if is_template && of_chart {
        return Some(TEMPLATE);
    }
    let why = match (is_template, text.contains("apiVersion")) {
        (true, _) => TEMPLATE,
        (false, false) => OTHER,
        (false, true) => return None,
    };
    is_broken(text).then_some(why)
}

fn is_broken(text: &str) -> bool {
    let mut broken = false;
    document::read(text, Keep::Wanted(&WANTED), &mut |read| {
        broken |= read.is_err_and(|trouble| trouble.note.is_none());
        if broken { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    broken
}

impl Kustomization {
    fn read(folder: &Path, text: &str) -> Self {
        let mut this = Self {
            folder: folder.to_owned(),
            changes: false,
            parts: Vec::new(),
            resources: Vec::new(),
        };
        document::read(text, Keep::All, &mut |read| {
            if let Ok(Node { value: Value::Map(entries), .. }) = read {
                for entry in entries {
                    if PLAIN.contains(&&*entry.key) {
                        add_files(folder, &entry.value, &mut this.resources);
                    } else {
                        this.changes = true;
                        add_files(folder, &entry.value, &mut this.parts);
                    }
                }
            }
            ControlFlow::Continue(())
        });
        this
    }
}

/// Adds all texts that name files, including `KEY=FILE`.
fn add_files(folder: &Path, node: &Node<'_>, files: &mut Vec<PathBuf>) {
    match &node.value {
        Value::String(text) if !text.contains('\n') => {
            let file = text.split_once('=').map_or(&**text, |(_, file)| file);
            let path = folder.join(file);
            if path.is_file() {
                files.push(path);
            }
        }
        Value::Seq(items) => items.iter().for_each(|item| add_files(folder, item, files)),
        Value::Map(entries) => {
            entries.iter().for_each(|entry| add_files(folder, &entry.value, files));
        }
        _ => {}
    }
}
