//! The page of a list that a request asks for.

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::check;

/// The number of items in a page if the request sets no limit.
const DEFAULT_LIMIT: i64 = 20;
/// The most items that a request may ask for.
const MAX_LIMIT: i64 = 100;

/// The page of a list that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    offset: usize,
    limit: usize,
}

impl Page {
    /// Reads `Offset` and `Limit`. `code` is the error code for numbers out of range.
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

    /// Reads the parameters as [`Self::of`] does, for actions whose numbers are unsigned.
    pub(super) fn of_unsigned(
        offset: Option<u64>,
        limit: Option<u64>,
        code: ErrorCode,
    ) -> Result<Self, ApiError> {
        let number = |value| i64::try_from(value).unwrap_or(i64::MAX);
        Self::of(offset.map(number), limit.map(number), code)
    }

    /// Returns the number of items before the page, and the most items in it.
    pub(super) fn bounds(self) -> (usize, usize) {
        (self.offset, self.limit)
    }

    /// Returns the items of the page.
    pub(super) fn take<T>(self, items: impl IntoIterator<Item = T>) -> Vec<T> {
        items.into_iter().skip(self.offset).take(self.limit).collect()
    }
}
