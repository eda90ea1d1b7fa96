//! Ages in the format of `duration.HumanDuration`.

use jiff::Timestamp;

/// Formats the time since a timestamp; `<unknown>` if it is missing.
pub(crate) fn age(time: Option<Timestamp>, now: Timestamp) -> String {
    match time {
        Some(then) => human_duration(now.duration_since(then).as_secs()),
        None => "<unknown>".into(),
    }
}

/// Formats a duration in seconds with one or two units.
fn human_duration(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".into();
    }
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |large: i64, large_unit: char, small: i64, small_unit: char| match small {
        0 => format!("{large}{large_unit}"),
        small => format!("{large}{large_unit}{small}{small_unit}"),
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => pair(days, 'd', hours % 24, 'h'),
        () if days < 730 => format!("{days}d"),
        () if years < 8 => pair(years, 'y', days % 365, 'd'),
        () => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_durations_as_kubectl() {
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        let expected = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (600, "10m"),
            (179 * 60, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 60, "3h1m"),
            (8 * HOUR + 60, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY + HOUR, "2d1h"),
            (9 * DAY + HOUR, "9d"),
            (800 * DAY, "2y70d"),
            (3650 * DAY, "10y"),
        ];
        for (seconds, text) in expected {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }
}
