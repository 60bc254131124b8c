//! The tokens of YAML.

use std::borrow::Cow;

use super::text::Mark;
use crate::reader::{DEPTH, Trouble};

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Quoted,
    Literal,
    Folded,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    End,
    /// `...`
    DocumentEnd,
    /// `%YAML 1.1`
    Directive,
    BlockSeq,
    BlockMap,
    BlockEnd,
    FlowSeq,
    FlowSeqEnd,
    FlowMap,
    FlowMapEnd,
    /// `-`
    Item,
    /// `,`
    Comma,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag(Tag<'a>),
    Scalar(Cow<'a, str>, Style),
}

/// The tag of a value, which begins with `!`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tag<'a> {
    /// A tag of YAML itself: `!!str`.
    Core(Cow<'a, str>),
    Other,
    /// A tag with a handle that no directive declares.
    Undeclared,
}

#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) start: Mark,
    pub(super) end: Mark,
}

pub(super) fn column(mark: Mark) -> isize {
    isize::try_from(mark.column).unwrap_or(isize::MAX)
}

pub(super) fn trouble(mark: Mark, message: impl Into<String>) -> Trouble {
    let column = u32::try_from(mark.column).unwrap_or(u32::MAX);
    Trouble::new(mark.line, column.saturating_add(1), message)
}

pub(super) fn too_deep(mark: Mark) -> Trouble {
    trouble(mark, format!("nested more than {DEPTH} levels deep"))
}

pub(super) fn tab(mark: Mark) -> Trouble {
    trouble(mark, "tab used for indentation: YAML requires spaces")
}
