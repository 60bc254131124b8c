//! Points in time as text.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A pair of clock readings, which converts a point of the monotonic clock to the time of day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    wall: SystemTime,
    monotonic: Instant,
}

impl Clock {
    /// Reads both clocks.
    pub(crate) fn now() -> Self {
        Self { wall: SystemTime::now(), monotonic: Instant::now() }
    }

    /// Writes the time of day at a moment as RFC 3339 requires, in UTC and with milliseconds.
    pub(crate) fn text(&self, moment: Instant) -> String {
        let ahead = moment.saturating_duration_since(self.monotonic);
        let behind = self.monotonic.saturating_duration_since(moment);
        rfc3339(self.wall + ahead - behind)
    }
}

/// Writes a point in time as RFC 3339 requires, in UTC and with milliseconds. A time before 1970 is
/// written as the beginning of 1970.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since: Duration = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Returns year, month and day of a day that is counted from the first of January 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that a leap day is the last of its year; after 400 years, an
    // era, everything repeats.
    const DAYS_IN_ERA: u64 = 146_097;
    const DAYS_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    let days = days + DAYS_FROM_MARCH_OF_YEAR_0;
    let (era, day) = (days / DAYS_IN_ERA, days % DAYS_IN_ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Five months that begin with March or August have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (era * 400 + year + u64::from(is_next_year), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_one_another_as_in_the_calendar() {
        let mut expected = (1970, 1, 1);
        for day in 0..400 * 366 {
            assert_eq!(date(day), expected, "day {day}");
            let (year, month, day) = expected;
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(is_leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (month, day == length) {
                (_, false) => (year, month, day + 1),
                (12, true) => (year + 1, 1, 1),
                (_, true) => (year, month + 1, 1),
            };
        }
    }

    #[test]
    fn times_have_milliseconds() {
        let time = UNIX_EPOCH + Duration::from_millis(1_709_210_096_007);
        assert_eq!(rfc3339(time), "2024-02-29T12:34:56.007Z");
        let clock = Clock { wall: time, monotonic: Instant::now() };
        let second = Duration::from_secs(1);
        assert_eq!(clock.text(clock.monotonic + second), "2024-02-29T12:34:57.007Z");
        let before = clock.monotonic.checked_sub(second).unwrap();
        assert_eq!(clock.text(before), "2024-02-29T12:34:55.007Z");
    }
}
