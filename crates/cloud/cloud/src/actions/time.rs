//! Times in the form of answers.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

/// Returns a time as `YYYY-MM-DD HH:mm:ss`. INF: the documentation names no time zone; this is the
/// console's, UTC+8.
pub(super) fn written(time: Timestamp) -> String {
    let zone = TimeZone::fixed(Offset::constant(8));
    time.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Returns the date without separators: `20260131`.
pub(super) fn date(time: Timestamp) -> String {
    let zone = TimeZone::fixed(Offset::constant(8));
    time.to_zoned(zone).strftime("%Y%m%d").to_string()
}
