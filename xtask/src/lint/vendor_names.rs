//! Checks that a cloud is named in its own folder only.
//!
//! Each folder below `crates/analysis/clouds/src/cloud` has a file `NAMES` with the names of its
//! vendor and its products, one a line; a star at the end stands for any ending. No other source
//! of a crate or of xtask may use one of them as a word or as a part of an identifier, in code,
//! texts or comments. If two clouds have the same name for a product, both files contain it.
//! Modules of tests may use the names, and so may the lines of `cloud/mod.rs` that declare the
//! folder as a module and list it. A cloud whose API has a crate lists that crate in a file
//! `PLACES`, a path a line, together with the commands that run it.

use std::fs;
use std::path::{Path, PathBuf};

use super::source;
use crate::shell::{self, Failure};

pub(super) fn check() -> Result<(), Failure> {
    let clouds = clouds(&shell::root().join("crates/analysis/clouds/src/cloud"))?;
    let mut offenders = Vec::new();
    for folder in source::crates()? {
        for file in source::files(&folder)? {
            let text = source::read(&file)?;
            let lowercase = text.to_lowercase();
            let (at_home, others): (Vec<&Cloud>, Vec<&Cloud>) =
                clouds.iter().partition(|cloud| cloud.is_at_home_in(&file));
            for cloud in others.into_iter().filter(|cloud| cloud.may_be_named_in(&lowercase)) {
                let is_list = cloud.folder.parent().map(|clouds| clouds.join("mod.rs"));
                let is_list = is_list.is_some_and(|list| list == file);
                for (line, text) in cloud.named_in(&file, &text, is_list, &at_home) {
                    let shown = file.strip_prefix(shell::root()).unwrap_or(&file).display();
                    offenders.push(format!("{shown}:{line}: names {}: {text}", cloud.word));
                }
            }
        }
    }
    if offenders.is_empty() {
        Ok(())
    } else {
        Err(Failure(format!("clouds are named outside their folders:\n{}", offenders.join("\n"))))
    }
}

/// A cloud with a folder of its own.
struct Cloud {
    folder: PathBuf,
    /// The name of the folder.
    word: String,
    names: Vec<Name>,
    /// Other folders and files that are about the cloud.
    places: Vec<PathBuf>,
}

/// A name of a vendor or of a product, in small letters.
#[derive(PartialEq, Eq)]
struct Name {
    text: String,
    has_any_ending: bool,
}

/// Reads the folders of clouds.
fn clouds(folder: &Path) -> Result<Vec<Cloud>, Failure> {
    let unreadable =
        |path: &Path, error| Failure(format!("{} cannot be read: {error}", path.display()));
    let mut clouds = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let folder = entry.map_err(|error| unreadable(folder, error))?.path();
        let Some(word) = folder.file_name().filter(|_| folder.is_dir()) else { continue };
        let word = word.to_string_lossy().into_owned();
        let file = folder.join("NAMES");
        let names = fs::read_to_string(&file).map_err(|error| unreadable(&file, error))?;
        let places = fs::read_to_string(folder.join("PLACES")).unwrap_or_default();
        let places = places.lines().map(|place| shell::root().join(place)).collect();
        clouds.push(Cloud { names: names.lines().map(Name::new).collect(), places, word, folder });
    }
    Ok(clouds)
}

impl Name {
    fn new(line: &str) -> Self {
        let has_any_ending = line.ends_with('*');
        Self { text: line.trim_end_matches('*').to_lowercase(), has_any_ending }
    }

    fn is(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        word == self.text || (self.has_any_ending && word.starts_with(&self.text))
    }
}

impl Cloud {
    /// Returns whether a file is about this cloud.
    fn is_at_home_in(&self, file: &Path) -> bool {
        file.starts_with(&self.folder) || self.places.iter().any(|place| file.starts_with(place))
    }

    /// Returns whether a name of the cloud occurs in a text in small letters, as a word or not.
    fn may_be_named_in(&self, lowercase: &str) -> bool {
        self.names.iter().any(|name| lowercase.contains(&name.text))
    }

    /// Returns the lines of a file that name the cloud, with their numbers. `is_list` is set for
    /// the file with the list of clouds. The clouds in `at_home`, which the file is about, may
    /// share names with this one.
    fn named_in<'t>(
        &self,
        file: &Path,
        text: &'t str,
        is_list: bool,
        at_home: &[&Self],
    ) -> Vec<(usize, &'t str)> {
        let is_test = file.ends_with("tests.rs") || file.iter().any(|part| part == "tests");
        let lines = outside_of_tests(text).filter(|_| !is_test);
        let named = lines.filter(|(_, line)| {
            self.is_named_in(line, at_home) && !(is_list && self.is_entry_of_list(line))
        });
        named.map(|(number, line)| (number, line.trim())).collect()
    }

    fn is_named_in(&self, line: &str, at_home: &[&Self]) -> bool {
        let shared = |name: &&Name| at_home.iter().any(|other| other.names.contains(name));
        let own: Vec<&Name> = self.names.iter().filter(|name| !shared(name)).collect();
        let runs = line.split(|letter: char| !letter.is_ascii_alphanumeric());
        let mut words = runs.flat_map(|run| parts(run).into_iter().chain([run]));
        words.any(|word| own.iter().any(|name| name.is(word)))
    }

    /// Returns whether a line declares the cloud's module, or uses a constant of it and nothing
    /// else.
    fn is_entry_of_list(&self, line: &str) -> bool {
        let line = line.trim().trim_start_matches("pub ");
        if line == format!("mod {};", self.word) {
            return true;
        }
        let path = format!("{}::", self.word);
        let used = line.rsplit([' ', '&']).next().unwrap_or(line);
        let constant = used.strip_prefix(&path).map(|rest| rest.trim_end_matches([',', ';']));
        let others = line.strip_suffix(used).unwrap_or_default();
        constant.is_some_and(|constant| {
            constant.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
        }) && !self.is_named_in(others, &[])
    }
}

/// Returns the lines of a file that are outside its modules of tests, with their numbers. Such a
/// module ends with the first closing brace at the beginning of a line.
fn outside_of_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_test = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        is_test |= line == "#[cfg(test)]";
        let is_outside = !is_test;
        is_test &= line != "}";
        is_outside.then_some((at + 1, line))
    })
}

/// Returns the words of an identifier without underscores: `KindOfThing`, `HTTPServer`.
fn parts(run: &str) -> Vec<&str> {
    let letters: Vec<char> = run.chars().collect();
    let starts = (1..letters.len()).filter(|&at| {
        let (before, own) = (letters[at - 1], letters[at]);
        let is_last_of_capitals = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        own.is_ascii_uppercase() && (!before.is_ascii_uppercase() || is_last_of_capitals)
    });
    let mut cuts = vec![0];
    cuts.extend(starts);
    cuts.push(run.len());
    cuts.windows(2).map(|cut| &run[cut[0]..cut[1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud() -> Cloud {
        let names = ["tke", "tencent*"].map(Name::new).into();
        Cloud {
            folder: "cloud/tke".into(),
            word: "tke".to_owned(),
            names,
            places: vec!["crates/api".into()],
        }
    }

    fn named(text: &str) -> Vec<usize> {
        let found = cloud().named_in(Path::new("src/some.rs"), text, false, &[]);
        found.into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn an_offender_is_found_wherever_it_is() {
        for offender in [
            "struct TkeConfig;",
            "fn is_tke() {}",
            "const TKE_PORT: u16 = 1;",
            "\"v1.22.5-tke.13\"",
            "// as TKE's controller does it",
            "key.contains(\"cloud.tencent.com/\")",
            "TencentOS",
            "use uturn_clouds::cloud::tke;",
        ] {
            assert_eq!(named(offender), [1], "{offender}");
            assert!(cloud().may_be_named_in(&offender.to_lowercase()), "{offender}");
        }
        for other in ["strtke()", "svclb", "let stake = 1;", "TkeyValue"] {
            assert_eq!(named(other), [0; 0], "{other}");
        }
    }

    #[test]
    fn the_cloud_is_at_home_in_its_folder_and_places() {
        let is_at_home = |file: &str| cloud().is_at_home_in(Path::new(file));
        assert!(is_at_home("cloud/tke/mod.rs") && is_at_home("crates/api/src/lib.rs"));
        assert!(!is_at_home("cloud/mod.rs") && !is_at_home("crates/api2/src/lib.rs"));
    }

    #[test]
    fn a_name_of_two_clouds_stands_in_the_files_of_both() {
        let other = Cloud { names: vec![Name::new("tke")], word: "other".to_owned(), ..cloud() };
        let named = |text| cloud().named_in(Path::new("cloud/other/a.rs"), text, false, &[&other]);
        assert!(named("struct Tke;").is_empty());
        assert_eq!(named("struct Tencent;").len(), 1);
    }

    #[test]
    fn tests_may_name_it() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    // tke\n}\n// tke\n";
        assert_eq!(named(text), [6]);
        let tests = cloud().named_in(Path::new("src/json/tests.rs"), "tke", false, &[]);
        assert!(tests.is_empty());
    }

    #[test]
    fn the_list_has_one_line_a_cloud() {
        let of_list =
            |line| cloud().named_in(Path::new("cloud/mod.rs"), line, true, &[]).is_empty();
        for allowed in
            ["pub mod tke;", "    &tke::ENTRY,", "pub const EXPECTED: Expected = tke::EXPECTED;"]
        {
            assert!(of_list(allowed), "{allowed}");
        }
        for offender in ["tke::serves(ingress)", "fn is_tke() {}", "// tke::ENTRY and TKE,"] {
            assert!(!of_list(offender), "{offender}");
        }
    }

    #[test]
    fn every_folder_has_names() {
        let clouds = clouds(&shell::root().join("crates/analysis/clouds/src/cloud")).unwrap();
        assert!(!clouds.is_empty());
        for cloud in clouds {
            // Its own word may be that of a pod network too, which other code names.
            assert!(!cloud.names.is_empty(), "{}", cloud.word);
            assert!(cloud.names.iter().all(|name| !name.text.is_empty()), "{}", cloud.word);
            for place in &cloud.places {
                assert!(place.exists(), "{} is not there", place.display());
            }
        }
    }
}
