//! Finds import circles that cross a folder.
//!
//! In each folder of a crate, the files and folders that lie beside each other form a graph: an
//! edge leads from the importing to the imported module. A circle among files of one folder is
//! allowed. A circle that includes a folder is refused, since that folder then has no place of its
//! own in the flow of data. A module and its own submodules may import from each other: to all
//! other modules they are one module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::source;
use super::use_lines::imports;
use crate::shell::{self, Failure};

/// Looks for import circles in every crate.
///
/// # Errors
/// If there are circles that cross a folder: all of them, with an import for each edge.
pub(super) fn check() -> Result<(), Failure> {
    let mut circles = Vec::new();
    for sources in source::crates()? {
        let name = sources.strip_prefix(shell::root()).unwrap_or(&sources).display().to_string();
        let found = Modules::read(&sources)?.circles();
        circles.extend(found.into_iter().map(|circle| format!("{name}: {circle}")));
    }
    if circles.is_empty() {
        Ok(())
    } else {
        Err(Failure(format!("import circles cross folders:\n{}", circles.join("\n"))))
    }
}

/// A module's place in its crate, name by name. The root has an empty path.
type ModulePath = Vec<String>;

/// The imports of one module, as the paths are written.
type Imports = Vec<Vec<String>>;

/// An example of the imports from one submodule to another.
type Edges<'a> = BTreeMap<(&'a str, String), String>;

/// The modules of a crate.
#[derive(Debug, Default)]
struct Modules(BTreeMap<ModulePath, Imports>);

impl Modules {
    fn read(sources: &Path) -> Result<Self, Failure> {
        let mut modules = Self::default();
        for file in source::files(sources)? {
            let place = file.strip_prefix(sources).unwrap_or(&file);
            modules.add(place, &source::read(&file)?);
        }
        Ok(modules)
    }

    fn add(&mut self, file: &Path, text: &str) {
        let mut path: ModulePath = file
            .with_extension("")
            .iter()
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        let is_head = path.last().is_some_and(|name| name == "mod")
            || (path.len() == 1 && matches!(path[0].as_str(), "lib" | "main"));
        if is_head {
            path.pop();
        }
        self.0.entry(path).or_default().extend(imports(&source::code_only(text)));
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

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let mut modules = Modules::default();
        for (file, text) in files {
            modules.add(Path::new(file), text);
        }
        modules.circles()
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
    fn files_of_one_folder_may_import_in_circles() {
        let files = [("lib.rs", ""), ("a.rs", "use crate::b::B;"), ("b.rs", "use crate::a::A;")];
        assert_eq!(circles(&files), Vec::<String>::new());
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
            ("b.rs", ""),
        ];
        assert_eq!(circles(&files), Vec::<String>::new());
    }
}
