//! `trace -o svg`: the packet's way as a picture.
//!
//! Places stand side by side, time runs down. The way out is a solid line and the way back a
//! dashed one, each with the packet's addresses; what is translated, picked or thrown away is
//! a note below its place, with the rule that decided. Ways that end alike are one picture:
//! the likeliest of them. `sequence` decides what is shown, `layout` where it stands.

mod layout;
mod retries;
mod sequence;

use uturn_model::{Flow, Verdict};

use crate::words;
use crate::xml::escape;
use layout::Canvas;
use sequence::Tale;

/// More ways than these are not drawn, nor in a page of many pictures.
const MOST_WAYS: usize = 12;
const MOST_IN_PAGE: usize = 4;
/// So many endings are named above the ways; retries can end in very many.
const MOST_ENDS: usize = 6;

/// A document of its own.
pub fn trace(flow: &Flow, verdicts: &[Verdict], codes: &[String]) -> String {
    let style = format!("<style>{STYLE}</style>");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}",
        whole(flow, verdicts, codes, ("u", &style), MOST_WAYS)
    )
}

/// The same inside a page that has [`STYLE`]; no two pictures of a page have the same name.
pub fn picture(flow: &Flow, verdicts: &[Verdict], codes: &[String], name: &str) -> String {
    whole(flow, verdicts, codes, (name, ""), MOST_IN_PAGE)
}

fn whole(
    flow: &Flow,
    verdicts: &[Verdict],
    codes: &[String],
    (name, style): (&str, &str),
    most: usize,
) -> String {
    let tales = sequence::tales(verdicts);
    let title = format!("{} → {} ({})", flow.from, flow.to, flow.protocol);
    let said: Vec<String> = verdicts
        .iter()
        .map(|one| match one.conditions.is_empty() {
            true => words::verdict(one, MOST_ENDS),
            false => {
                let said = words::verdict(one, MOST_ENDS);
                format!("if {}: {said}", one.conditions.join(" and "))
            }
        })
        .collect();
    let mut canvas = Canvas::new(&tales, name);
    canvas.heading(&title, &said, codes);
    for tale in tales.iter().take(most) {
        canvas.tale(tale);
    }
    if tales.len() > most {
        let more = tales.len() - most;
        canvas.remark(&format!("{more} more ways are not drawn: -o text tells them"));
    }
    canvas.legend();
    let about = about(&said, &tales[..most.min(tales.len())]);
    let (width, height) = canvas.size();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ut\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-labelledby=\"{name}-t {name}-d\">\n\
         <title id=\"{name}-t\">{}</title>\n<desc id=\"{name}-d\">{}</desc>\n{style}\
         {}</svg>\n",
        escape(&title),
        escape(&about),
        canvas.drawn(),
    )
}

/// The picture in words, for those who do not see it.
fn about(said: &[String], tales: &[Tale<'_>]) -> String {
    let mut text = format!("{}.", said.join("; "));
    for tale in tales {
        text.push_str(&format!(" {}: {}.", tale.heading, tale.in_words()));
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
