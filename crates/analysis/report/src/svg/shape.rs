//! What a picture consists of; `picture.svg` writes it.

use std::fmt;

/// One element, at its place.
pub(super) enum Shape {
    /// A place's line from top to bottom.
    Lifeline { x: f64, from: f64, to: f64 },
    /// A packet on its way.
    Arrow { arrow: Arrow, y: f64, from: f64, to: f64 },
    /// Text, in a frame or without one.
    Label(Label),
}

/// Text that belongs together.
#[derive(Default)]
pub(super) struct Label {
    /// The whole text, where the lines are cut.
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
    /// Whether `x` is its middle; otherwise it is its start.
    pub(super) is_centred: bool,
    pub(super) text: String,
}

/// How a packet's arrow looks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrow {
    /// On the way out.
    Out,
    /// On the way back.
    Back,
    /// It should not go here.
    Turn,
}

impl Arrow {
    pub(super) const ALL: [Self; 3] = [Self::Out, Self::Back, Self::Turn];

    /// What the legend says.
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
