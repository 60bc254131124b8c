//! `uturn explain`: the page of a code or mechanism.

use uturn_cli::{Failure, Printer, Status, print};
use uturn_diagnose::{Code, pages};
use uturn_model::Mechanism;
use uturn_report::schema::explain::Explained;

use crate::cli::Explain;

pub(super) fn run(args: &Explain, printer: &Printer) -> Result<Status, Failure> {
    let explained = match &args.word {
        None => Explained::all(),
        Some(word) => Explained::of(word).ok_or_else(|| Failure::usage(unknown(word)))?,
    };
    let text = |_| explained.page.map_or_else(list, str::to_owned);
    print(printer, args.output, text, || &explained);
    Ok(Status::Clean)
}

/// Names the pages that contain a word, first those that have the word in their title.
fn unknown(word: &str) -> String {
    let sought = word.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&sought);
    let (titled, others): (Vec<Code>, Vec<Code>) = Code::all()
        .filter(|code| pages::find(&code.to_string()).is_some_and(has))
        .partition(|code| has(code.title()));
    let mut text = format!("{word:?} is neither a code nor a mechanism");
    for code in titled.iter().chain(&others).take(MAX_NAMED) {
        text.push_str(&format!("\n  {code}  {}", code.title()));
    }
    if titled.is_empty() && others.is_empty() {
        text + ": uturn explain lists all"
    } else {
        text.replacen("mechanism\n", "mechanism; pages that mention it:\n", 1)
    }
}

/// The largest number of pages that are named.
const MAX_NAMED: usize = 8;

fn list() -> String {
    let mut text = String::from("Codes of findings:\n");
    for code in Code::all() {
        text.push_str(&format!("  {code}  {}\n", code.title()));
    }
    text.push_str("\nMechanisms:\n");
    for mechanism in Mechanism::ALL {
        text.push_str(&format!("  {mechanism}\n"));
    }
    text
}
