//! Dates as numbers of days, compared with those of jiff.

use crate::calendar::civil;
use jiff::civil::Date;

#[test]
fn every_day_of_eight_thousand_years_has_its_month() {
    let mut date = Date::new(1970, 1, 1).expect("a date");
    let mut day = 0;
    // jiff's last date is 9999-12-31.
    loop {
        let month = civil::month_of_year(date.year().into(), date.month().into());
        assert_eq!(civil::month_at(day), month, "{date}");
        assert_eq!(
            civil::first_day(month),
            day + 1 - i64::from(date.day()),
            "{date}"
        );
        assert_eq!(
            civil::length(month),
            i64::from(date.days_in_month()),
            "{date}"
        );
        let Ok(next) = date.tomorrow() else { break };
        (date, day) = (next, day + 1);
    }
    assert_eq!(day, 2_932_896);
}

#[test]
fn days_before_1970_have_negative_numbers() {
    assert_eq!(civil::first_day(civil::month_of_year(1969, 12)), -31);
    assert_eq!(civil::month_at(-1), civil::month_of_year(1969, 12));
    assert_eq!(civil::month_at(-32), civil::month_of_year(1969, 11));
    assert_eq!(civil::first_day(civil::month_of_year(1900, 3)), -25_508);
}
