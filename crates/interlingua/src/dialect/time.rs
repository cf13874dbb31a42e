//! Parses the time that an agent gives an event, in milliseconds since 1970.
//!
//! Agents write ISO 8601 with a date, a time and an offset, or a number; any other value is not a
//! time. A leap second counts as the following second.

use crate::json::Json;

/// The time of a value, if the value is one.
pub(super) fn milliseconds(time: &Json<'_>) -> Option<u64> {
    match time.as_text() {
        Some(text) => of_iso_8601(&text.to_plain()),
        None => of_number(time.get()),
    }
}

fn of_number(digits: &str) -> Option<u64> {
    let whole = digits.split_once('.').map_or(digits, |(whole, _)| whole);
    whole.parse().ok()
}

/// `2025-01-31T12:34:56.789Z`, with any number of digits after the dot and any offset.
fn of_iso_8601(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.splitn(3, '-');
    let (year, month, day) = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, parts.next()?);
    let days = days_since_1970(year, month, digits(day, 2)?)?;
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at_checked(zone)?;
    let clock = of_clock(clock)?;
    let total = days * 86_400_000 + clock - of_zone(zone)? * 60_000;
    u64::try_from(total).ok()
}

fn of_clock(clock: &str) -> Option<i64> {
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |second| digits(second, 2))?;
    if hour > 23 || minute > 59 || second > 60 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let millis = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(3)
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some(((hour * 60 + minute) * 60 + second) * 1000 + millis)
}

/// The offset from UTC in minutes.
fn of_zone(zone: &str) -> Option<i64> {
    let sign = match zone.get(..1)? {
        "Z" | "z" if zone.len() == 1 => return Some(0),
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_at_checked(2)?;
    let minutes = minutes.strip_prefix(':').unwrap_or(minutes);
    let minutes = if minutes.is_empty() { 0 } else { digits(minutes, 2)? };
    Some(sign * (digits(hours, 2)? * 60 + minutes))
}

/// Days of the Gregorian calendar. Years begin in March, so that a leap day is the last day.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month < 3 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leap_days + day_of_year - 719_468)
}

/// A number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let all = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Option<u64> {
        milliseconds(&Json::from_text(json.to_owned()).unwrap())
    }

    #[test]
    fn iso_8601_in_utc() {
        assert_eq!(of(r#""1970-01-01T00:00:00Z""#), Some(0));
        assert_eq!(of(r#""2025-01-01T00:00:00.000Z""#), Some(1_735_689_600_000));
        assert_eq!(of(r#""2024-02-29T23:59:59.999Z""#), Some(1_709_251_199_999));
        assert_eq!(of(r#""2000-03-01T00:00:00Z""#), Some(951_868_800_000));
    }

    #[test]
    fn a_fraction_of_any_length_is_cut_to_milliseconds() {
        assert_eq!(of(r#""1970-01-01T00:00:00.5Z""#), Some(500));
        assert_eq!(of(r#""1970-01-01T00:00:00.123456789Z""#), Some(123));
    }

    #[test]
    fn an_offset_is_subtracted() {
        assert_eq!(of(r#""1970-01-01T02:00:00+02:00""#), Some(0));
        assert_eq!(of(r#""1970-01-01T00:00:00-0130""#), Some(5_400_000));
    }

    #[test]
    fn a_number_is_milliseconds() {
        assert_eq!(of("1735689600000"), Some(1_735_689_600_000));
        assert_eq!(of("1735689600000.75"), Some(1_735_689_600_000));
    }

    #[test]
    fn an_invalid_time_is_none() {
        for json in [
            r#""""#,
            r#""now""#,
            r#""2025-01-01""#,
            r#""2025-01-01T00:00:00""#,
            r#""2025-13-01T00:00:00Z""#,
            r#""2025-01-01T24:00:00Z""#,
            r#""1969-12-31T23:59:59Z""#,
            r#""é-é-éTéZ""#,
            "-1",
            "true",
            "{}",
        ] {
            assert_eq!(of(json), None, "{json}");
        }
    }
}
