//! The queue of test programs: how cargo would run each of them, recorded in a file.

use std::env;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use uturn_testing::variables;

/// The character that ends a field of an entry.
const FIELD: char = '\u{1f}';

/// The character that ends an entry.
const ENTRY: char = '\u{1e}';

/// A test program as cargo runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) folder: String,
    /// The variables that cargo sets.
    pub(super) variables: Vec<(String, String)>,
    /// The program and its arguments.
    pub(super) words: Vec<String>,
}

/// Records a program in the queue. Returns `false` if there is no queue, or if the program's file
/// will not last: the programs of documentation tests are removed at once.
pub(super) fn note(words: &[String]) -> io::Result<bool> {
    let Some(queue) = env::var_os(variables::TEST_QUEUE) else { return Ok(false) };
    let folder = words.first().and_then(|program| Path::new(program).parent());
    if folder.and_then(Path::file_name).is_none_or(|name| name != "deps") {
        return Ok(false);
    }
    let text = |text: OsString| text.into_string().ok();
    let variables = env::vars_os()
        .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
        .filter(|(name, _)| name.starts_with("CARGO") || name.ends_with("LIBRARY_PATH"))
        .collect();
    let folder = env::current_dir()?.display().to_string();
    // Cargo's own `--quiet` is not meant for the programs.
    let words = words.iter().filter(|word| *word != "--quiet").cloned().collect();
    let program = Program { folder, variables, words };
    let mut queue = OpenOptions::new().create(true).append(true).open(queue)?;
    queue.write_all(program.entry().as_bytes())?;
    Ok(true)
}

/// Returns the programs of a queue.
pub(super) fn read(queue: &str) -> Vec<Program> {
    queue.split_terminator(ENTRY).filter_map(Program::read).collect()
}

impl Program {
    /// Returns the name of the program's file, which no other program has.
    pub(super) fn file(&self) -> String {
        let program = PathBuf::from(self.words.first().map_or("", String::as_str));
        program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the names of the program's package and of the program.
    pub(super) fn name(&self) -> String {
        let package = self.variables.iter().find(|(name, _)| name == "CARGO_PKG_NAME");
        let package = package.map_or("", |(_, value)| value);
        format!("{package} {}", name_of(&self.file()))
    }

    fn entry(&self) -> String {
        let mut fields = vec![self.folder.clone(), self.variables.len().to_string()];
        for (name, value) in &self.variables {
            fields.extend([name.clone(), value.clone()]);
        }
        fields.extend(self.words.iter().cloned());
        let fields: String = fields.iter().map(|field| format!("{field}{FIELD}")).collect();
        format!("{fields}{ENTRY}")
    }

    fn read(entry: &str) -> Option<Self> {
        let mut fields = entry.split_terminator(FIELD).map(str::to_owned);
        let folder = fields.next()?;
        let count: usize = fields.next()?.parse().ok()?;
        let variables =
            (0..count).map(|_| Some((fields.next()?, fields.next()?))).collect::<Option<_>>()?;
        Some(Self { folder, variables, words: fields.collect() })
    }
}

/// Returns the name of a test program, without its folder and the hash that cargo appends.
pub(super) fn name_of(program: &str) -> &str {
    let file = program.rsplit(['/', '\\']).next().unwrap_or(program);
    file.rsplit_once('-').map_or(file, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_comes_back_from_the_queue() {
        let program = Program {
            folder: "/a folder".into(),
            variables: vec![
                ("CARGO_PKG_NAME".into(), "package".into()),
                ("CARGO_X".into(), "".into()),
            ],
            words: vec!["/target/debug/deps/tests-0123".into(), String::new(), "--all".into()],
        };
        let queue = program.entry() + &program.entry();
        assert_eq!(read(&queue), [program.clone(), program.clone()]);
        assert_eq!((program.name(), program.file()), ("package tests".into(), "tests-0123".into()));
    }

    #[test]
    fn the_name_of_a_program_has_no_hash() {
        assert_eq!(name_of("target/debug/deps/kernel-0123abcd"), "kernel");
    }

    #[test]
    fn what_will_not_last_is_not_noted() {
        assert!(!note(&["/tmp/rustdoctest/rust_out".to_owned()]).unwrap());
    }
}
