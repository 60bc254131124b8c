//! The layout of a picture. Each event has a strip of its own height, and within it each place has
//! its own column, so that nothing can overlap. A text that is longer than its column is wrapped,
//! then cut, and shown in full in a tooltip.

use uturn_model::Place;
use uturn_model::route::{Direction, Leg};

use super::fit::{tail, wrapped};
use super::sequence::{Event, Note, NoteStyle, Rating, Sequence};
use super::shape::{Arrow, Frame, Label, Line, Shape};
use crate::words;
use crate::xml::cut;

/// The width of a character in the text of notes, which is monospaced.
const CHAR: f64 = 6.35;
const LINE: f64 = 14.0;
const MARGIN: f64 = 20.0;
/// The least width of a column.
const COLUMN: f64 = 226.0;
/// The space between neighbouring notes.
const GAP: f64 = 18.0;

/// A picture that grows downwards.
pub(super) struct Canvas {
    shapes: Vec<Shape>,
    width: f64,
    column: f64,
    y: f64,
}

impl Canvas {
    pub(super) fn new(sequences: &[Sequence<'_>]) -> Self {
        let longest =
            sequences.iter().flat_map(|sequence| &sequence.events).map(|event| match event {
                Event::Packet { leg: Some(leg), .. } => {
                    let length = |address: std::net::SocketAddr| address.to_string().len() + 6;
                    length(leg.src).max(length(leg.dst))
                }
                Event::Note { note, .. } => {
                    note.lines.iter().map(|line| line.chars().count() + 1).max().unwrap_or(0)
                }
                Event::Packet { .. } => 0,
            });
        let longest = longest.max().unwrap_or(0) as f64 * CHAR + 16.0 + GAP;
        let column = longest.max(COLUMN).ceil();
        let places = sequences.iter().map(|sequence| sequence.places.len());
        let most = places.max().unwrap_or(1).max(3);
        let width = (most as f64 * column + 2.0 * MARGIN).ceil();
        Self { shapes: Vec::new(), width, column, y: MARGIN }
    }

    pub(super) fn width(&self) -> f64 {
        self.width
    }

    pub(super) fn height(&self) -> f64 {
        self.y.ceil()
    }

    pub(super) fn into_shapes(self) -> Vec<Shape> {
        self.shapes
    }

    /// Adds the heading of the picture.
    pub(super) fn heading(&mut self, title: &str, verdicts: &[String], codes: &[String]) {
        self.y += 14.0;
        self.line(title, "ut-h1", 9.2);
        self.y += 6.0;
        for verdict in verdicts {
            self.y += 16.0;
            self.line(verdict, "ut-strong", 7.4);
        }
        if !codes.is_empty() {
            self.y += 16.0;
            self.line(&codes.join(" "), "ut-badtext", 7.4);
        }
        self.y += 18.0;
    }

    /// Adds a line of text below everything else.
    pub(super) fn remark(&mut self, text: &str) {
        self.y += 16.0;
        self.line(text, "ut-dim", 7.0);
        self.y += 12.0;
    }

    /// Adds a sequence, from its heading to its end.
    pub(super) fn sequence(&mut self, sequence: &Sequence<'_>) {
        self.sequence_heading(sequence);
        for step in &sequence.names {
            self.y += 18.0;
            self.line(&format!("name: {}", step.why), "ut-mono", CHAR);
            self.y += LINE;
            let by = format!("      {} {}", words::short_rule(&step.by), step.by.origin());
            self.line(&by, "ut-mono ut-dim", CHAR);
        }
        self.y += 14.0;
        let top = self.y;
        let below = self.shapes.len();
        for (column, place) in sequence.places.iter().enumerate() {
            self.place(column, place, top);
        }
        self.y += 46.0;
        for event in &sequence.events {
            match event {
                Event::Packet { from, to, direction, leg, is_turned } => {
                    let arrow = match direction {
                        _ if *is_turned => Arrow::Turn,
                        Direction::Out => Arrow::Out,
                        Direction::Back => Arrow::Back,
                    };
                    self.packet(*from, *to, arrow, *leg);
                }
                Event::Note { at, note } => self.note(*at, note),
            }
        }
        // The end is shown at the client, which waits for it.
        if !sequence.places.is_empty() {
            let style = match sequence.rating {
                Rating::Bad => NoteStyle::Bad,
                Rating::Slow => NoteStyle::Slow,
                Rating::Fine => NoteStyle::Fine,
            };
            let head = format!("end: {}", sequence.end);
            self.note(0, &Note { style, head, lines: Vec::new(), by: None });
        }
        self.y += 6.0;
        // The lines are drawn behind everything else, now that their length is known.
        let lifelines: Vec<Shape> = (0..sequence.places.len())
            .map(|column| Shape::Lifeline { x: self.x(column), from: top + 40.0, to: self.y })
            .collect();
        self.shapes.splice(below..below, lifelines);
        self.y += 22.0;
    }

    fn sequence_heading(&mut self, sequence: &Sequence<'_>) {
        let (frame, class) = match sequence.rating {
            Rating::Bad => ("ut-bad", "ut-h2 ut-badtext"),
            Rating::Slow => ("ut-slow", "ut-h2 ut-slowtext"),
            Rating::Fine => ("ut-fine", "ut-h2 ut-finetext"),
        };
        let width = self.width - 2.0 * MARGIN;
        let frame = Frame { class: frame, x: MARGIN, y: self.y, width, height: 30.0 };
        let mut heading = sequence.heading.clone();
        if !sequence.because.is_empty() {
            heading.push_str(&format!(" · {}", sequence.because));
        }
        if let Some(merged) = &sequence.merged {
            heading.push_str(&format!(" · {merged}"));
        }
        let most = ((width - 24.0) / 7.8) as usize;
        let (text, tooltip) = cut_with_tooltip(&heading, most);
        let (x, y) = (MARGIN + 12.0, self.y + 20.0);
        let line = Line { class, x, y, is_centred: false, text };
        self.label(Label { tooltip, frame: Some(frame), lines: vec![line] });
        self.y += 30.0;
    }

    /// Returns the middle of a place's column.
    fn x(&self, column: usize) -> f64 {
        MARGIN + self.column * (column as f64 + 0.5)
    }

    fn place(&mut self, column: usize, place: &Place, y: f64) {
        let (kind, class, name) = match place {
            Place::Dns => ("NAME", "ut-place", "name servers".to_owned()),
            Place::Pod(name) => ("POD", "ut-pod", name.to_string()),
            Place::Node(name) => ("NODE", "ut-node", name.to_string()),
            Place::Fabric => ("NETWORK", "ut-place", "between the nodes".to_owned()),
            Place::LoadBalancer(name) => ("LOAD BALANCER", "ut-lb", name.to_string()),
            Place::Outside => ("OUTSIDE", "ut-place", "beyond the cluster".to_owned()),
        };
        let width = self.column - GAP;
        let x = self.x(column);
        let (name, tooltip) = cut_with_tooltip(&name, (width / 7.9) as usize);
        let line = |class, down, text| Line { class, x, y: y + down, is_centred: true, text };
        self.label(Label {
            tooltip,
            frame: Some(Frame { class, x: x - width / 2.0, y, width, height: 40.0 }),
            lines: vec![line("ut-kind", 14.0, kind.to_owned()), line("ut-strong", 31.0, name)],
        });
    }

    fn packet(&mut self, from: usize, to: usize, arrow: Arrow, leg: Option<Leg>) {
        let side = if to > from { 1.0 } else { -1.0 };
        if let Some(leg) = leg {
            // The text is beside the arrow's start, before the next place.
            let x = self.x(from) + side * self.column / 2.0;
            let most = ((self.column - 12.0) / CHAR) as usize;
            let whole = leg.to_string();
            let lines = if whole.chars().count() <= most {
                vec![whole]
            } else {
                vec![format!("from {}", leg.src), format!("to {}", leg.dst)]
            };
            for text in lines {
                self.y += LINE;
                let (text, tooltip) = cut_with_tooltip(&text, most);
                let line = Line { class: "ut-mono", x, y: self.y, is_centred: true, text };
                self.label(Label { tooltip, frame: None, lines: vec![line] });
            }
        }
        self.y += 8.0;
        self.shapes.push(Shape::Arrow {
            arrow,
            y: self.y,
            from: self.x(from) + side * 3.0,
            to: self.x(to) - side * 3.0,
        });
        self.y += 10.0;
    }

    fn note(&mut self, column: usize, note: &Note<'_>) {
        let width = self.column - GAP;
        let most = ((width - 14.0) / CHAR) as usize;
        let mut rows: Vec<(String, &'static str)> = Vec::new();
        let head = wrapped(&note.head, most, 3);
        rows.extend(head.into_iter().map(|row| (row, "ut-mono ut-strong")));
        rows.extend(note.lines.iter().map(|line| (cut(line, most), "ut-mono")));
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
        let class = match note.style {
            NoteStyle::Plain => "ut-note",
            NoteStyle::Change => "ut-change",
            NoteStyle::Slow => "ut-slow",
            NoteStyle::Bad => "ut-bad",
            NoteStyle::Fine => "ut-fine",
        };
        let height = rows.len() as f64 * LINE + 10.0;
        let left = self.x(column) - width / 2.0;
        self.y += 4.0;
        let first = self.y + 2.0 + LINE;
        let lines = rows.into_iter().enumerate().map(|(row, (text, class))| {
            let y = first + row as f64 * LINE;
            Line { class, x: left + 7.0, y, is_centred: false, text }
        });
        let lines = lines.collect();
        self.label(Label {
            tooltip: Some(whole.join("\n")),
            frame: Some(Frame { class, x: left, y: self.y, width, height }),
            lines,
        });
        self.y += height + 6.0;
    }

    /// Adds the legend of the arrows.
    pub(super) fn legend(&mut self) {
        self.y += 4.0;
        let mut x = MARGIN;
        for arrow in Arrow::ALL {
            self.shapes.push(Shape::Arrow { arrow, y: self.y - 4.0, from: x, to: x + 44.0 });
            let text = arrow.meaning().to_owned();
            let next = x + 54.0 + text.len() as f64 * 7.0 + 24.0;
            let line = Line { class: "ut-dim", x: x + 54.0, y: self.y, is_centred: false, text };
            self.label(Label { tooltip: None, frame: None, lines: vec![line] });
            x = next;
        }
        self.y += MARGIN;
    }

    /// Adds a line of text over the whole width.
    fn line(&mut self, text: &str, class: &'static str, char: f64) {
        let most = ((self.width - 2.0 * MARGIN) / char) as usize;
        let (text, tooltip) = cut_with_tooltip(text, most);
        let line = Line { class, x: MARGIN, y: self.y, is_centred: false, text };
        self.label(Label { tooltip, frame: None, lines: vec![line] });
    }

    fn label(&mut self, label: Label) {
        self.shapes.push(Shape::Label(label));
    }
}

/// Cuts a text to at most `most` characters. Also returns the whole text if it was cut.
fn cut_with_tooltip(text: &str, most: usize) -> (String, Option<String>) {
    let short = cut(text, most);
    let is_cut = short != text;
    (short, is_cut.then(|| text.to_owned()))
}
