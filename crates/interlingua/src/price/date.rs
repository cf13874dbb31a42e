//! Days of the calendar in UTC, for prices that are valid from one day to another.

use std::fmt;

use serde::Deserialize;

const MS_PER_HOUR: u64 = 3_600_000;
const MS_PER_DAY: u64 = 24 * MS_PER_HOUR;

/// A day, which orders by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Date {
    year: u64,
    month: u64,
    day: u64,
}

impl Date {
    /// The day of a time in milliseconds since 1970.
    pub(super) fn of_time(at: u64) -> Self {
        // Counts from the first of March of the year 0, so that a leap day is the last day of a
        // year, in eras of 400 years.
        let days = at / MS_PER_DAY + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let leap_days = day_of_era / 1460 + day_of_era / 146_096;
        let year_of_era = (day_of_era + day_of_era / 36_524 - leap_days) / 365;
        let before = 365 * year_of_era + year_of_era / 4 - year_of_era / 100;
        let day_of_year = day_of_era - before;
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = era * 400 + year_of_era + u64::from(month < 3);
        Self { year, month, day }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let (year, month) = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?);
        let date = Self { year, month, day: digits(parts.next()?, 2)? };
        (1..=date.days_in_month()?).contains(&date.day).then_some(date)
    }

    fn days_in_month(self) -> Option<u64> {
        let Self { year, month, .. } = self;
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        match month {
            2 => Some(28 + u64::from(is_leap)),
            4 | 6 | 9 | 11 => Some(30),
            1..=12 => Some(31),
            _ => None,
        }
    }
}

impl TryFrom<String> for Date {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not a day such as 2026-11-30"))
    }
}

impl fmt::Display for Date {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// The hour of the day, in UTC, of a time in milliseconds since 1970.
pub(super) fn hour_of(at: u64) -> u64 {
    at % MS_PER_DAY / MS_PER_HOUR
}

/// A number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<u64> {
    let all = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}

/// Whether a text is a day as providers append it to the name of a model: `20251001`,
/// `2026-03-05`.
pub(super) fn is_date(text: &str) -> bool {
    let parsed = match text.len() {
        8 => text
            .get(..4)
            .zip(text.get(4..6))
            .zip(text.get(6..))
            .and_then(|((year, month), day)| Date::parse(&format!("{year}-{month}-{day}"))),
        _ => Date::parse(text),
    };
    parsed.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_day() {
        let day = |at| Date::of_time(at).to_string();
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(951_868_799_999), "2000-02-29");
        assert_eq!(day(951_868_800_000), "2000-03-01");
        assert_eq!(day(1_709_251_199_999), "2024-02-29");
        assert_eq!(day(1_735_689_600_000), "2025-01-01");
        assert_eq!(day(1_796_083_199_999), "2026-11-30");
        assert_eq!(day(1_796_083_200_000), "2026-12-01");
        // A time that cannot be right has some day, too.
        assert!(Date::of_time(u64::MAX) > Date::of_time(0));
    }

    #[test]
    fn only_a_day_of_the_calendar_is_a_date() {
        for date in ["20251001", "2026-03-05", "2024-02-29"] {
            assert!(is_date(date), "{date}");
        }
        for text in ["", "2025-1-01", "20251301", "2026-02-29", "2026-11-31", "é0251001", "latest"]
        {
            assert!(!is_date(text), "{text}");
        }
    }
}
