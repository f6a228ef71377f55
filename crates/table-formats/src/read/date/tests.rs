use jiff::tz::TimeZone;
use proptest::prelude::*;
use time::macros::{date, datetime, time};

use super::{format::DETECTED, *};

fn instant(text: &str) -> Option<OffsetDateTime> {
    read_iso(text).and_then(Moment::instant)
}

#[test]
fn iso_8601_is_read_in_all_its_forms() {
    let at = Some(datetime!(2024-03-05 13:22:01 UTC));
    for text in [
        "2024-03-05T14:22:01+01:00",
        "2024-03-05T14:22:01+0100",
        "2024-03-05T14:22:01+01",
        "2024-03-05 14:22:01 +0100",
        "2024-03-05  14:22:01.000+01:00",
        "2024-03-05t13:22:01z",
        "2024-03-05 13:22:01 UTC",
        "20240305T132201Z",
        "20240305T142201+0100",
    ] {
        assert_eq!(instant(text), at, "{text}");
    }
    assert_eq!(
        instant("2024-03-05T14:22Z"),
        Some(datetime!(2024-03-05 14:22 UTC))
    );
    assert_eq!(
        instant("2024-03-05T14:22:01,1234560Z"),
        Some(datetime!(2024-03-05 14:22:01.123456 UTC))
    );
    assert_eq!(instant("2024-03-05T14:22:01,1234567Z"), None);
    assert_eq!(
        instant("2024-02-29T24:00Z"),
        Some(datetime!(2024-03-01 00:00 UTC))
    );
    let local = read_iso("2024-03-05 14:22").unwrap();
    assert_eq!(
        (local.date, local.time),
        (date!(2024 - 03 - 05), Some(time!(14:22)))
    );
    assert_eq!(local.instant(), None);
    assert_eq!(read_iso("2024-03-05").unwrap().time, None);
}

#[test]
fn rare_forms_of_iso_8601_are_read_in_columns_of_dates() {
    for (text, day) in [
        ("20240101", date!(2024 - 01 - 01)),
        ("2024-001", date!(2024 - 01 - 01)),
        ("2024366", date!(2024 - 12 - 31)),
        ("2024-W01-1", date!(2024 - 01 - 01)),
        ("2025W014", date!(2025 - 01 - 02)),
        ("2024-01-01", date!(2024 - 01 - 01)),
    ] {
        let found = read_any_iso(text).unwrap();
        assert_eq!((found.date, found.time), (day, None), "{text}");
    }
    let at = Some(datetime!(2024-01-01 10:00 UTC));
    for text in [
        "2024-01-01T10Z",
        "20240101T100000Z",
        "20240101T10Z",
        "20240101 1100+0100",
        "2024-01-01 11:00:00 +01",
        "2024-001T10:00Z",
        "2024-W01-1T10:00:00.000Z",
    ] {
        assert_eq!(read_any_iso(text).and_then(Moment::instant), at, "{text}");
    }
    let half = Some(datetime!(2024-01-01 10:00:30.5 UTC));
    for text in ["20240101T100030.5Z", "20240101 110030,5+01"] {
        assert_eq!(read_any_iso(text).and_then(Moment::instant), half, "{text}");
    }
    for text in [
        "2024",
        "2024-01",
        "2024-000",
        "2023-366",
        "2024-W54-1",
        "2024-W01",
        "2024-W01-8",
        "2024-0101",
        "202401-01",
        "20240230",
        "20240101T",
        "2024-01-01T1Z",
        "01.02.2024",
        "9999-W52-7",
    ] {
        assert_eq!(read_any_iso(text), None, "{text}");
    }
    // Codes elsewhere.
    for text in ["20240101", "2024-001", "2024-W01-1"] {
        assert_eq!(read_iso(text), None, "{text}");
    }
}

#[test]
fn an_offset_is_at_most_eighteen_hours_and_a_part_of_one() {
    for (offset, at) in [
        ("+18:00", Some(datetime!(2024-03-04 18:00 UTC))),
        ("-18:00", Some(datetime!(2024-03-06 06:00 UTC))),
        ("+00:59", Some(datetime!(2024-03-05 11:01 UTC))),
        ("\u{2212}0930", Some(datetime!(2024-03-05 21:30 UTC))),
        ("+19:00", None),
        ("+00:60", None),
        ("+01:030", None),
        ("+01030", None),
    ] {
        assert_eq!(
            instant(&format!("2024-03-05T12:00{offset}")),
            at,
            "{offset}"
        );
    }
}

#[test]
fn an_offset_does_not_move_a_time_out_of_the_years() {
    for text in ["0001-01-01T00:00:00+01:00", "9999-12-31T23:30:00-01:00"] {
        let moment = read_any_iso(text).unwrap();
        assert_eq!((moment.offset.is_some(), moment.instant()), (true, None));
    }
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let found = in_zone(datetime!(0001-01-01 00:10), &berlin);
    assert_eq!(found, Err(LocalTimeProblem::OutOfRange));
}

#[test]
fn what_is_no_date_is_none() {
    for text in [
        "",
        "2024",
        "20240305",
        "2024-3-5",
        "2024-02-30",
        "2024-03-05T",
        "2024-03-05X14:22",
        "2024-03-05T14",
        "2024-03-05T25:00Z",
        "2024-03-05T14:60Z",
        "2024-03-05T14:22:01+1",
        "2024-03-05T14:22:01Zx",
        "2024-03-05T14:22:01+19:00",
        "0000-01-01",
        "2024-03-05T24:01",
        "2024-03-05 13:22 PM",
        "2024-03-05T14:22:01.Z",
        "2024-03-05 ",
        "2024-03-05T14:22:01 x",
    ] {
        assert_eq!(read_iso(text), None, "{text}");
    }
}

#[test]
fn a_format_is_read_with_and_without_a_time() {
    let read = |format: &str, text: &str| DateFormat::parse(format).unwrap().read(text);
    let day = date!(2024 - 03 - 05);
    for (format, text) in [
        ("%d.%m.%Y", "05.03.2024"),
        ("%d.%m.%Y", "5.3.2024"),
        ("%m/%d/%Y", "3/5/2024"),
        ("%d.%m.%y", "05.03.24"),
        ("%d-%b-%Y", "05-Mar-2024"),
        ("%d %B %Y", "5 march 2024"),
        ("%F", "2024-03-05"),
        ("%d %b %Y", "05 MAR 2024"),
    ] {
        let moment = read(format, text).unwrap();
        assert_eq!((moment.date, moment.time), (day, None), "{text}");
    }
    for (format, text) in [
        ("%d.%m.%Y", "05.03.2024 14:22:00"),
        ("%d.%m.%Y", "05.03.2024, 14:22"),
        ("%d.%m.%Y %H:%M", "05.03.2024 14:22"),
        ("%m/%d/%Y", "3/5/2024 2:22 PM"),
        ("%m/%d/%Y %I:%M:%S %p", "3/5/2024 2:22:00 pm"),
        ("%m/%d/%Y %I:%M %p", "3/5/2024 2:22\u{202f}PM"),
        ("%m/%d/%Y %I:%M %p", "3/5/2024 2:22\u{a0}p.m."),
        ("%F %T", "2024-03-05 14:22:00"),
    ] {
        let moment = read(format, text).unwrap();
        assert_eq!(
            (moment.date, moment.time),
            (day, Some(time!(14:22))),
            "{text}"
        );
    }
    let with_offset = read("%d.%m.%Y %H:%M %z", "05.03.2024 14:22 +0100").unwrap();
    assert_eq!(with_offset.instant(), Some(datetime!(2024-03-05 13:22 UTC)));
    for (format, text) in [
        ("%d.%m.%Y", "05.03.20241"),
        ("%d.%m.%Y", "05.03.202414:22"),
        ("%d.%m.%Y", "05.13.2024"),
        ("%d.%m.%Y", "05/03/2024"),
        ("%d.%m.%Y", "05 03 2024"),
        ("%m/%d/%Y %I:%M %p", "3/5/2024 2:22xPM"),
        ("%d.%m.%Y %H:%M", "05.03.2024"),
        ("%d.%m.%Y %H:%M", "05.03.2024 14:22:01"),
        ("%d.%m.%Y", "05.03.2024 x"),
        ("%m/%d/%Y", "3/5/2024 0:22 AM"),
        ("%d-%b-%Y", "05-Foo-2024"),
    ] {
        assert_eq!(read(format, text), None, "{format} {text}");
    }
    for format in [
        "",
        "%d.%m",
        "%d.%m.%Y %M",
        "%d.%m.%Y %I:%M",
        "%q",
        "%d%d%m%Y",
        "%",
    ] {
        assert!(DateFormat::parse(format).is_err(), "{format}");
    }
    assert_eq!(DateFormat::detected().len(), DETECTED.len());
}

#[test]
fn local_times_that_a_clock_change_touches_are_problems() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    assert_eq!(
        in_zone(datetime!(2024-07-05 14:22:01.5), &berlin),
        Ok(datetime!(2024-07-05 12:22:01.5 UTC))
    );
    assert_eq!(
        in_zone(datetime!(2024-03-31 02:30), &berlin),
        Err(LocalTimeProblem::LeftOut)
    );
    assert_eq!(
        in_zone(datetime!(2024-10-27 02:30), &berlin),
        Err(LocalTimeProblem::Repeated)
    );
}

#[test]
fn durations_and_clocks_keep_sign_and_fraction() {
    for (micros, duration) in [
        (87_300_000_000, "PT24H15M"),
        (-3_600_000_000, "-PT1H"),
        (1_500_000, "PT1.5S"),
        (0, "PT0S"),
        (90_000_000, "PT1M30S"),
        (1_000_000, "PT1S"),
        (60_500_000, "PT1M0.5S"),
        (3_661_000_001, "PT1H1M1.000001S"),
    ] {
        assert_eq!(render_duration(micros), duration);
    }
    assert_eq!(render_clock(30_600_000_000), "08:30:00");
    assert_eq!(render_clock(1_250_000), "00:00:01.25");
    assert_eq!(render_clock(86_399_999_999), "23:59:59.999999");
}

proptest! {
    #[test]
    fn any_text_is_read_or_not(text in "[0-9T:+Z., /-]{0,24}|\\PC{0,16}") {
        let _ = read_iso(&text);
        for format in DateFormat::detected() {
            let _ = format.read(&text);
        }
    }
}

#[test]
fn a_format_names_each_part_once_and_with_those_it_needs() {
    let day = date!(2024 - 03 - 05);
    for (format, text, expected) in [
        ("%d.%m.%Y %H", "05.03.2024 14", time!(14:00)),
        (
            "%d.%m.%Y %H:%M:%S.%f",
            "05.03.2024 14:22:01.5",
            time!(14:22:01.5),
        ),
        ("%T %d.%m.%Y", "14:22:01 05.03.2024", time!(14:22:01)),
        ("%F %I %p", "2024-03-05 12 AM", time!(0:00)),
        ("%F %I %p", "2024-03-05 12 PM", time!(12:00)),
        ("%F %I %p", "2024-03-05 1 am", time!(1:00)),
        ("%F %I %p", "2024-03-05 11 p.m.", time!(23:00)),
    ] {
        let moment = DateFormat::parse(format).unwrap().read(text).unwrap();
        assert_eq!((moment.date, moment.time), (day, Some(expected)), "{text}");
    }
    for (format, text) in [
        ("%F %I %p", "2024-03-05 13 PM"),
        ("%F %I %p", "2024-03-05 0 AM"),
        ("%F %H", "2024-03-05 24"),
    ] {
        assert_eq!(
            DateFormat::parse(format).unwrap().read(text),
            None,
            "{text}"
        );
    }
    for format in [
        "%m.%Y",
        "%d.%Y",
        "%d.%m.%b.%Y",
        "%d.%m.%Y.%y",
        "%d.%m.%Y %H:%M %H",
        "%d.%m.%Y %H %I %p",
        "%d.%m.%Y %H %S",
        "%d.%m.%Y %H:%M.%f",
        "%d.%m.%Y %H:%M %p",
        "%d.%m.%Y %z",
        "%d.%m.%Y %p",
    ] {
        assert!(DateFormat::parse(format).is_err(), "{format}");
    }
}

#[test]
fn years_of_two_digits_and_names_of_months_are_known() {
    let read = |format: &str, text: &str| {
        let moment = DateFormat::parse(format).unwrap().read(text);
        moment.map(|moment| moment.date)
    };
    for (text, day) in [
        ("05.03.69", date!(1969 - 03 - 05)),
        ("05.03.99", date!(1999 - 03 - 05)),
        ("05.03.00", date!(2000 - 03 - 05)),
        ("05.03.68", date!(2068 - 03 - 05)),
    ] {
        assert_eq!(read("%d.%m.%y", text), Some(day), "{text}");
    }
    let names = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    for (name, month) in names.into_iter().zip(1_u8..) {
        for name in [name, &name[..3], &name.to_lowercase()] {
            let found = read("%d %b %Y", &format!("5 {name} 2024"));
            assert_eq!(
                found.map(|day| u8::from(day.month())),
                Some(month),
                "{name}"
            );
        }
    }
    for name in ["Ma", "Marc", "Mars", "Sept", ""] {
        assert_eq!(read("%d %b %Y", &format!("5 {name} 2024")), None, "{name}");
    }
}
