//! The elements of a picture; the template `picture.svg` writes them.

use std::fmt;

/// One element, at its place.
pub(super) enum Shape {
    /// The vertical line of a place.
    Lifeline { x: f64, from: f64, to: f64 },
    /// The arrow of a packet.
    Arrow { arrow: Arrow, y: f64, from: f64, to: f64 },
    /// Text, in a frame or without one.
    Label(Label),
}

/// Lines of text that belong together.
#[derive(Default)]
pub(super) struct Label {
    /// The whole text, if the lines are cut.
    pub(super) tooltip: Option<String>,
    pub(super) frame: Option<Frame>,
    pub(super) lines: Vec<Line>,
}

/// A rectangle around text.
pub(super) struct Frame {
    pub(super) class: &'static str,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A line of text.
pub(super) struct Line {
    pub(super) class: &'static str,
    pub(super) x: f64,
    pub(super) y: f64,
    /// Whether `x` is the middle of the line rather than its start.
    pub(super) is_centred: bool,
    pub(super) text: String,
}

/// The kind of a packet's arrow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrow {
    /// On the way out.
    Out,
    /// On the way back.
    Back,
    /// A U-turn.
    Turn,
}

impl Arrow {
    pub(super) const ALL: [Self; 3] = [Self::Out, Self::Back, Self::Turn];

    /// Returns the text of the legend.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Out => "the way out",
            Self::Back => "the way back",
            Self::Turn => "turned, where it should not go",
        }
    }
}

impl fmt::Display for Arrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Out => "out",
            Self::Back => "back",
            Self::Turn => "turn",
        })
    }
}
