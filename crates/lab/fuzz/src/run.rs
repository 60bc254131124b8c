//! Runs a target over its seeds and mutants of them, in this process.

use std::fs;
use std::io;
use std::panic::catch_unwind;

use crate::Target;
use crate::corpus::{folder, seeds};
use crate::mutate::Mutants;

/// Saves an input that breaks a promise. Returns the line that reports it.
pub(crate) fn save(name: &str, file: &str, input: &[u8]) -> io::Result<String> {
    let folder = folder().join("artifacts").join(name);
    let file = folder.join(file);
    fs::create_dir_all(&folder)?;
    fs::write(&file, input)?;
    let start = String::from_utf8_lossy(&input[..input.len().min(200)]).into_owned();
    Ok(format!("{name} breaks on {} ({} bytes): {start:?}", file.display(), input.len()))
}

/// Runs a target over its seeds and `count` mutants of the sequence `number`, until a promise is
/// broken. Then saves the input, and returns a message with its path.
///
/// # Errors
/// If a seed cannot be read, or the input cannot be saved.
pub fn first_broken(
    name: &str,
    target: Target,
    number: u64,
    count: usize,
) -> io::Result<Option<String>> {
    let seeds: Vec<Vec<u8>> = seeds(name)?.into_iter().map(|(_, bytes)| bytes).collect();
    let mutants = Mutants::new(&seeds, number).take(count);
    let broken =
        seeds.iter().cloned().chain(mutants).find(|input| catch_unwind(|| target(input)).is_err());
    let Some(input) = broken else { return Ok(None) };
    save(name, &format!("mutant-of-{number}"), &input).map(Some)
}
