//! Measures how the work of each parser grows with the length of its input: `cargo xtask fuzz
//! --growth`.
//!
//! Thousands of shapes ([`uturn_fuzz::shape`]) per target are first timed, which is quick but
//! imprecise. For those whose time grew most, valgrind then counts instructions: a table of
//! exponents, 1 for linear. Inputs double three times; n log n shows as less than 1.1.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to people")]

use std::env;
use std::fs;
use std::io;
use std::panic;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use uturn_fuzz::shape::{Shape, shapes};
use uturn_fuzz::{TARGETS, Target, corpus, limits, program};

/// The input size for timing. The larger input is eight times as long.
const SMALL: usize = 1 << 14;
const TIMES: usize = 8;

/// The input sizes for counting instructions.
const SIZES: [usize; 4] = [1 << 16, 1 << 17, 1 << 18, 1 << 19];

/// The number of shapes per target whose instructions are counted.
const COUNTED: usize = 3;

/// The largest exponent that is not an error.
const MAX: f64 = 1.2;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--once", target, file] => once(target, Path::new(file)),
        ["--limited", target, file] => limited(target, Path::new(file)),
        names if names.iter().all(|name| find(name).is_some()) => table(names),
        other => Err(format!("{other:?}: expected names of targets, or nothing for all of them")),
    };
    program::end(done)
}

fn find(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}

/// Runs a target on one input, read from a file, and prints whether the target took it. valgrind
/// counts the instructions of this program.
fn once(target: &str, file: &Path) -> Result<bool, String> {
    let target = find(target).ok_or("no such target")?;
    let input = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("{}", if target(&input) { "taken" } else { "refused" });
    Ok(true)
}

/// Runs the same with the limits for one input. A debug build takes several times as long as an
/// optimised one, so only an input that never ends reaches the time limit.
fn limited(target: &str, file: &Path) -> Result<bool, String> {
    limits::limit_memory().map_err(|why| why.to_string())?;
    limits::limit_time().map_err(|why| why.to_string())?;
    once(target, file)
}

fn table(names: &[&str]) -> Result<bool, String> {
    // The default panic message would contain the input, which is long here.
    panic::set_hook(Box::new(|info| {
        let message: String = info.to_string().chars().take(300).collect();
        eprintln!("{message}");
    }));
    let folder = env::temp_dir().join(format!("uturn-growth-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let well = lines(names, &folder);
    let removed = fs::remove_dir_all(&folder);
    removed.map_err(|error| format!("{}: {error}", folder.display()))?;
    well
}

fn lines(names: &[&str], folder: &Path) -> Result<bool, String> {
    println!("{:<18} {:>7} {:>9} {:>8}  SHAPE", "TARGET", "SHAPES", "INSTR/B", "EXPONENT");
    let mut well = true;
    for (name, target) in
        TARGETS.iter().filter(|(known, _)| names.is_empty() || names.contains(known))
    {
        let (tried, broken) = tried(name, *target)?;
        well &= broken.is_empty();
        for shape in broken.iter().take(COUNTED) {
            println!("{name:<18} {:>7} {:>9} {:>8}  {}  breaks a promise", "", "", "", shape.name);
        }
        for result in tried.iter().take(COUNTED) {
            let counted = counted(name, &result.shape, folder)?;
            let verdict = if counted.exponent > MAX { "  worse than n log n" } else { "" };
            well &= counted.exponent <= MAX;
            println!(
                "{name:<18} {:>7} {:>9.0} {:>8.2}  {}{verdict}",
                tried.len(),
                counted.a_byte,
                counted.exponent,
                result.shape.name,
            );
        }
    }
    Ok(well)
}

struct Tried {
    shape: Shape,
    growth: f64,
}

/// Returns all shapes of a target, sorted by growth, and those that break a promise.
fn tried(name: &str, target: Target) -> Result<(Vec<Tried>, Vec<Shape>), String> {
    let seeds = corpus::seeds(name).map_err(|error| format!("seeds of {name}: {error}"))?;
    let (mut all, mut broken) = (Vec::new(), Vec::new());
    for (seed, bytes) in &seeds {
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        for shape in shapes(seed, text) {
            match growth(target, &shape) {
                Some(growth) => all.push(Tried { shape, growth }),
                None => broken.push(shape),
            }
        }
    }
    all.sort_by(|first, other| other.growth.total_cmp(&first.growth));
    // A bad result may be due to an interruption.
    for result in all.iter_mut().take(8 * COUNTED) {
        let again = (0..2).filter_map(|_| growth(target, &result.shape));
        result.growth = again.fold(result.growth, f64::min);
    }
    all.sort_by(|first, other| other.growth.total_cmp(&first.growth));
    Ok((all, broken))
}

/// Returns the ratio of the times for an input and for one eight times as long, or `None` if a
/// promise is broken.
fn growth(target: Target, shape: &Shape) -> Option<f64> {
    let small = time(target, &shape.text(SMALL))?;
    let large = time(target, &shape.text(TIMES * SMALL))?;
    // Very short times are noise.
    Some(if large < 2e-4 { 0.0 } else { large / small.max(1e-5) })
}

fn time(target: Target, text: &str) -> Option<f64> {
    let start = limits::processor_time();
    panic::catch_unwind(|| target(text.as_bytes())).ok()?;
    Some((limits::processor_time() - start).as_secs_f64())
}

struct Counted {
    a_byte: f64,
    exponent: f64,
}

/// Counts instructions: for the largest input, and the worse of the last two growth factors.
fn counted(name: &str, shape: &Shape, folder: &Path) -> Result<Counted, String> {
    let file = folder.join("input");
    let count = |text: &str| {
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        instructions(name, &file)
    };
    let nothing = count("")?;
    let texts = SIZES.map(|size| shape.text(size));
    let mut counts = Vec::new();
    for text in &texts {
        counts.push((text.len().max(1) as f64, count(text)?.saturating_sub(nothing).max(1) as f64));
    }
    let (first, last) = (counts[1], counts[SIZES.len() - 1]);
    let exponent = (last.1 / first.1).ln() / (last.0 / first.0).ln();
    let exponent = if exponent.is_finite() { exponent } else { 0.0 };
    Ok(Counted { a_byte: last.1 / last.0, exponent })
}

fn instructions(name: &str, file: &Path) -> Result<u64, String> {
    let program: PathBuf = env::current_exe().map_err(|error| error.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    let output = valgrind.arg(program).args(["--once", name]).arg(file).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "valgrind is missing: apt-get install valgrind".to_owned(),
        _ => format!("valgrind: {error}"),
    })?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let count =
        stderr.lines().find_map(|line| line.split_once("I   refs:").or(line.split_once("I refs:")));
    count
        .and_then(|(_, count)| count.trim().replace(',', "").parse().ok())
        .ok_or_else(|| format!("valgrind of {name} counted nothing:\n{stderr}"))
}
