//! Runs whole commands in this process: seeds, commands drawn for clusters, and mutants of both.
//!
//! **Start reading** at [`Commands::run`], which states the promises of a command, then `seeds`
//! (the contents of `fuzz/commands.txt`), `grammar` (the commands that are drawn), `mutants` and
//! `edit` (the changes that are made).

mod blocks;
mod cluster;
mod edit;
mod grammar;
mod input;
mod mutants;
mod seeds;
mod tokens;

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};

use uturn_cli::{Ended, Part};
use uturn_model::shell::Command;
use uturn_model::visible::is_hidden;
use uturn_snapshot::bundle::BundleWriter;

use self::cluster::Values;
use self::grammar::Known;
use self::input::Input;
use self::mutants::CommandMutants;
use crate::watched::{LAST_WORDS, Source};

/// The archive that is made of the files of the folder `bundle` if an argument names it.
const ARCHIVE: &str = "bundle.tar.gz";

/// A source of commands.
pub struct Sequence {
    commands: Vec<Input>,
    seeds: Vec<Vec<u8>>,
    clusters: Vec<Known>,
}

impl Sequence {
    /// Reads the commands and the clusters of `fuzz/commands.txt`.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read() -> io::Result<Self> {
        let seeds::Seeds { commands, clusters } = seeds::read()?;
        let known = |input: Input| Known { values: Values::of(&input), input };
        let seeds = commands.iter().map(Input::bytes).collect();
        Ok(Self { commands, seeds, clusters: clusters.into_iter().map(known).collect() })
    }
}

impl Source for Sequence {
    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn mutants(&self, number: u64) -> Box<dyn Iterator<Item = Vec<u8>> + '_> {
        Box::new(CommandMutants::new(&self.commands, &self.clusters, number))
    }
}

/// The outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command did its work: status 0 or 1.
    Worked,
    /// The words are no command, or ask for help.
    Usage,
    /// The files were refused, or the objects in them that the words name.
    BadInput,
    /// The command cannot be done here.
    Unavailable,
    /// The command was not run: it reads more than files, names files elsewhere, or has files that
    /// cannot be written.
    NotRun,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 5] =
        [Self::Worked, Self::Usage, Self::BadInput, Self::Unavailable, Self::NotRun];

    /// Returns the outcome in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worked => "worked",
            Self::Usage => "usage",
            Self::BadInput => "bad input",
            Self::Unavailable => "not here",
            Self::NotRun => "not run",
        }
    }
}

/// The names under which commands are counted. `other` stands for any other command.
pub const NAMES: [&str; 10] =
    ["scan", "trace", "check", "cure", "rules", "walk", "lb", "collect", "explain", "other"];

/// Returns the key under which a command is counted: a name and an outcome.
pub fn counted_as(name: &str, outcome: Outcome) -> String {
    format!("{name}: {}", outcome.as_str())
}

/// The folder where commands run, and the files that they print to.
pub struct Commands {
    place: PathBuf,
    streams: [File; 2],
}

impl Commands {
    /// Makes commands run below this folder, and redirects all output of this process to files in
    /// it.
    ///
    /// # Errors
    /// If such a file cannot be made.
    pub fn within(folder: &Path) -> io::Result<Self> {
        let place = fs::canonicalize(folder)?;
        let open = |name: &str| {
            let mut options = File::options();
            options.read(true).append(true).create(true).open(place.join(name))
        };
        let streams = [open("stdout")?, open(LAST_WORDS)?];
        redirect(&streams)?;
        Ok(Self { place, streams })
    }

    /// Runs the command of an input, and returns the key under which it is counted. Panics unless
    /// the command ends with a documented status, gives a reason when it fails, prints nothing that
    /// a terminal would interpret, and prints readable JSON where that is asked for.
    pub fn run(&mut self, data: &[u8]) -> String {
        let Some(input) = Input::read(data) else { return counted_as("other", Outcome::NotRun) };
        let named = |own: &String| NAMES.into_iter().find(|name| own == name);
        let name = input.arguments.iter().find_map(named).unwrap_or("other");
        counted_as(name, self.outcome(&input))
    }

    fn outcome(&mut self, input: &Input) -> Outcome {
        let Input { arguments, files } = input;
        let here = self.place.join("here");
        let has_archive = arguments.iter().any(|own| own == ARCHIVE);
        let is_inside = arguments.iter().all(|own| stays_inside(own));
        // Two files may have the same name, or one path may lead through another file.
        if !is_inside || write(&here, files, has_archive).is_err() {
            return Outcome::NotRun;
        }
        std::env::set_current_dir(&here).expect("the folder was made");
        // A command that broke a promise may have left output.
        self.streams.iter().for_each(|stream| stream.set_len(0).expect("a file of our own"));
        let ended = match Part::named(arguments) {
            Some((Part::Lb, _)) => uturn_lb_cli::run_on_files(arguments),
            _ => uturn::run_on_files(arguments),
        };
        let [stdout, stderr] = self.printed().expect("files of our own");
        let (Ended::Told(status) | Ended::Ran(status)) = ended else { return Outcome::NotRun };
        assert!(status <= 3, "status {status}");
        for printed in [&stdout, &stderr] {
            assert_is_seen(printed, has_value(arguments, &["--color"], &["always"]));
        }
        assert!(status < 2 || !stderr.trim().is_empty(), "status {status} without a reason");
        match ended {
            Ended::Ran(0 | 1) => {
                let is_json = has_value(arguments, &["-o", "--output"], &["json", "sarif"])
                    && !arguments.iter().any(|own| own == "collect");
                if is_json {
                    let read = serde_json::from_str::<serde_json::Value>(&stdout);
                    assert!(read.is_ok(), "no JSON: {read:?}");
                }
                Outcome::Worked
            }
            Ended::Ran(2) => Outcome::BadInput,
            Ended::Ran(_) => Outcome::Unavailable,
            Ended::Told(_) | Ended::NotRun => Outcome::Usage,
        }
    }

    /// Reads the printed output.
    fn printed(&mut self) -> io::Result<[String; 2]> {
        let mut printed = [String::new(), String::new()];
        for (stream, text) in self.streams.iter_mut().zip(&mut printed) {
            stream.seek(SeekFrom::Start(0))?;
            stream.read_to_string(text)?;
        }
        Ok(printed)
    }
}

/// Redirects the output of this process to two files.
#[cfg(unix)]
fn redirect([stdout, stderr]: &[File; 2]) -> io::Result<()> {
    rustix::stdio::dup2_stdout(stdout)?;
    Ok(rustix::stdio::dup2_stderr(stderr)?)
}

#[cfg(not(unix))]
fn redirect(_: &[File; 2]) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "commands are tried on Unix only"))
}

/// Returns whether one of these options has one of these values, as a separate word.
fn has_value(arguments: &[String], options: &[&str], values: &[&str]) -> bool {
    let is_it = |own: &[String]| options.contains(&&*own[0]) && values.contains(&&*own[1]);
    arguments.windows(2).any(is_it)
}

/// Asserts that the text has nothing that a terminal would interpret or that changes the direction
/// of the following text. Colours are accepted if they were asked for.
fn assert_is_seen(printed: &str, may_have_colors: bool) {
    let is_color = |at: usize| {
        let code = printed[at..].strip_prefix("\x1b[").and_then(|rest| rest.split_once('m'));
        let is_style = |own: u8| own.is_ascii_digit() || own == b';';
        may_have_colors && code.is_some_and(|(code, _)| code.bytes().all(is_style))
    };
    let is_break = |letter: char| matches!(letter, '\n' | '\t');
    let mut letters = printed.char_indices();
    let hidden = letters.find(|(at, own)| is_hidden(*own) && !is_break(*own) && !is_color(*at));
    if let Some((at, letter)) = hidden {
        let line = printed[..at].lines().last().unwrap_or_default();
        panic!("{letter:?} is printed behind {line:?}");
    }
}

/// Returns whether an argument can name no file outside the folder in which commands run. This
/// matters because some commands write files.
fn stays_inside(argument: &str) -> bool {
    let is_absolute = |text: &str| text.starts_with('/');
    let value = argument.split_once('=').map(|(_, value)| value);
    let is_path_behind_an_option =
        argument.starts_with('-') && argument.contains('/') && value.is_none();
    let may_lead_out = argument.contains("..")
        || argument.contains('\0')
        || is_absolute(argument)
        || value.is_some_and(is_absolute)
        || is_path_behind_an_option;
    !may_lead_out
}

/// Returns whether a name is that of a file below a folder.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Writes the files of an input to a new folder, and returns the command line that runs its command
/// there.
///
/// # Errors
/// If the data is no input, or the files cannot be written.
pub fn unpacked(data: &[u8], folder: &Path) -> io::Result<String> {
    let Input { arguments, files } =
        Input::read(data).ok_or_else(|| io::Error::other("it does not begin with arguments"))?;
    write(folder, &files, arguments.iter().any(|own| own == ARCHIVE))?;
    let line = Command::new("uturn");
    Ok(arguments.iter().fold(line, |line, argument| line.value(argument)).to_string())
}

/// Writes the files of an input to a new folder. The files of the bundle are packed into an archive
/// if one is wanted.
fn write(here: &Path, files: &[(String, Vec<u8>)], has_archive: bool) -> io::Result<()> {
    match fs::remove_dir_all(here) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => fs::create_dir(here)?,
    }
    let mut archive = None;
    if has_archive {
        archive = Some(BundleWriter::create(&here.join(ARCHIVE))?);
    }
    for (name, bytes) in files.iter().filter(|(name, _)| is_plain(name)) {
        match (name.strip_prefix("bundle/"), &mut archive) {
            (Some(name), Some(archive)) => archive.add(name, bytes)?,
            _ => {
                let path = here.join(name);
                fs::create_dir_all(path.parent().unwrap_or(here))?;
                fs::write(path, bytes)?;
            }
        }
    }
    archive.map_or(Ok(()), BundleWriter::finish)
}
