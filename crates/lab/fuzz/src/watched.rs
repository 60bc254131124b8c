//! Tries inputs in a separate process with limits on memory and time. An input that ends that
//! process is a finding, like a broken promise, and a new process continues with the next input.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::limits::{self, MOST_MEMORY, MOST_TIME};
use crate::mutate::Mutants;
use crate::run::save;

/// The first command-line argument of the process that tries inputs.
pub const CHILD: &str = "--try";

/// The file in the shared folder to which the process that tries inputs may print its errors.
pub const LAST_WORDS: &str = "stderr";

/// The outcome of an input that breaks a promise.
const BROKEN: &str = "broken";

/// The largest number of findings. Once it is reached, the remaining inputs are left out.
const MOST_FINDINGS: usize = 20;

/// A source of inputs.
pub trait Source {
    /// Returns the inputs that are tried unchanged.
    fn seeds(&self) -> &[Vec<u8>];

    /// Returns an endless sequence of further inputs. The same number yields the same sequence on
    /// every machine.
    fn mutants(&self, number: u64) -> Box<dyn Iterator<Item = Vec<u8>> + '_>;
}

/// Yields the list as seeds, and mutants of the seeds' bytes.
impl Source for Vec<Vec<u8>> {
    fn seeds(&self) -> &[Vec<u8>] {
        self
    }

    fn mutants(&self, number: u64) -> Box<dyn Iterator<Item = Vec<u8>> + '_> {
        Box::new(Mutants::new(self, number))
    }
}

/// A selection of inputs: all seeds, and the first `mutants` mutants of the sequence `number`.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The name of the target that takes the inputs, or another word for their consumer.
    pub name: &'a str,
    /// The source of the inputs.
    pub source: &'a dyn Source,
    /// The number of the sequence of mutants.
    pub number: u64,
    /// The number of mutants.
    pub mutants: usize,
}

impl Inputs<'_> {
    /// Returns all inputs, seeds first.
    fn all(&self) -> impl Iterator<Item = Vec<u8>> {
        let mutants = self.source.mutants(self.number).take(self.mutants);
        self.source.seeds().iter().cloned().chain(mutants)
    }

    /// Returns the input at a position, counting seeds first.
    pub fn input(&self, at: usize) -> Option<Vec<u8>> {
        self.all().nth(at)
    }

    /// Returns the name of the input at a position.
    fn name_of(&self, at: usize) -> String {
        format!("mutant-{at}-of-{}", self.number)
    }
}

/// The results of some inputs.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// The number of inputs tried.
    pub inputs: u64,
    /// The number of inputs for each outcome.
    pub counts: BTreeMap<String, u64>,
    /// The total processor time of all inputs.
    pub time: Duration,
    /// The longest processor time of a single input.
    pub slowest: Duration,
    /// The name of the slowest input.
    pub slowest_name: String,
    /// The peak memory, in bytes.
    pub peak: u64,
    /// The findings: a line for each place that broke a promise, with the file of an input.
    pub findings: Vec<String>,
}

impl Tried {
    /// Adds the results of other inputs.
    pub fn add(&mut self, other: Self) {
        self.inputs += other.inputs;
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
        self.time += other.time;
        if other.slowest > self.slowest {
            (self.slowest, self.slowest_name) = (other.slowest, other.slowest_name);
        }
        self.peak = self.peak.max(other.peak);
        self.findings.extend(other.findings);
    }

    /// Returns how many inputs had this outcome.
    pub fn came_of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }
}

/// Tries all inputs in child processes of this program. The program has to call [`child`] with the
/// name and the remaining arguments if its first argument is [`CHILD`].
///
/// # Errors
/// If such a process cannot be run, or a finding cannot be saved.
pub fn watched(inputs: Inputs<'_>) -> io::Result<Tried> {
    let place = Place::new()?;
    let all = inputs.source.seeds().len() + inputs.mutants;
    let (mut tried, mut from) = (Tried::default(), 0);
    while from < all {
        let output = start(inputs, from, &place)?;
        let ended = fs::read_to_string(ended_of(&place.0)).ok();
        if let Some(told) = ended.filter(|_| output.status.success()) {
            tried.add(read_told(&told));
            break;
        }
        let at = fs::read(at_of(&place.0))?;
        let at = <[u8; 8]>::try_from(&*at).map(u64::from_le_bytes);
        let at = at.map_err(|_| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            io::Error::other(format!("the process ended before its first input: {said}"))
        })?;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let input = inputs.input(at).unwrap_or_default();
        tried.inputs += (at + 1 - from) as u64;
        tried.findings.push(found(inputs, at, &input, &why_it_ended(&output, &place))?);
        if tried.findings.len() >= MOST_FINDINGS {
            break;
        }
        from = at + 1;
    }
    Ok(tried)
}

fn start(inputs: Inputs<'_>, from: usize, place: &Place) -> io::Result<Output> {
    let _ = fs::remove_file(ended_of(&place.0));
    let numbers = [inputs.number, inputs.mutants as u64, from as u64].map(|own| own.to_string());
    let mut command = Command::new(std::env::current_exe()?);
    // Otherwise each thread reserves address space of its own, and a machine may have many
    // processors.
    command.env("MALLOC_ARENA_MAX", "2");
    command.args([CHILD, inputs.name]).args(numbers).arg(&place.0).stdin(Stdio::null()).output()
}

/// Returns the reason why a process ended before the end of its inputs.
fn why_it_ended(output: &Output, place: &Place) -> String {
    let in_file = fs::read(place.0.join(LAST_WORDS)).unwrap_or_default();
    let said = [output.stderr.clone(), in_file].concat();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let memory = MOST_MEMORY >> 20;
    format!("the process that has {memory} MiB ended with {}: {last}", output.status)
}

/// Saves the input of a finding, and returns the lines that report it.
fn found(inputs: Inputs<'_>, at: usize, input: &[u8], why: &str) -> io::Result<String> {
    save(inputs.name, &inputs.name_of(at), input).map(|line| format!("{line}\n  {why}"))
}

/// Decodes the results of a process that tried all of its inputs.
fn read_told(told: &str) -> Tried {
    let told: Value = serde_json::from_str(told).unwrap_or_default();
    let number = |key: &str| told[key].as_u64().unwrap_or_default();
    let findings = told["findings"].as_array().into_iter().flatten();
    let counts = told["counts"].as_object().into_iter().flatten();
    Tried {
        inputs: number("inputs"),
        counts: counts.map(|(what, count)| (what.clone(), count.as_u64().unwrap_or(0))).collect(),
        time: Duration::from_micros(number("time")),
        slowest: Duration::from_micros(number("slowest")),
        slowest_name: told["slowest_name"].as_str().unwrap_or_default().to_owned(),
        peak: number("peak"),
        findings: findings.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

/// The arguments of the process that tries inputs.
struct ChildArguments {
    number: u64,
    mutants: usize,
    from: usize,
    place: PathBuf,
}

/// Tries inputs in this process. `arguments` are those after the name of the consumer, and `target`
/// returns the outcome of an input. Each broken promise is reported once for each place in the
/// code, even if its panic is caught.
///
/// # Errors
/// If the arguments are not those of [`watched`], no limit can be set, or nothing can be written.
pub fn child(
    name: &str,
    source: &dyn Source,
    arguments: &[String],
    target: &mut dyn FnMut(&[u8]) -> String,
) -> io::Result<()> {
    let wrong = || io::Error::other(format!("{arguments:?} are no arguments of this program"));
    let ChildArguments { number, mutants, from, place } = read(arguments).ok_or_else(wrong)?;
    let inputs = Inputs { name, source, number, mutants };
    let broken = note_panics();
    limits::limit_memory()?;
    let (mut tried, mut places) = (Tried::default(), Vec::new());
    let mut limited = None;
    let mut at_file = File::create(at_of(&place))?;
    for (at, input) in inputs.all().enumerate().skip(from) {
        write_at(&mut at_file, at as u64)?;
        let before = limits::processor_time();
        if limited.is_none_or(|limited| before.saturating_sub(limited) > MOST_TIME / 2) {
            limits::limit_time()?;
            limited = Some(before);
        }
        let done = catch_unwind(AssertUnwindSafe(|| target(&input)));
        let time = limits::processor_time().saturating_sub(before);
        tried.inputs += 1;
        let is_broken = done.is_err();
        *tried.counts.entry(done.unwrap_or_else(|_| BROKEN.to_owned())).or_default() += 1;
        tried.time += time;
        if time > tried.slowest {
            (tried.slowest, tried.slowest_name) = (time, inputs.name_of(at));
        }
        let why = broken.lock().map(|mut broken| broken.take()).ok().flatten();
        let why = why.or_else(|| match is_broken {
            true => Some(("panic".to_owned(), "a panic that says nothing".to_owned())),
            false if time > MOST_TIME => {
                Some(("time".to_owned(), format!("{} s on a processor", time.as_secs())))
            }
            false => None,
        });
        let Some((place, why)) = why.filter(|(place, _)| !places.contains(place)) else { continue };
        places.push(place);
        tried.findings.push(found(inputs, at, &input, &why)?);
        if tried.findings.len() >= MOST_FINDINGS {
            break;
        }
    }
    let told = json!({
        "inputs": tried.inputs,
        "counts": tried.counts,
        "time": tried.time.as_micros() as u64,
        "slowest": tried.slowest.as_micros() as u64,
        "slowest_name": tried.slowest_name,
        "peak": limits::peak_memory(),
        "findings": tried.findings,
    });
    fs::write(ended_of(&place), told.to_string())
}

fn read(arguments: &[String]) -> Option<ChildArguments> {
    let [number, mutants, from, place] = arguments else { return None };
    Some(ChildArguments {
        number: number.parse().ok()?,
        mutants: mutants.parse().ok()?,
        from: from.parse().ok()?,
        place: place.into(),
    })
}

/// Writes the number of the next input, for the process that watches this one.
fn write_at(file: &mut File, at: u64) -> io::Result<()> {
    use std::io::Seek as _;
    file.rewind()?;
    file.write_all(&at.to_le_bytes())
}

/// Records the place in the code and the message of the first panic from now on. Only the start of
/// the message is kept, since it may contain the input.
fn note_panics() -> Arc<Mutex<Option<(String, String)>>> {
    let noted = Arc::new(Mutex::new(None));
    let note = Arc::clone(&noted);
    panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let said: String = panic.to_string().chars().take(1_000).collect();
        // The first panic tells the cause: others follow from it.
        if let Ok(mut noted) = note.lock() {
            noted.get_or_insert((place, said));
        }
    }));
    noted
}

/// A folder through which the two processes communicate. It is removed when this is dropped.
struct Place(PathBuf);

impl Place {
    fn new() -> io::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("uturn-watched-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A folder that remains is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the path of the file with the number of the current input.
fn at_of(place: &Path) -> PathBuf {
    place.join("at")
}

/// Returns the path of the file with the results of all inputs.
fn ended_of(place: &Path) -> PathBuf {
    place.join("ended.json")
}
