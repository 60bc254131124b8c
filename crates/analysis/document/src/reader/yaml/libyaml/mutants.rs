//! Documents that are changed or made at random.

use uturn_dice::Dice;

/// Pieces of YAML, to be put anywhere.
const PIECES: &[&str] = &[
    "\n",
    "\n",
    "\n  ",
    "\n    ",
    " ",
    "  ",
    "- ",
    "-",
    "? ",
    "?",
    ": ",
    ":",
    ",",
    ", ",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "''",
    "\\",
    "\\n",
    "\\x41",
    "\\u00e4",
    "\\\n",
    "&a ",
    "*a",
    "*a ",
    "<<: ",
    "!!str ",
    "!!s%74r ",
    "!!",
    "!x!y ",
    "!x ",
    "!%41 ",
    "! ",
    "!<tag:yaml.org,2002:int> ",
    "|",
    "|\n",
    "|-\n  ",
    "|2+\n",
    ">\n",
    ">-\n  ",
    "# x",
    " # x\n",
    "#",
    "%",
    "@",
    "`",
    "\t",
    "\n\t",
    "...",
    "\n...\n",
    "a",
    "b: c",
    "\n- a",
    "a: b\n",
    "x: |\n  y\n",
    "ä",
    "\u{2028}",
    "\u{85}",
    "\r",
    "\r\n",
    "\u{feff}",
    "yes",
    "0x1f",
    "~",
    "\n%YAML 1.1\n",
    "\n%TAG ! a:\n",
    "1.1",
    "!",
    "---",
    "\r---\r",
];

/// Returns a part of a document with pieces put in, taken out or moved.
pub(super) fn mutant(document: &str, dice: &mut Dice) -> String {
    let lines: Vec<&str> = document.split_inclusive('\n').collect();
    let from = dice.below(lines.len());
    let most = dice.between(1, 12);
    let mut letters: Vec<char> =
        lines.iter().skip(from).take(most).flat_map(|line| line.chars()).collect();
    letters.truncate(800);
    for _ in 0..dice.between(1, 3) {
        let at = dice.below(letters.len() + 1);
        let end = (at + dice.between(1, 6)).min(letters.len());
        match dice.below(4) {
            0 => drop(letters.drain(at..end)),
            1 => {
                let copy = letters[at..end].to_vec();
                let to = dice.below(letters.len() + 1);
                letters.splice(to..to, copy);
            }
            _ => {
                letters.splice(at..at, dice.choose(PIECES).chars());
            }
        }
    }
    letters.into_iter().collect()
}

/// Returns a text of pieces.
pub(super) fn pieces(dice: &mut Dice) -> String {
    (0..dice.between(1, 14)).map(|_| dice.choose(PIECES)).collect()
}
