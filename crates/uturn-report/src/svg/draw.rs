//! Where everything stands. Each event has a strip of its own height, and within it a place
//! has its own column: nothing can meet. What is longer than its column is wrapped, then cut,
//! and whole in a tooltip.

use uturn_model::route::{Leg, Way};
use uturn_model::{Place, Step};

use super::story::{Event, Mood, Note, NoteKind, Tale};
use crate::words;
use crate::xml::{cut, escape};

/// What a character takes in the text of notes, which is monospaced.
const CHAR: f64 = 6.35;
const LINE: f64 = 14.0;
const MARGIN: f64 = 20.0;
/// A column is at least so wide.
const COLUMN: f64 = 226.0;
/// What stays free between neighbouring notes.
const GAP: f64 = 18.0;

pub(super) struct Canvas {
    name: String,
    drawn: String,
    width: f64,
    column: f64,
    y: f64,
}

impl Canvas {
    pub(super) fn new(tales: &[Tale<'_>], name: &str) -> Self {
        let longest = tales.iter().flat_map(|one| &one.events).map(|event| match event {
            Event::Go { leg: Some(leg), .. } => [leg.src, leg.dst]
                .map(|one| one.to_string().len() + 6)
                .into_iter()
                .max()
                .unwrap_or(0),
            Event::Note { note, .. } => {
                note.lines.iter().map(|line| line.chars().count() + 1).max().unwrap_or(0)
            }
            Event::Go { .. } => 0,
        });
        let longest = longest.max().unwrap_or(0) as f64 * CHAR + 16.0 + GAP;
        let column = longest.max(COLUMN).ceil();
        let most = tales.iter().map(|one| one.places.len()).max().unwrap_or(1).max(3);
        let width = (most as f64 * column + 2.0 * MARGIN).ceil();
        Self { name: name.to_owned(), drawn: String::new(), width, column, y: MARGIN }
    }

    pub(super) fn size(&self) -> (f64, f64) {
        (self.width, self.y.ceil())
    }

    pub(super) fn drawn(self) -> String {
        let mut heads = String::new();
        for kind in ["out", "back", "turn"] {
            heads.push_str(&format!(
                "<marker id=\"{0}-{kind}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" \
                 markerWidth=\"11\" markerHeight=\"11\" markerUnits=\"userSpaceOnUse\" \
                 orient=\"auto\"><path class=\"ut-{kind}head\" d=\"M0 0L10 5L0 10z\"/></marker>\n",
                self.name
            ));
        }
        format!(
            "<defs>\n{heads}</defs>\n<rect class=\"ut-bg\" width=\"{}\" height=\"{}\"/>\n{}",
            self.width,
            self.y.ceil(),
            self.drawn
        )
    }

    /// What it is all about.
    pub(super) fn heading(&mut self, title: &str, said: &[String], codes: &[String]) {
        self.y += 14.0;
        self.line(title, "ut-h1", 9.2);
        self.y += 6.0;
        for one in said {
            self.y += 16.0;
            self.line(one, "ut-strong", 7.4);
        }
        if !codes.is_empty() {
            self.y += 16.0;
            self.line(&codes.join(" "), "ut-badtext", 7.4);
        }
        self.y += 18.0;
    }

    /// A line of text over the whole width.
    fn line(&mut self, text: &str, class: &str, char: f64) {
        let most = ((self.width - 2.0 * MARGIN) / char) as usize;
        self.text(MARGIN, self.y, text, most, class, "start");
    }

    pub(super) fn remark(&mut self, text: &str) {
        self.y += 16.0;
        self.line(text, "ut-dim", 7.0);
        self.y += 12.0;
    }

    /// One way, from heading to end.
    pub(super) fn tale(&mut self, tale: &Tale<'_>) {
        let (mood, class) = match tale.mood {
            Mood::Bad => ("bad", "ut-h2 ut-badtext"),
            Mood::Slow => ("slow", "ut-h2 ut-slowtext"),
            Mood::Fine => ("fine", "ut-h2 ut-finetext"),
        };
        let wide = self.width - 2.0 * MARGIN;
        self.rect(MARGIN, self.y, wide, 30.0, &format!("ut-{mood}"));
        self.y += 20.0;
        let mut heading = tale.heading.clone();
        if !tale.because.is_empty() {
            heading.push_str(&format!(" · {}", tale.because));
        }
        if let Some(folded) = &tale.folded {
            heading.push_str(&format!(" · {folded}"));
        }
        self.text(MARGIN + 12.0, self.y, &heading, ((wide - 24.0) / 7.8) as usize, class, "start");
        self.y += 10.0;
        for step in &tale.names {
            self.y += 18.0;
            self.line(&format!("name: {}", step.why), "ut-mono", CHAR);
            self.y += LINE;
            self.line(&format!("      {}", by(step)), "ut-mono ut-dim", CHAR);
        }
        self.y += 14.0;
        let heads = self.y;
        let lives = self.drawn.len();
        for (at, place) in tale.places.iter().enumerate() {
            self.place(at, place, heads);
        }
        self.y += 46.0;
        for event in &tale.events {
            match event {
                Event::Go { from, to, way, leg, turned } => {
                    self.arrow(*from, *to, *way, *leg, *turned);
                }
                Event::Note { at, note } => self.note(*at, note),
            }
        }
        // The end is told where the client is, who waits for it.
        if !tale.places.is_empty() {
            let kind = match tale.mood {
                Mood::Bad => NoteKind::Bad,
                Mood::Slow => NoteKind::Slow,
                Mood::Fine => NoteKind::Fine,
            };
            let head = format!("end: {}", tale.end);
            self.note(0, &Note { kind, head, lines: Vec::new(), by: None });
        }
        self.y += 6.0;
        // Drawn below everything else, now that their length is known.
        let mut lines = String::new();
        for at in 0..tale.places.len() {
            let x = self.x(at);
            lines.push_str(&format!(
                "<path class=\"ut-life\" d=\"M{x} {}V{}\"/>\n",
                heads + 40.0,
                self.y
            ));
        }
        self.drawn.insert_str(lives, &lines);
        self.y += 22.0;
    }

    /// The middle of a place's column.
    fn x(&self, at: usize) -> f64 {
        MARGIN + self.column * (at as f64 + 0.5)
    }

    fn place(&mut self, at: usize, place: &Place, y: f64) {
        let (kind, class, name) = match place {
            Place::Dns => ("NAME", "place", "name servers".to_owned()),
            Place::Pod(name) => ("POD", "pod", name.to_string()),
            Place::Node(name) => ("NODE", "node", name.to_string()),
            Place::Fabric => ("NETWORK", "place", "between the nodes".to_owned()),
            Place::LoadBalancer(name) => ("LOAD BALANCER", "lb", name.to_string()),
            Place::Outside => ("OUTSIDE", "place", "beyond the cluster".to_owned()),
        };
        let wide = self.column - GAP;
        let x = self.x(at);
        self.rect(x - wide / 2.0, y, wide, 40.0, &format!("ut-{class}"));
        self.text(x, y + 14.0, kind, 30, "ut-kind", "middle");
        self.text(x, y + 31.0, &name, (wide / 7.9) as usize, "ut-strong", "middle");
    }

    fn arrow(&mut self, from: usize, to: usize, way: Way, leg: Option<Leg>, turned: bool) {
        let kind = match way {
            _ if turned => "turn",
            Way::Out => "out",
            Way::Back => "back",
        };
        let side = if to > from { 1.0 } else { -1.0 };
        if let Some(leg) = leg {
            // Beside its start, before the next place.
            let x = self.x(from) + side * self.column / 2.0;
            let most = ((self.column - 12.0) / CHAR) as usize;
            let whole = leg.to_string();
            let lines = match whole.chars().count() <= most {
                true => vec![whole],
                false => vec![format!("from {}", leg.src), format!("to {}", leg.dst)],
            };
            for text in lines {
                self.y += LINE;
                self.text(x, self.y, &text, most, "ut-mono", "middle");
            }
        }
        self.y += 8.0;
        self.drawn.push_str(&format!(
            "<path class=\"ut-{kind}\" marker-end=\"url(#{}-{kind})\" d=\"M{} {}H{}\"/>\n",
            self.name,
            self.x(from) + side * 3.0,
            self.y,
            self.x(to) - side * 3.0
        ));
        self.y += 10.0;
    }

    fn note(&mut self, at: usize, note: &Note<'_>) {
        let wide = self.column - GAP;
        let most = ((wide - 14.0) / CHAR) as usize;
        let mut rows: Vec<(String, &str)> = Vec::new();
        for row in wrapped(&note.head, most, 3) {
            rows.push((row, "ut-mono ut-strong"));
        }
        for line in &note.lines {
            rows.push((cut(line, most), "ut-mono"));
        }
        let mut whole = vec![note.head.clone()];
        whole.extend(note.lines.iter().cloned());
        if let Some(step) = note.by {
            let rule = words::short_rule(&step.by);
            rows.extend(wrapped(&rule, most, 2).into_iter().map(|row| (row, "ut-mono ut-dim")));
            let source = step.by.origin().to_string();
            if *source != *step.by.rule() {
                rows.push((tail(&source, most), "ut-mono ut-dim"));
            }
            whole.push(step.by.to_string());
        }
        let class = match note.kind {
            NoteKind::Plain => "ut-note",
            NoteKind::Change => "ut-change",
            NoteKind::Slow => "ut-slow",
            NoteKind::Bad => "ut-bad",
            NoteKind::Fine => "ut-fine",
        };
        let high = rows.len() as f64 * LINE + 10.0;
        let left = self.x(at) - wide / 2.0;
        self.drawn.push_str(&format!("<g><title>{}</title>\n", escape(&whole.join("\n"))));
        self.y += 4.0;
        self.rect(left, self.y, wide, high, class);
        let mut y = self.y + 2.0;
        for (row, class) in rows {
            y += LINE;
            self.plain_text(left + 7.0, y, &row, class, "start");
        }
        self.drawn.push_str("</g>\n");
        self.y += high + 6.0;
    }

    pub(super) fn legend(&mut self) {
        self.y += 4.0;
        let mut x = MARGIN;
        for (kind, what) in [
            ("out", "the way out"),
            ("back", "the way back"),
            ("turn", "turned, where it should not go"),
        ] {
            self.drawn.push_str(&format!(
                "<path class=\"ut-{kind}\" marker-end=\"url(#{}-{kind})\" d=\"M{x} {}h44\"/>\n",
                self.name,
                self.y - 4.0
            ));
            self.plain_text(x + 54.0, self.y, what, "ut-dim", "start");
            x += 54.0 + what.len() as f64 * 7.0 + 24.0;
        }
        self.y += MARGIN;
    }

    fn rect(&mut self, x: f64, y: f64, wide: f64, high: f64, class: &str) {
        self.drawn.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" rx=\"5\"/>\n"
        ));
    }

    /// A text that is cut where it is too long, and then whole in its tooltip.
    fn text(&mut self, x: f64, y: f64, text: &str, most: usize, class: &str, anchor: &str) {
        let short = cut(text, most);
        if short == text {
            return self.plain_text(x, y, text, class, anchor);
        }
        self.drawn.push_str(&format!("<g><title>{}</title>", escape(text)));
        self.plain_text(x, y, &short, class, anchor);
        self.drawn.push_str("</g>\n");
    }

    fn plain_text(&mut self, x: f64, y: f64, text: &str, class: &str, anchor: &str) {
        let anchor = match anchor {
            "start" => String::new(),
            other => format!(" text-anchor=\"{other}\""),
        };
        self.drawn.push_str(&format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor} xml:space=\"preserve\">{}</text>\n",
            escape(text)
        ));
    }
}

fn by(step: &Step) -> String {
    format!("{} {}", words::short_rule(&step.by), step.by.origin())
}

/// The end of a text: of a path, that says most.
fn tail(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let rest: String = text.chars().skip(count + 1 - most).collect();
    format!("…{rest}")
}

/// Words in rows that fit, at most so many; a word that is longer than a row is broken.
fn wrapped(text: &str, most: usize, rows: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut row = String::new();
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let used = row.chars().count();
            let space = usize::from(used > 0);
            if used + space + word.len() <= most {
                if space > 0 {
                    row.push(' ');
                }
                row.extend(&word);
                break;
            }
            if used > 0 {
                all.push(std::mem::take(&mut row));
                continue;
            }
            row.extend(word.drain(..most.max(1)));
            all.push(std::mem::take(&mut row));
        }
    }
    if !row.is_empty() {
        all.push(row);
    }
    if all.len() > rows {
        all.truncate(rows);
        if let Some(last) = all.last_mut() {
            *last = cut(&format!("{last} …"), most);
            if !last.ends_with('…') {
                last.push('…');
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit() {
        for (text, most, rows) in [
            ("picks 10.0.0.11:30080 on node n1, keeps the client's address", 30, 3),
            ("a-word-that-is-much-longer-than-any-row-can-ever-be x", 10, 2),
            ("", 10, 2),
            ("ab", 1, 9),
        ] {
            let all = wrapped(text, most, rows);
            assert!(all.len() <= rows, "{all:?}");
            assert!(all.iter().all(|row| row.chars().count() <= most), "{all:?}");
        }
        assert_eq!(wrapped("one two three", 7, 2), ["one two", "three"]);
        assert!(wrapped("one two three four", 7, 2)[1].ends_with('…'));
        assert_eq!(tail("examples/shop/nodes.yaml:5", 12), "…des.yaml:5".replace("…des", "…odes"));
    }
}
