//! Reads the seeds: lines of `fuzz/commands.txt`, each a command and, after ` # `, its files. A
//! file has the text of a path of this repository, and a folder has all files of such a path: `scan
//! -f shop -o json # shop=examples/shop`.
//!
//! A line that begins with an option names a cluster and no command: any command that reads a
//! cluster is tried with it. A path that ends in `/*` stands for a line for each file of a folder.

use std::fs;
use std::io;
use std::path::Path;

use super::input::Input;
use crate::corpus::{folder, names};
use crate::files::files;

/// The contents of all lines.
#[derive(Debug, Default)]
pub(super) struct Seeds {
    /// Whole commands.
    pub(super) commands: Vec<Input>,
    /// The clusters: the options that name one, and its files.
    pub(super) clusters: Vec<Input>,
}

/// Reads all lines.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn read() -> io::Result<Seeds> {
    let lines = fs::read_to_string(folder().join("commands.txt"))?;
    let mut seeds = Seeds::default();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let all = match line.strip_prefix('-') {
            Some(_) => &mut seeds.clusters,
            None => &mut seeds.commands,
        };
        for line in each(line)? {
            all.push(read_line(&line)?);
        }
    }
    Ok(seeds)
}

/// Returns the lines that a line stands for.
fn each(line: &str) -> io::Result<Vec<String>> {
    let Some(start) = line.strip_suffix("/*") else { return Ok(vec![line.to_owned()]) };
    let path = start.rsplit('=').next().unwrap_or_default();
    let names = names(&at_top(path))?;
    Ok(names.iter().map(|name| format!("{start}/{name}")).collect())
}

fn read_line(line: &str) -> io::Result<Input> {
    let (command, named) = line.split_once(" # ").unwrap_or((line, ""));
    let mut input = Input {
        arguments: command.split_whitespace().map(str::to_owned).collect(),
        files: Vec::new(),
    };
    for named in named.split_whitespace() {
        let no_file = || io::Error::other(format!("{line}: {named:?} is not NAME=PATH"));
        let (name, path) = named.split_once('=').ok_or_else(no_file)?;
        add(name, &at_top(path), &mut input.files)?;
    }
    Ok(input)
}

fn at_top(path: &str) -> std::path::PathBuf {
    folder().join("..").join(path)
}

/// Adds a file, the files below a folder, or those of a seed that has several.
fn add(name: &str, path: &Path, all: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    if path.is_dir() {
        for own in names(path)? {
            add(&format!("{name}/{own}"), &path.join(&own), all)?;
        }
        return Ok(());
    }
    let why = |why| io::Error::other(format!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(why)?;
    match &*files(&text) {
        [] => all.push((name.to_owned(), text.into_bytes())),
        several => all.extend(
            several.iter().map(|(own, text)| (format!("{name}/{own}"), text.clone().into_bytes())),
        ),
    }
    Ok(())
}
