//! `trace -o svg`: the route of a packet as a sequence diagram.
//!
//! Places are side by side, time runs down. The way out is a solid line and the way back a dashed
//! one, each with the packet's addresses; a translation, pick or drop is a note below its place,
//! with the rule that decided. Routes that end alike are one sequence: the likeliest of them.
//! `sequence` decides what is shown, `layout` places it, and the template `picture.svg` writes it.

mod fit;
mod layout;
mod retries;
mod sequence;
mod shape;
#[cfg(test)]
mod tests;

use askama::Template;
use uturn_model::{Flow, Verdict};

use crate::markup::Markup;
use crate::words;
use layout::Canvas;
use sequence::Sequence;
use shape::{Arrow, Shape};

/// The largest number of sequences in a picture: of a document, and of a page.
const MAX_SEQUENCES: usize = 12;
const MAX_IN_PAGE: usize = 4;
/// The largest number of outcomes in the heading. Retries can have very many.
const MAX_ENDS: usize = 6;

#[derive(Template)]
#[template(path = "picture.svg")]
struct Picture<'a> {
    /// The prefix of all ids in the picture.
    name: &'a str,
    title: String,
    /// The picture in words, for readers who do not see it.
    description: String,
    style: Option<Markup>,
    width: f64,
    height: f64,
    arrows: [Arrow; 3],
    shapes: Vec<Shape>,
}

/// Draws a flow as a document of its own.
pub fn trace(flow: &Flow, verdicts: &[Verdict], codes: &[String]) -> String {
    let picture = Picture {
        style: Some(Markup::own(STYLE)),
        ..Picture::new(flow, verdicts, codes, "u", MAX_SEQUENCES)
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", Markup::of(&picture))
}

/// Draws a flow for a page that has [`STYLE`]. Each picture of a page needs a name of its own.
pub(crate) fn picture(flow: &Flow, verdicts: &[Verdict], codes: &[String], name: &str) -> Markup {
    Markup::of(&Picture::new(flow, verdicts, codes, name, MAX_IN_PAGE))
}

impl<'a> Picture<'a> {
    fn new(
        flow: &Flow,
        verdicts: &[Verdict],
        codes: &[String],
        name: &'a str,
        most: usize,
    ) -> Self {
        let sequences = sequence::sequences(verdicts);
        let title = format!("{} → {} ({})", flow.from, flow.to, flow.protocol);
        let verdicts: Vec<String> = verdicts.iter().map(in_words).collect();
        let drawn = &sequences[..most.min(sequences.len())];
        let mut canvas = Canvas::new(drawn);
        canvas.heading(&title, &verdicts, codes);
        for sequence in drawn {
            canvas.sequence(sequence);
        }
        match sequences.len() - drawn.len() {
            0 => {}
            1 => canvas.remark("1 more way is not drawn: -o text shows it"),
            more => canvas.remark(&format!("{more} more ways are not drawn: -o text shows them")),
        }
        canvas.legend();
        Self {
            name,
            description: description(&verdicts, drawn),
            title,
            style: None,
            width: canvas.width(),
            height: canvas.height(),
            arrows: Arrow::ALL,
            shapes: canvas.into_shapes(),
        }
    }
}

fn in_words(verdict: &Verdict) -> String {
    let outcomes = words::verdict(verdict, MAX_ENDS);
    if verdict.conditions.is_empty() {
        outcomes
    } else {
        format!("if {}: {outcomes}", verdict.conditions.join(" and "))
    }
}

fn description(verdicts: &[String], sequences: &[Sequence<'_>]) -> String {
    let mut text = format!("{}.", verdicts.join("; "));
    for sequence in sequences {
        text.push_str(&format!(" {}: {}.", sequence.heading, sequence.in_words()));
    }
    text
}

/// Colours and strokes, light and dark. No variables: not every viewer knows them.
pub const STYLE: &str = "\
.ut{background:#fff;font-family:ui-sans-serif,system-ui,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif;max-width:100%;height:auto}\
.ut-bg{fill:#fff}.ut text{fill:#1b1f24;font-size:12px}\
.ut .ut-mono{font-family:ui-monospace,'Liberation Mono','DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:10.5px}\
.ut .ut-h1{font-size:16px;font-weight:700}.ut .ut-h2{font-size:13px;font-weight:700}\
.ut .ut-dim{fill:#59636e}.ut .ut-kind{fill:#59636e;font-size:10px;letter-spacing:.06em}\
.ut .ut-strong{font-weight:700}\
.ut .ut-badtext{fill:#b42318}.ut .ut-slowtext{fill:#8a5300}.ut .ut-finetext{fill:#116329}\
.ut-life{stroke:#c9d1d9;stroke-width:1;stroke-dasharray:2 4}\
.ut-place{fill:#f6f8fa;stroke:#8c959f}.ut-pod{fill:#e7f1ff;stroke:#3572b0}\
.ut-node{fill:#eef0f2;stroke:#6e7781}.ut-lb{fill:#fff4dd;stroke:#b07c10}\
.ut-note{fill:#fff;stroke:#c9d1d9}.ut-change{fill:#f4f8ff;stroke:#3572b0}\
.ut-bad{fill:#ffefed;stroke:#c62828;stroke-width:1.5}.ut-slow{fill:#fff6e3;stroke:#b07c10;stroke-width:1.5}\
.ut-fine{fill:#e9f9ee;stroke:#1a7f37;stroke-width:1.5}\
.ut-out{stroke:#0b62c4;stroke-width:2;fill:none}.ut-back{stroke:#1a7f37;stroke-width:2;stroke-dasharray:7 4;fill:none}\
.ut-turn{stroke:#c62828;stroke-width:3;stroke-dasharray:7 4;fill:none}\
.ut-outhead{fill:#0b62c4}.ut-backhead{fill:#1a7f37}.ut-turnhead{fill:#c62828}\
@media (prefers-color-scheme:dark){\
.ut{background:#14181d}.ut-bg{fill:#14181d}.ut text{fill:#e6eaef}\
.ut .ut-dim,.ut .ut-kind{fill:#9aa5b1}\
.ut .ut-badtext{fill:#ff9d94}.ut .ut-slowtext{fill:#f0c060}.ut .ut-finetext{fill:#7ee2a0}\
.ut-life{stroke:#3a434d}.ut-place{fill:#1d232a;stroke:#768390}.ut-pod{fill:#16283d;stroke:#6cb0ff}\
.ut-node{fill:#232a32;stroke:#909dab}.ut-lb{fill:#33280f;stroke:#e0b040}\
.ut-note{fill:#1a2027;stroke:#454f5a}.ut-change{fill:#15222f;stroke:#6cb0ff}\
.ut-bad{fill:#3a1715;stroke:#ff7b72}.ut-slow{fill:#33280f;stroke:#e0b040}.ut-fine{fill:#12301c;stroke:#5fd38a}\
.ut-out{stroke:#6cb0ff}.ut-back{stroke:#5fd38a}.ut-turn{stroke:#ff7b72}\
.ut-outhead{fill:#6cb0ff}.ut-backhead{fill:#5fd38a}.ut-turnhead{fill:#ff7b72}}";
