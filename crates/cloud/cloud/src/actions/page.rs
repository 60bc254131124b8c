//! The part of a list that a request asks for.

use super::check;
use crate::wire::error::{ApiError, ErrorCode};

/// How many items a request gets that does not say.
const DEFAULT_LIMIT: i64 = 20;
/// The most items that a request may ask for.
const MAX_LIMIT: i64 = 100;

/// The part of a list that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    offset: usize,
    limit: usize,
}

impl Page {
    /// Reads `Offset` and `Limit`. `code` is for numbers outside their ranges.
    pub(super) fn of(
        offset: Option<i64>,
        limit: Option<i64>,
        code: ErrorCode,
    ) -> Result<Self, ApiError> {
        let (offset, limit) = (offset.unwrap_or(0), limit.unwrap_or(DEFAULT_LIMIT));
        check::range("Offset", offset, 0..=i64::MAX, code)?;
        check::range("Limit", limit, 0..=MAX_LIMIT, code)?;
        let number = |value| usize::try_from(value).unwrap_or(usize::MAX);
        Ok(Self { offset: number(offset), limit: number(limit) })
    }

    /// [`Self::of`] for the actions whose numbers are unsigned.
    pub(super) fn of_unsigned(
        offset: Option<u64>,
        limit: Option<u64>,
        code: ErrorCode,
    ) -> Result<Self, ApiError> {
        let number = |value| i64::try_from(value).unwrap_or(i64::MAX);
        Self::of(offset.map(number), limit.map(number), code)
    }

    /// The number of items before the part, and the most items in it.
    pub(super) fn bounds(self) -> (usize, usize) {
        (self.offset, self.limit)
    }

    /// The part of these items.
    pub(super) fn take<T>(self, items: impl IntoIterator<Item = T>) -> Vec<T> {
        items.into_iter().skip(self.offset).take(self.limit).collect()
    }
}
