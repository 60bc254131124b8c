//! What the pages for users show is what the program gives.
//!
//! In README.md, docs/*.md and docs/clouds/*.md, every block of the language `console` is run from the root of
//! the tree: lines after `$ uturn …` are its stdout and stderr, `$ echo $?` asks for its exit
//! status, a line `…` stands for any number of lines that are left out, and `> FILE` after a
//! command names a file of the tree that its stdout is. `cargo xtask docs` writes blocks and
//! files anew instead.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use uturn_testing::variables;

use super::common::{root, uturn};

/// What stands for lines that are left out.
const LEFT_OUT: &str = "…";

/// Every page with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let mut pages = vec![root().join("README.md")];
    let folders = ["docs", "docs/clouds", "docs/decisions"]
        .map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let docs = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    pages.sort();
    pages.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The pages for contributors, with their texts.
fn contributor_pages() -> Vec<(PathBuf, String)> {
    let pages = ["ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    pages.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// A command and what the page shows of it.
struct Shown {
    command: String,
    lines: Vec<String>,
}

/// Whether pages are written anew.
fn is_update() -> bool {
    variables::is_update(variables::DOCS)
}

#[test]
fn every_console_block_is_true() {
    let update = is_update();
    let (mut faults, mut shown) = (Vec::new(), 0);
    for (path, text) in pages() {
        let mut new = String::new();
        let mut block: Option<Vec<Shown>> = None;
        for line in text.lines() {
            match (&mut block, line) {
                (None, "```console") => block = Some(Vec::new()),
                (Some(commands), "```") => {
                    shown += commands.len();
                    let name = path.strip_prefix(root()).unwrap().display().to_string();
                    for command in play(commands, &name, &mut faults) {
                        new.push_str(&format!("$ {}\n", command.command));
                        command.lines.iter().for_each(|line| new.push_str(&format!("{line}\n")));
                    }
                    block = None;
                }
                (Some(commands), line) => {
                    match line.strip_prefix("$ ") {
                        Some(command) => {
                            commands.push(Shown { command: command.into(), lines: Vec::new() });
                        }
                        None => commands.last_mut().unwrap().lines.push(line.into()),
                    }
                    continue;
                }
                (None, _) => {}
            }
            new.push_str(line);
            new.push('\n');
        }
        assert!(block.is_none(), "{}: a block without an end", path.display());
        if update && new != text {
            fs::write(&path, new).unwrap();
        }
    }
    assert!(shown > 20, "only {shown} commands are shown");
    assert!(
        faults.is_empty(),
        "{}\n\ncargo xtask docs  writes anew what has no more than one {LEFT_OUT}",
        faults.join("\n\n")
    );
}

/// Runs the commands of a block; gives them as they should be shown.
fn play(commands: &[Shown], page: &str, faults: &mut Vec<String>) -> Vec<Shown> {
    let mut status = None;
    let mut now = Vec::new();
    for shown in commands {
        let given: Vec<String> = match shown.command.strip_prefix("uturn ") {
            None if shown.command == "echo $?" => vec![status.unwrap_or(0).to_string()],
            None => panic!("{page}: {:?} is no command that is run here", shown.command),
            Some(words) => {
                let (words, file) = words.split_once(" > ").unwrap_or((words, ""));
                let mut output = uturn(&split(words)).output().unwrap();
                status = output.status.code();
                if !file.is_empty() {
                    hold(&root().join(file), std::mem::take(&mut output.stdout), faults);
                }
                let text = [output.stdout, output.stderr].concat();
                String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
            }
        };
        let mut lines = shown.lines.clone();
        if is_update() && !agree(&lines, &given) {
            lines = anew(&lines, &given);
        }
        if !agree(&lines, &given) {
            let (was, is) = (lines.join("\n"), given.join("\n"));
            faults.push(format!("{page}: $ {}\nshown:\n{was}\ngiven:\n{is}", shown.command));
        }
        now.push(Shown { command: shown.command.clone(), lines });
    }
    now
}

/// A file of the tree is what a command prints.
fn hold(file: &Path, given: Vec<u8>, faults: &mut Vec<String>) {
    if fs::read(file).is_ok_and(|known| known == given) {
        return;
    }
    if is_update() {
        fs::write(file, given).unwrap();
    } else {
        faults.push(format!("{} is not what is printed now", file.display()));
    }
}

/// Words of a command line; quotes hold some together.
fn split(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part);
        } else {
            words.extend(part.split_whitespace());
        }
    }
    words
}

/// Whether what is shown is what was given, but for what is left out. An empty line at the
/// end needs not be shown.
fn agree(shown: &[String], given: &[String]) -> bool {
    let (shown, given) = (trimmed(shown), trimmed(given));
    let mut parts = shown.split(|line| line.trim() == LEFT_OUT);
    let first = parts.next().unwrap_or_default();
    if !given.starts_with(first) {
        return false;
    }
    let mut rest = &given[first.len()..];
    let parts: Vec<&[String]> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let found = rest.windows(part.len().max(1)).position(|lines| lines == *part);
        let Some(at) = found else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn trimmed(lines: &[String]) -> &[String] {
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
    &lines[..end]
}

/// What should be shown: as many lines from the beginning and the end as now, where some are
/// left out between; all, where none are. Where more than one place leaves some out, which is
/// for people to say.
fn anew(shown: &[String], given: &[String]) -> Vec<String> {
    let shown = trimmed(shown);
    let places: Vec<usize> = (0..shown.len()).filter(|at| shown[*at].trim() == LEFT_OUT).collect();
    let given = trimmed(given);
    match places[..] {
        [at] if shown.len() <= given.len() => {
            let after = given.len() - (shown.len() - at - 1);
            [&given[..at], &shown[at..=at], &given[after..]].concat()
        }
        [_, _, ..] => shown.to_vec(),
        _ => given.to_vec(),
    }
}

/// Links lead somewhere: to a file of the tree, and to a heading where one is named.
#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for (path, text) in pages().into_iter().chain(contributor_pages()) {
        for (at, _) in text.match_indices("](") {
            let to = text[at + 2..].split(')').next().unwrap();
            if to.starts_with("https://") {
                continue;
            }
            let (file, heading) = to.split_once('#').unwrap_or((to, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            assert!(target.exists(), "{} links to {to}", path.display());
            if !heading.is_empty() {
                let found = headings(&target).contains(heading);
                assert!(found, "{} links to {to}: {:?}", path.display(), headings(&target));
            }
            links += 1;
        }
    }
    assert!(links > 50, "{links}");
}

/// Files, folders and modules that pages name in backticks exist.
#[test]
fn every_path_that_is_named_exists() {
    let files = source_files();
    let (mut missing, mut named) = (Vec::new(), 0);
    for (path, text) in pages().into_iter().chain(contributor_pages()) {
        for word in code_words(&text) {
            if let Some(exists) = exists(word, &files) {
                named += 1;
                if !exists {
                    missing.push(format!("{}: {word}", path.display()));
                }
            }
        }
    }
    assert!(named > 100, "{named}");
    assert!(missing.is_empty(), "these are not there:\n{}", missing.join("\n"));
}

/// The files of the tree that hold source, relative to its root.
fn source_files() -> Vec<String> {
    let (mut files, mut folders) = (Vec::new(), vec![root().join("crates"), root().join("xtask")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    files
}

/// What stands in backticks within a line, outside of blocks.
fn code_words(text: &str) -> Vec<&str> {
    let mut is_block = false;
    let mut words = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            words.extend(line.split('`').skip(1).step_by(2));
        }
    }
    words
}

/// Whether a word is the name of something that exists. Returns `None` if it is not a path or a
/// module, or if it has a placeholder (`NAME`) or lies in a folder that builds make.
fn exists(word: &str, files: &[String]) -> Option<bool> {
    const FOLDERS: [&str; 7] =
        ["crates", "xtask", "docs", "fuzz", "conformance", "scenarios", "examples"];
    let has_placeholder =
        word.split(['/', '.']).any(|part| part.len() > 1 && part == part.to_uppercase());
    let is_place = word.contains(":") && !word.contains("::");
    if has_placeholder || is_place || word.contains(' ') && !word.contains('(') {
        return None;
    }
    if let Some((krate, rest)) = word.split_once("::") {
        let krate = krate.strip_prefix("uturn_").or_else(|| krate.strip_prefix("uturn-"))?;
        let item = rest.split(|c: char| c != '_' && !c.is_alphanumeric()).next()?;
        let source = format!("{}/src", crate_folder(&krate.replace('_', "-"))?);
        let module = [format!("{source}/{item}.rs"), format!("{source}/{item}/mod.rs")];
        let lib = fs::read_to_string(root().join(source).join("lib.rs")).unwrap_or_default();
        let is_item = lib.contains(&format!("fn {item}(")) || lib.contains(&format!("{item};"));
        return Some(is_item || module.iter().any(|module| files.contains(module)));
    }
    let first = word.split('/').next()?;
    if word.contains('/') && FOLDERS.contains(&first) {
        return Some(root().join(word).exists());
    }
    let names_a_crate = |(room, rest): (&str, &str)| {
        let krate = rest.split('/').next().unwrap_or_default();
        !room.is_empty() && root().join("crates").join(room).join(krate).is_dir()
    };
    if word.split_once('/').is_some_and(names_a_crate) {
        return Some(root().join("crates").join(word).exists());
    }
    let is_source = word.ends_with(".rs");
    is_source.then(|| files.iter().any(|file| file.ends_with(&format!("/{word}"))))
}

/// The folder of a crate, whose name has the prefix no longer.
fn crate_folder(name: &str) -> Option<String> {
    let rooms = fs::read_dir(root().join("crates")).unwrap();
    let mut rooms = rooms.map(|room| room.unwrap().file_name().into_string().unwrap());
    let room = rooms.find(|room| root().join("crates").join(room).join(name).is_dir())?;
    Some(format!("crates/{room}/{name}"))
}

/// The check of names finds what is missing.
#[test]
fn names_of_missing_files_are_found() {
    let files = source_files();
    for there in ["analysis/path/src/journey.rs", "uturn_lb::decide", "decide.rs", "docs/schema"] {
        assert_eq!(exists(there, &files), Some(true), "{there}");
    }
    for missing in ["analysis/path/src/travel.rs", "uturn-path::travel", "travel.rs", "docs/none"] {
        assert_eq!(exists(missing, &files), Some(false), "{missing}");
    }
    for other in ["uturn scan", "fuzz/corpus/NAME/", "Kernel::walk", "--all"] {
        assert_eq!(exists(other, &files), None, "{other}");
    }
    assert_eq!(code_words("a `b` c `d`\n```\n`e`\n```\n"), ["b", "d"]);
}

/// Headings as links name them.
fn headings(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap();
    let titles = text.lines().filter(|line| line.starts_with('#'));
    let named = titles.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().replace(' ', "-")
    });
    named.collect()
}

/// Codes that a page names are codes that there are.
#[test]
fn every_code_that_is_named_exists() {
    let mut named = BTreeSet::new();
    for (path, text) in pages() {
        for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
            let is_code = word.len() == 5 && word.starts_with("UT");
            if is_code && word[2..].bytes().all(|digit| digit.is_ascii_digit()) {
                let page = uturn_diagnose::pages::find(word);
                assert!(page.is_some(), "{}: {word} is no code", path.display());
                named.insert(word.to_owned());
            }
        }
    }
    assert!(named.len() > 15, "{named:?}");
}

/// What the comparison lets pass and what not.
#[test]
fn lines_may_be_left_out_and_nothing_else() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let given = lines("a\nb\nc\nd\ne\n\n");
    for same in ["a\nb\nc\nd\ne", "a\n…\ne", "…\nc\n…", "a\n…\nc\nd\n…\ne", "…"] {
        assert!(agree(&lines(same), &given), "{same:?}");
    }
    for other in ["", "a\nb", "a\n…\nd", "…\nc\nb\n…", "a\n…\nx\n…\ne", "b\n…"] {
        assert!(!agree(&lines(other), &given), "{other:?}");
    }
    assert_eq!(anew(&lines("x\n…\ny"), &given), lines("a\n…\ne"));
    assert_eq!(anew(&lines("x"), &given), lines("a\nb\nc\nd\ne"));
}
