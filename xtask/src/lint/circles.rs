//! Finds import circles within crates.
//!
//! In each folder of a crate, the files and folders that lie beside each other form a graph: an
//! edge leads from the importing to the imported module. A module and its own submodules may import
//! from each other: to all other modules they are one module.
//!
//! A circle that includes a folder is refused, since that folder then has no place of its own in
//! the flow of data. Files of one folder that import each other are a group, which needs a line
//! with its reason in `circles.txt`.

mod known;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread;

use self::known::Group;
use super::imports::{Imports, Segments};
use super::source;
use crate::shell::{self, Failure};

/// Looks for import circles in every crate.
///
/// # Errors
/// If there are circles that cross a folder, groups without a line in `circles.txt`, or lines
/// without their group: all of them, with an import for each edge.
pub(super) fn check() -> Result<(), Failure> {
    let (mut circles, mut groups) = (Vec::new(), Vec::new());
    for (name, modules) in read_all()? {
        circles.extend(modules.circles().into_iter().map(|circle| format!("{name}: {circle}")));
        groups.extend(modules.groups(&name));
    }
    let mut faults = known::faults(&groups)?;
    if !circles.is_empty() {
        faults.push(format!("import circles cross folders:\n{}", circles.join("\n")));
    }
    if faults.is_empty() {
        println!("{} groups of files that import each other, each with a reason", groups.len());
        Ok(())
    } else {
        Err(Failure(faults.join("\n")))
    }
}

/// Reads the modules of every crate, several crates at once.
fn read_all() -> Result<Vec<(String, Modules)>, Failure> {
    let folders = source::crates()?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let read = |folders: &[PathBuf]| -> Result<Vec<(String, Modules)>, Failure> {
        let named = folders.iter().map(|sources| {
            let name = sources.strip_prefix(shell::root()).unwrap_or(sources);
            Ok((name.display().to_string(), Modules::read(sources)?))
        });
        named.collect()
    };
    thread::scope(|scope| {
        let parts = folders.chunks(folders.len().div_ceil(threads).max(1));
        let parts: Vec<_> = parts.map(|part| scope.spawn(move || read(part))).collect();
        let mut all = Vec::new();
        for part in parts {
            all.extend(part.join().map_err(|_| Failure("a source cannot be read".to_owned()))??);
        }
        Ok(all)
    })
}

/// A module's place in its crate, name by name. The root has an empty path.
type ModulePath = Vec<String>;

/// An example of the imports from one submodule to another.
type Edges<'a> = BTreeMap<(&'a str, String), String>;

/// The modules of a crate.
#[derive(Debug, Default)]
struct Modules(BTreeMap<ModulePath, Vec<Segments>>);

impl Modules {
    fn read(sources: &Path) -> Result<Self, Failure> {
        let files = source::files(sources)?.into_iter().map(|file| {
            let text = source::read(&file)?;
            let imports = Imports::of(&text)
                .map_err(|error| Failure(format!("{}: {error}", file.display())))?;
            Ok((file.strip_prefix(sources).unwrap_or(&file).to_owned(), imports))
        });
        Ok(Self::of(files.collect::<Result<Vec<_>, Failure>>()?))
    }

    /// Makes modules of files, whose paths are relative to the root of the crate. Modules of tests
    /// are left out.
    fn of(files: Vec<(PathBuf, Imports)>) -> Self {
        let (mut modules, mut tests) = (Self::default(), Vec::new());
        for (file, imports) in files {
            let path = module(&file);
            tests.extend(imports.tests.into_iter().map(|name| [path.as_slice(), &[name]].concat()));
            modules.0.entry(path).or_default().extend(imports.paths);
        }
        modules.0.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
        modules
    }

    /// Returns the module in which a path ends that another module wrote, or `None` if the path
    /// leads out of the crate.
    fn target(&self, from: &ModulePath, path: &[String], hops: usize) -> Option<ModulePath> {
        let mut rest = path.iter();
        let mut here = match rest.next()?.as_str() {
            "crate" => Vec::new(),
            "self" => from.clone(),
            "super" => from.split_last()?.1.to_vec(),
            name => {
                let child = [from.as_slice(), &[name.to_owned()]].concat();
                self.0.contains_key(&child).then_some(child)?
            }
        };
        for name in rest {
            if name == "super" {
                here.pop()?;
                continue;
            }
            let child = [here.as_slice(), std::slice::from_ref(name)].concat();
            if self.0.contains_key(&child) {
                here = child;
                continue;
            }
            // Other modules may import from a module whatever it imports.
            let passed_on = self.0[&here].iter().find(|path| path.last() == Some(name));
            let passed_on = passed_on.filter(|path| hops > 0 && path.len() > 1);
            return Some(
                passed_on.and_then(|path| self.target(&here, path, hops - 1)).unwrap_or(here),
            );
        }
        Some(here)
    }

    /// Returns the imports between direct submodules, by their parent module.
    fn edges(&self) -> BTreeMap<&[String], Edges<'_>> {
        let mut edges: BTreeMap<&[String], Edges<'_>> = BTreeMap::new();
        for (from, imports) in &self.0 {
            for path in imports {
                let Some(to) = self.target(from, path, 8) else { continue };
                let depth = from.iter().zip(&to).take_while(|(own, other)| own == other).count();
                if let (Some(one), Some(other)) = (from.get(depth), to.get(depth)) {
                    let example = || format!("{} imports {}", from.join("::"), path.join("::"));
                    let here = edges.entry(&from[..depth]).or_default();
                    here.entry((one, other.clone())).or_insert_with(example);
                }
            }
        }
        edges
    }

    /// Returns the groups of files that lie in one folder and import each other.
    fn groups(&self, sources: &str) -> Vec<Group> {
        let mut groups = Vec::new();
        for (parent, edges) in self.edges() {
            let parts = [&[sources.to_owned()], parent].concat();
            for files in connected(&edges) {
                let within =
                    |(from, to): &(&str, String)| files.contains(*from) && files.contains(to);
                let examples = edges.iter().filter(|(edge, _)| within(edge));
                groups.push(Group {
                    folder: parts.join("/"),
                    imports: examples.map(|(_, example)| example.clone()).collect(),
                    files,
                });
            }
        }
        groups
    }

    fn is_folder(&self, module: &[String]) -> bool {
        self.0.keys().any(|path| path.len() > module.len() && path.starts_with(module))
    }

    /// Returns a shortest circle through each folder that is part of one.
    fn circles(&self) -> Vec<String> {
        let mut circles = BTreeSet::new();
        for (parent, edges) in self.edges() {
            let names: BTreeSet<&str> = edges.keys().map(|(from, _)| *from).collect();
            for name in names {
                let module = [parent, &[name.to_owned()]].concat();
                if self.is_folder(&module)
                    && let Some(circle) = shortest_circle(&edges, name)
                {
                    circles.insert(circle);
                }
            }
        }
        circles.into_iter().collect()
    }
}

/// Returns the place of the module that a file holds.
fn module(file: &Path) -> ModulePath {
    let names = file.with_extension("");
    let mut path: ModulePath =
        names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let is_head = path.last().is_some_and(|name| name == "mod")
        || (path.len() == 1 && matches!(path[0].as_str(), "lib" | "main"));
    if is_head {
        path.pop();
    }
    path
}

/// Returns the sets of modules of which each imports, over others, each other one of its set.
fn connected(edges: &Edges<'_>) -> Vec<BTreeSet<String>> {
    let names: BTreeSet<&str> = edges.keys().map(|(from, _)| *from).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        names.iter().map(|name| (*name, reached(edges, name))).collect();
    let mut sets = BTreeSet::new();
    for (name, others) in &reached {
        let both = others
            .iter()
            .filter(|other| reached.get(*other).is_some_and(|back| back.contains(name)));
        let set: BTreeSet<String> = both.map(|&other| other.to_owned()).collect();
        if !set.is_empty() {
            sets.insert(set);
        }
    }
    sets.into_iter().collect()
}

/// Returns the modules that a module imports, directly or over others.
fn reached<'a>(edges: &'a Edges<'_>, start: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for (_, to) in edges.keys().filter(|(from, _)| *from == at) {
            if reached.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    reached
}

/// Returns the shortest circle from a module back to itself, as the list of its imports.
fn shortest_circle(edges: &Edges<'_>, start: &str) -> Option<String> {
    let mut ways = vec![(start.to_owned(), Vec::new())];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut next = Vec::new();
        for (at, way) in ways {
            for ((_, to), example) in edges.iter().filter(|((from, _), _)| *from == at) {
                let longer = [way.as_slice(), std::slice::from_ref(example)].concat();
                if to == start {
                    // The same circle is found from each of its folders.
                    let mut circle = longer;
                    let first = circle.iter().enumerate().min_by_key(|(_, step)| *step)?.0;
                    circle.rotate_left(first);
                    return Some(circle.join("; "));
                }
                if seen.insert(to.clone()) {
                    next.push((to.clone(), longer));
                }
            }
        }
        ways = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let read = |(file, text): &(&str, &str)| (file.into(), Imports::of(text).unwrap());
        Modules::of(files.iter().map(read).collect())
    }

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        modules(files).circles()
    }

    #[test]
    fn a_circle_through_a_folder_is_found() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::deep::Deep;"),
            ("b.rs", "mod deep;"),
            ("b/deep.rs", "use crate::c::C; pub struct Deep;"),
            ("c.rs", "use super::a::A; pub struct C;"),
        ]);
        let steps = "a imports crate::b::deep::Deep; b::deep imports crate::c::C; \
                     c imports super::a::A";
        assert_eq!(found, [steps]);
    }

    #[test]
    fn files_of_one_folder_that_import_each_other_are_a_group() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::c::C; use crate::d::D;"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", ""),
        ];
        assert_eq!(circles(&files), Vec::<String>::new());
        let groups = modules(&files).groups("crates/x/src");
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].folder, "crates/x/src");
        assert_eq!(groups[0].files, ["a", "b", "c"].map(str::to_owned).into());
        assert_eq!(groups[0].imports.len(), 3, "{:?}", groups[0].imports);
    }

    #[test]
    fn a_module_and_its_submodules_are_one() {
        let files = [
            ("lib.rs", ""),
            ("a.rs", "mod inner; use inner::Inner; pub struct A;"),
            ("a/inner.rs", "use super::A; use crate::a::A as B; pub struct Inner;"),
        ];
        assert_eq!(circles(&files), Vec::<String>::new());
    }

    #[test]
    fn what_is_passed_on_counts_as_where_it_is_from() {
        let files = [
            ("lib.rs", "pub use b::deep::Deep;"),
            ("a.rs", "use crate::Deep; pub struct A;"),
            ("b/mod.rs", "pub mod deep;"),
            ("b/deep.rs", "fn f() -> crate::a::A { crate::a::A }"),
        ];
        assert_eq!(circles(&files), ["a imports crate::Deep; b::deep imports crate::a::A"]);
    }

    #[test]
    fn imports_of_tests_do_not_count() {
        let files = [
            ("lib.rs", ""),
            ("a.rs", "use crate::b::deep::D;"),
            ("b/deep.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }"),
            ("b.rs", "#[cfg(test)]\nmod tests;"),
            ("b/tests.rs", "use crate::a::A;"),
        ];
        assert_eq!(circles(&files), Vec::<String>::new());
        assert!(modules(&files).groups("").is_empty());
    }
}
