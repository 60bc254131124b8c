//! Mutants of commands: of the seeds, and of commands that are drawn for the clusters. Most of them
//! still do their work.

use uturn_dice::Dice;

use super::edit::{edit, value_like};
use super::grammar::{Known, command};
use super::input::Input;
use super::tokens::tokens;
use crate::mutate::Mutants;

/// An endless, reproducible sequence of commands.
pub(super) struct CommandMutants<'a> {
    seeds: &'a [Input],
    clusters: &'a [Known],
    dice: Dice,
}

impl<'a> CommandMutants<'a> {
    /// Creates the sequence with this number.
    pub(super) fn new(seeds: &'a [Input], clusters: &'a [Known], number: u64) -> Self {
        Self { seeds, clusters, dice: Dice::new(number) }
    }
}

impl Iterator for CommandMutants<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let dice = &mut self.dice;
        let is_seed = self.clusters.is_empty() || !self.seeds.is_empty() && dice.once_in(3);
        let mut input = match is_seed {
            true if self.seeds.is_empty() => return None,
            true => dice.pick(self.seeds).clone(),
            false => command(dice.pick(self.clusters), dice),
        };
        match dice.below(12) {
            0 => change_bytes(&mut input, dice),
            1 | 2 => change_argument(&mut input, dice),
            3 => {
                change_argument(&mut input, dice);
                edit(&mut input, dice);
            }
            _ => (0..=dice.below(3)).for_each(|_| edit(&mut input, dice)),
        }
        Some(input.bytes())
    }
}

/// Changes bytes of a file, wherever they are.
fn change_bytes(input: &mut Input, dice: &mut Dice) {
    if input.files.is_empty() {
        return;
    }
    let at = dice.below(input.files.len());
    let (_, bytes) = &mut input.files[at];
    *bytes = mutant(bytes, dice);
}

fn mutant(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    Mutants::new(&[bytes.to_owned()], dice.next_number()).next().unwrap_or_default()
}

/// Changes an argument, mostly to another value that is in the files.
fn change_argument(input: &mut Input, dice: &mut Dice) {
    if input.arguments.is_empty() {
        return;
    }
    let at = dice.below(input.arguments.len());
    let is_file = input.files.iter().any(|(name, _)| name.starts_with(&input.arguments[at]));
    if is_file && !dice.once_in(16) {
        return;
    }
    match dice.below(16) {
        0 => drop(input.arguments.remove(at)),
        1 => {
            let other = dice.below(input.arguments.len());
            input.arguments.swap(at, other);
        }
        2 => {
            let bytes = mutant(input.arguments[at].as_bytes(), dice);
            input.arguments[at] = String::from_utf8_lossy(&bytes).into_owned();
        }
        _ => {
            let changed = with_other_value(&input.arguments[at], &input.files, dice);
            input.arguments[at] = changed.unwrap_or_else(|| input.arguments[at].clone());
        }
    }
}

/// Returns an argument with one of its values replaced by a value of a file.
fn with_other_value(
    argument: &str,
    files: &[(String, Vec<u8>)],
    dice: &mut Dice,
) -> Option<String> {
    let own = tokens(argument);
    if own.is_empty() || files.is_empty() {
        return None;
    }
    let token = dice.pick(&own);
    let (_, bytes) = dice.pick(files);
    let value = value_like(argument, token, std::str::from_utf8(bytes).ok()?, dice)?;
    Some([&argument[..token.at.start], value, &argument[token.at.end..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> Vec<Input> {
        let arguments = ["scan", "-f", "a.yaml", "-n", "shop"].map(str::to_owned);
        let text = "metadata: {name: web, namespace: front}\nspec: {clusterIP: 172.16.0.9}\n";
        vec![Input { arguments: arguments.into(), files: vec![("a.yaml".into(), text.into())] }]
    }

    #[test]
    fn the_same_number_gives_the_same_commands() {
        let seeds = inputs();
        let some = |number| CommandMutants::new(&seeds, &[], number).take(300).collect::<Vec<_>>();
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
    }

    #[test]
    fn most_commands_keep_their_words_and_differ_in_a_file() {
        let seeds = inputs();
        let all = CommandMutants::new(&seeds, &[], 3).take(400);
        let all: Vec<Input> = all.filter_map(|bytes| Input::read(&bytes)).collect();
        let same_words = all.iter().filter(|own| own.arguments == seeds[0].arguments).count();
        let other_files = all.iter().filter(|own| own.files != seeds[0].files).count();
        assert!(same_words > 250 && other_files > 200, "{same_words}, {other_files}");
    }
}
