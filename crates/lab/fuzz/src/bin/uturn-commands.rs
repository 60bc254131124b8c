//! Tries whole commands: `uturn-commands COUNT NUMBER` tries the seeds in `fuzz/commands.txt`, and
//! mutants of them and of drawn commands. Another NUMBER gives other mutants. `cargo xtask fuzz
//! --commands` runs this.
//!
//! `uturn-commands --families LEVELS...` tries commands over small texts that describe much
//! ([`uturn_fuzz::families::clusters`]), each with limits on memory and processor time.
//! `uturn-commands --limited FILE` tries one input, from a file, with the same limits: status 0 if
//! the command did its work, 3 if it refused its input.
//!
//! `uturn-commands --input AT NUMBER` prints the input that is called `mutant-AT-of-NUMBER`, and
//! `uturn-commands --unpack FILE FOLDER` writes the files of a saved input to a new folder, and
//! prints the line that runs its command.
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use uturn_fuzz::commands::{Commands, NAMES, Outcome, Sequence, counted_as, unpacked};
use uturn_fuzz::families::clusters::CLUSTERS;
use uturn_fuzz::watched::{CHILD, Inputs, Tried, child, watched};
use uturn_fuzz::{limits, program};

/// The name of the consumer of the inputs.
const NAME: &str = "commands";

/// The number of mutants of one sequence that one process tries.
const BATCH: usize = 20_000;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let done = match words.split_first() {
        Some((first, [_, rest @ ..])) if first == CHILD => run_child(rest).map(|()| true),
        Some((first, levels)) if first == "--families" => try_families(levels),
        Some((first, [file])) if first == "--limited" => return limited(Path::new(file)),
        Some((first, [at, number])) if first == "--input" => print_input(at, number).map(|()| true),
        Some((first, [file, folder])) if first == "--unpack" => {
            print_unpacked(file, folder).map(|()| true)
        }
        _ => run(&words),
    };
    program::end(done)
}

fn run_child(rest: &[String]) -> io::Result<()> {
    let sequence = Sequence::read()?;
    // The folder of this process is the last argument: files that remain in it are removed with it.
    let place = rest.last().ok_or_else(|| io::Error::other("no folder is named"))?;
    let mut commands = Commands::within(Path::new(place))?;
    child(NAME, &sequence, rest, &mut |input| commands.run(input))
}

/// The exit status for an input that is refused.
const REFUSED: u8 = 3;

/// Tries each family of clusters with these numbers of levels. The command has to do its work, or
/// to refuse its input if the family allows that.
fn try_families(levels: &[String]) -> io::Result<bool> {
    let wrong = |_| io::Error::other("usage: uturn-commands --families LEVELS...");
    let levels: Vec<usize> =
        levels.iter().map(|own| own.parse().map_err(wrong)).collect::<io::Result<_>>()?;
    let folder = env::temp_dir().join(format!("uturn-families-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join("input");
    let mut is_well = true;
    for family in CLUSTERS {
        for levels in &levels {
            fs::write(&file, family.input(*levels))?;
            let status = Command::new(env::current_exe()?).arg("--limited").arg(&file).status()?;
            let is_right = match status.code() {
                Some(0) => true,
                Some(code) => code == i32::from(REFUSED) && !family.is_taken,
                None => false,
            };
            if !is_right {
                println!("{}, {levels} levels: {status}", family.name);
            }
            is_well &= is_right;
        }
    }
    fs::remove_dir_all(&folder)?;
    Ok(is_well)
}

/// Tries one input with the limits on memory and processor time.
fn limited(file: &Path) -> ExitCode {
    let folder = env::temp_dir().join(format!("uturn-limited-{}", std::process::id()));
    let tried = || -> io::Result<String> {
        let input = fs::read(file)?;
        fs::create_dir_all(&folder)?;
        limits::limit_memory()?;
        limits::limit_time()?;
        let mut commands = Commands::within(&folder)?;
        Ok(commands.run(&input))
    };
    let counted = tried();
    let removed = env::set_current_dir("/").and_then(|()| fs::remove_dir_all(&folder));
    let is = |outcome: Outcome| {
        counted.as_ref().is_ok_and(|counted| counted.ends_with(outcome.as_str())) && removed.is_ok()
    };
    match () {
        () if is(Outcome::Worked) => ExitCode::SUCCESS,
        () if is(Outcome::BadInput) => ExitCode::from(REFUSED),
        () => ExitCode::FAILURE,
    }
}

fn run(words: &[String]) -> io::Result<bool> {
    let numbers: Vec<u64> = words.iter().map_while(|word| word.parse().ok()).collect();
    let ([count, number], true) = (&numbers[..], numbers.len() == words.len()) else {
        return Err(io::Error::other("usage: uturn-commands COUNT NUMBER"));
    };
    let (count, source) = (usize::try_from(*count).unwrap_or(usize::MAX), Sequence::read()?);
    let (mut tried, began) = (Tried::default(), Instant::now());
    for (batch, from) in (0..count.max(1)).step_by(BATCH).enumerate() {
        let mutants = BATCH.min(count - from);
        let number = number.wrapping_add(batch as u64);
        tried.add(watched(Inputs { name: NAME, source: &source, number, mutants })?);
        if !tried.findings.is_empty() {
            break;
        }
    }
    print(&tried);
    println!(
        "sequence {number}: {} s, {:.1} s of a processor, at most {:.0} ms ({}) and {} MiB",
        began.elapsed().as_secs(),
        tried.time.as_secs_f64(),
        tried.slowest.as_secs_f64() * 1e3,
        tried.slowest_name,
        tried.peak >> 20,
    );
    tried.findings.iter().for_each(|finding| println!("{finding}"));
    Ok(tried.findings.is_empty())
}

/// Prints the number of commands for each outcome, by their names and in all.
fn print(tried: &Tried) {
    let heads = Outcome::ALL.map(|outcome| format!("{:>10}", outcome.as_str().to_uppercase()));
    println!("{:<10} {}", "COMMAND", heads.join(" "));
    let mut sums = [0; Outcome::ALL.len()];
    for name in NAMES {
        let counts = Outcome::ALL.map(|outcome| tried.came_of(&counted_as(name, outcome)));
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        print_row(name, counts);
    }
    print_row("all", sums);
    println!(
        "{} commands, {:.1} % did what they were asked",
        tried.inputs,
        sums[0] as f64 * 100.0 / tried.inputs.max(1) as f64
    );
}

fn print_row(name: &str, counts: [u64; Outcome::ALL.len()]) {
    let counts = counts.map(|count| format!("{count:>10}"));
    println!("{name:<10} {}", counts.join(" "));
}

fn print_input(at: &str, number: &str) -> io::Result<()> {
    let wrong = |_| io::Error::other("usage: uturn-commands --input AT NUMBER");
    let (at, number) = (at.parse().map_err(wrong)?, number.parse().map_err(wrong)?);
    let source = Sequence::read()?;
    let inputs = Inputs { name: NAME, source: &source, number, mutants: at + 1 };
    io::stdout().write_all(&inputs.input(at).unwrap_or_default())
}

/// Writes the files of a saved command, and prints the line that runs it.
fn print_unpacked(file: &str, folder: &str) -> io::Result<()> {
    println!("cd {folder} && {}", unpacked(&fs::read(file)?, Path::new(folder))?);
    Ok(())
}
