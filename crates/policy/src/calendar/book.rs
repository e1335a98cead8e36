//! Windows that are computed once each, not for each request.

use super::{CalendarStarts, CalendarWindows};
use std::cell::Cell;
use tidegate_core::quota::{CalendarCode, WindowStarts};
use tidegate_core::{Quota, Timestamp};

/// The most calendars of which a thread keeps a window. Two whose codes share a place take turns.
const KEPT_MAX: usize = 64;

/// A calendar, and the starts around an instant of late, also as a quota takes them.
type KeptStarts = Option<(CalendarCode, CalendarStarts, WindowStarts)>;

thread_local! {
    /// The windows that this thread used last.
    ///
    /// Computing starts searches the changes of a zone several times. Requests come in the order of time, and many of
    /// them in the same window, so the starts of one window of each calendar are kept until an instant is outside
    /// it. Each thread has its own, so that reading them takes neither a lock nor a shared counter.
    static KEPT: [Cell<KeptStarts>; KEPT_MAX] = const { [const { Cell::new(None) }; KEPT_MAX] };
}

/// Returns the starts of a calendar around an instant; `None` if it is after the year 9999, or the code is not of
/// this process.
///
/// ```
/// use tidegate_policy::calendar::{CalendarPeriod, CalendarSettings, starts_around};
///
/// let yearly = CalendarSettings::default().code(CalendarPeriod::Year);
/// let starts = starts_around(yearly, 1_771_027_200_000).expect("2026");
/// assert_eq!(starts.end_ms() - starts.start_ms(), 365 * 86_400_000);
/// ```
pub fn starts_around(code: CalendarCode, at_ms: u64) -> Option<CalendarStarts> {
    let kept = KEPT.with(|kept| kept.get(place(code)).and_then(Cell::get));
    if let Some((known, starts, _)) = kept
        && known == code
        && starts.contains_ms(at_ms)
    {
        return Some(starts);
    }
    let starts = CalendarWindows::of(code)?.around(at_ms).ok()?;
    KEPT.with(|kept| {
        if let Some(cell) = kept.get(place(code)) {
            cell.set(Some((code, starts, starts.instants_us().into())));
        }
    });
    Some(starts)
}

/// Returns the starts of a calendar around an instant for which this thread asked of late, if it did.
///
/// A store's clock picks the window among them. As long as it finds one, they are as good as those around its present
/// instant.
#[inline]
pub fn kept_starts(code: CalendarCode) -> Option<WindowStarts> {
    let kept = KEPT.with(|kept| kept.get(place(code)).and_then(Cell::get));
    let (known, _, starts) = kept?;
    (known == code).then_some(starts)
}

/// Returns the place of a calendar among those that are kept.
#[inline]
fn place(code: CalendarCode) -> usize {
    // The golden ratio spreads neighbours.
    let hash = code.as_u64().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
    usize::try_from(hash).unwrap_or(0)
}

/// Returns the quota with the starts of its calendar around an instant. A quota without a calendar, or that has
/// starts, does not change.
pub fn with_starts_around(quota: &Quota, at: Timestamp) -> Quota {
    let starts = quota
        .calendar()
        .filter(|_| quota.needs_starts())
        .and_then(|code| starts_around(code, at.as_micros() / 1_000));
    match starts {
        Some(starts) => quota.with_starts(starts.instants_us()),
        None => *quota,
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT_MAX, kept_starts, place, starts_around, with_starts_around};
    use crate::calendar::{
        CalendarAnchor, CalendarPeriod, CalendarSettings, CalendarWindows, Weekday, ZoneNumber,
    };
    use tidegate_core::{Algorithm, Quota, Timestamp};

    const DAY_MS: u64 = 86_400_000;

    fn all_settings() -> Vec<CalendarSettings> {
        let anchors = [
            None,
            Some("31"),
            Some("2026-01-31T09:00"),
            Some("1970-12-31T23:59:59"),
        ];
        let mut all = Vec::new();
        for zone in ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Zulu"] {
            for anchor in anchors {
                for week_start in Weekday::ALL {
                    all.push(CalendarSettings {
                        zone: ZoneNumber::parse(zone).expect("a zone"),
                        week_start,
                        anchor: anchor.map(|text| CalendarAnchor::parse(text).expect("an anchor")),
                    });
                }
            }
        }
        all
    }

    #[test]
    fn a_code_is_read_as_the_windows_it_was_made_of() {
        for settings in all_settings() {
            for period in CalendarPeriod::ALL {
                let CalendarSettings {
                    zone,
                    week_start,
                    anchor,
                } = settings;
                let expected =
                    CalendarWindows::new(period, zone.zone_of_tests(), week_start, anchor);
                let windows = CalendarWindows::of(settings.code(period)).expect("a calendar");
                for day in (0..40_000).step_by(977) {
                    assert_eq!(
                        windows.around(day * DAY_MS),
                        expected.around(day * DAY_MS),
                        "{settings:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_zone_is_found_by_its_number() {
        for name in super::super::CalendarZone::bundled_names() {
            assert_eq!(ZoneNumber::parse(name).expect("a zone").name(), name);
        }
    }

    #[test]
    fn settings_that_do_not_apply_make_no_difference() {
        let plain = CalendarSettings::default();
        let sunday = CalendarSettings {
            week_start: Weekday::Sunday,
            ..plain
        };
        let last = CalendarSettings {
            anchor: Some(CalendarAnchor::DayOfMonth(31)),
            ..plain
        };
        assert_eq!(
            plain.code(CalendarPeriod::Month),
            sunday.code(CalendarPeriod::Month)
        );
        assert_ne!(
            plain.code(CalendarPeriod::Week),
            sunday.code(CalendarPeriod::Week)
        );
        assert_eq!(
            plain.code(CalendarPeriod::Day),
            last.code(CalendarPeriod::Day)
        );
        assert_ne!(
            plain.code(CalendarPeriod::Year),
            last.code(CalendarPeriod::Year)
        );
    }

    #[test]
    fn kept_windows_are_right() {
        let codes: Vec<_> = all_settings()
            .into_iter()
            .flat_map(|settings| CalendarPeriod::ALL.map(|period| settings.code(period)))
            .collect();
        assert!(codes.len() > 2 * KEPT_MAX, "several share a place");
        for code in codes.iter().cycle().take(2 * codes.len()) {
            assert!(place(*code) < KEPT_MAX);
            for at in [0, DAY_MS - 1, DAY_MS, 20_000 * DAY_MS, DAY_MS] {
                let expected = CalendarWindows::of(*code).expect("a calendar").around(at);
                assert_eq!(starts_around(*code, at), expected.ok());
                let starts = starts_around(*code, at).map(|it| it.instants_us().into());
                assert_eq!(kept_starts(*code), starts);
            }
        }
        assert_eq!(starts_around(codes[0], u64::MAX), None);
    }

    #[test]
    fn only_a_quota_of_a_calendar_gets_starts() {
        let at = Timestamp::from_millis(20_000 * DAY_MS);
        let spec = Quota::new(5, 1_000_000).algorithm(Algorithm::CalendarWindow);
        let plain = spec.build().expect("a valid quota");
        assert_eq!(with_starts_around(&plain, at), plain);
        let code = CalendarSettings::default().code(CalendarPeriod::Day);
        let daily = spec.calendar(code).build().expect("a valid quota");
        assert!(daily.is_outside(at));
        let dated = with_starts_around(&daily, at);
        let span = dated.window_at(at).expect("a window");
        assert_eq!(span.start_us, 20_000 * DAY_MS * 1_000);
        assert_eq!(with_starts_around(&dated, at.plus(DAY_MS * 5_000)), dated);
    }
}
