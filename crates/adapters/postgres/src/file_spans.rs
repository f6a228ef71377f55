//! The spans of time by which the index over file names can be read, as `labdata.file_keys` names
//! them.

use time::{Duration, OffsetDateTime};

/// Seconds of the shortest spans.
const SHORTEST: i64 = 64;

/// How many spans of a length make the next longer one.
const STEP: i64 = 8;

/// How many lengths there are.
const LENGTHS: u32 = 8;

/// At least so many spans of a length come before longer ones, so that a longer one is at most
/// twice as long as all before it.
const OF_A_LENGTH: u32 = 4;

/// Groups of spans that cover all times between two, the newest first. The first group is some
/// times as long as `first`; each one after it is at least as long as all before it, or `longest`,
/// and at most three times that. What a group holds too much is then bounded by what was wanted.
/// The names in a group are separated by commas.
pub(crate) fn groups(
    newest: OffsetDateTime,
    oldest: OffsetDateTime,
    first: Duration,
    longest: Duration,
) -> Vec<String> {
    let (newest, oldest) = (newest.unix_timestamp(), oldest.unix_timestamp());
    let longest = longest.whole_seconds();
    let (mut level, mut length) = (0, SHORTEST);
    while level + 1 < LENGTHS && length < first.whole_seconds() {
        level += 1;
        length *= STEP;
    }
    let mut groups: Vec<String> = Vec::new();
    // How long all groups but the last one are, and the last one.
    let (mut before, mut in_group) = (0, 0);
    let mut number = newest.div_euclid(length);
    let mut of_this_length = 0;
    // The end of the next span, not part of it, is the start of the one before.
    while (number + 1) * length > oldest {
        let enough = match before {
            0 => length * i64::from(OF_A_LENGTH),
            before => before.min(longest),
        };
        match groups.last_mut() {
            Some(group) if in_group < enough => {
                group.push(',');
                group.push_str(&name(level, number));
            }
            _ => {
                groups.push(name(level, number));
                before += in_group;
                in_group = 0;
            }
        }
        in_group += length;
        of_this_length += 1;
        let ends_a_longer_one = number.rem_euclid(STEP) == 0;
        number -= 1;
        if ends_a_longer_one
            && of_this_length >= OF_A_LENGTH
            && level + 1 < LENGTHS
            && length * STEP <= longest
        {
            number = number.div_euclid(STEP);
            level += 1;
            length *= STEP;
            of_this_length = 0;
        }
    }
    groups
}

/// One group of spans, as few as possible, that covers all times between two, and at most `excess`
/// (or the shortest span) too much at each end.
fn cover(newest: OffsetDateTime, oldest: OffsetDateTime, excess: Duration) -> String {
    let (mut shortest_level, mut shortest) = (0, SHORTEST);
    while shortest_level + 1 < LENGTHS && shortest * STEP <= excess.whole_seconds() {
        shortest_level += 1;
        shortest *= STEP;
    }
    // In the shortest spans; the end is not part of it.
    let start = oldest.unix_timestamp().div_euclid(shortest);
    let mut end = newest.unix_timestamp().div_euclid(shortest) + 1;
    let mut names = Vec::new();
    while end > start {
        let (mut level, mut length) = (shortest_level, 1);
        while level + 1 < LENGTHS
            && end.rem_euclid(length * STEP) == 0
            && end - length * STEP >= start
        {
            level += 1;
            length *= STEP;
        }
        names.push(name(level, end.div_euclid(length) - 1));
        end -= length;
    }
    names.join(",")
}

/// A group that covers all times from the newest to one in between, then about so many groups that
/// divide the times from there to the oldest evenly. No time is in two of them.
pub(crate) fn cover_then_divide(
    newest: OffsetDateTime,
    between: OffsetDateTime,
    oldest: OffsetDateTime,
    pieces: usize,
) -> Vec<String> {
    let seconds = (between - oldest).whole_seconds();
    let piece = seconds / i64::try_from(pieces.max(1)).unwrap_or(i64::MAX);
    let (mut level, mut length) = (0, SHORTEST);
    while level + 1 < LENGTHS && length * STEP <= piece {
        level += 1;
        length *= STEP;
    }
    let number = |at: OffsetDateTime| at.unix_timestamp().div_euclid(length);
    let spans: Vec<String> = (number(oldest)..number(between))
        .rev()
        .map(|number| name(level, number))
        .collect();
    let mut groups = vec![cover(newest, between, Duration::seconds(length))];
    let size = spans.len().div_ceil(pieces.max(1)).max(1);
    groups.extend(spans.chunks(size).map(|group| group.join(",")));
    groups
}

fn name(level: u32, number: i64) -> String {
    format!("time {level} {number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(second).expect("a time")
    }

    /// From the first second to the one behind the last.
    fn bounds(span: &str) -> (i64, i64) {
        let mut words = span.split(' ').skip(1).map(str::parse::<i64>);
        let mut next = || words.next().expect("a word").expect("a number");
        let (level, number) = (next(), next());
        let length = SHORTEST << (3 * level);
        (number * length, (number + 1) * length)
    }

    #[test]
    fn groups_cover_all_times_once_and_grow() {
        let year = 31_536_000;
        for newest in [0, 63, 64, 1_800_000_000, 1_798_761_599, -1, -5_000_000_000] {
            for age in [0, 1, 64, 100_000, year, 30 * year] {
                for first in [0, 64, 65, 100_000, 1_000 * year] {
                    let oldest = newest - age;
                    let first = Duration::seconds(first);
                    let groups = groups(at(newest), at(oldest), first, Duration::MAX);
                    let mut end = None;
                    let mut covered = 0;
                    for group in &groups {
                        let mut length = 0;
                        for span in group.split(',') {
                            let (from, to) = bounds(span);
                            if let Some(end) = end {
                                assert_eq!(to, end, "{groups:?}");
                            } else {
                                assert!(from <= newest && newest < to, "{groups:?}");
                            }
                            end = Some(from);
                            length += to - from;
                        }
                        assert!(covered == 0 || length <= 4 * covered, "{groups:?}");
                        covered += length;
                    }
                    assert!(end.is_some_and(|end| end <= oldest), "{groups:?}");
                    assert!(groups.len() < 40, "{groups:?}");
                }
            }
        }
    }

    #[test]
    fn a_cover_has_all_times_once_and_little_more() {
        for newest in [0, 63, 64, 1_800_000_000, -1, -5_000_000_000] {
            for age in [0, 1, 64, 100_000, 31_536_000, 946_080_000] {
                for excess in [0, 64, 511, 512, 100_000] {
                    let oldest = newest - age;
                    let covered = cover(at(newest), at(oldest), Duration::seconds(excess));
                    let spans: Vec<_> = covered.split(',').map(bounds).collect();
                    for pair in spans.windows(2) {
                        assert_eq!(pair[0].0, pair[1].1, "{covered}");
                    }
                    let (from, to) = (spans[spans.len() - 1].0, spans[0].1);
                    assert!(from <= oldest && newest < to, "{covered}");
                    let most = excess.max(SHORTEST);
                    assert!(oldest - from <= most && to - newest <= most, "{covered}");
                    assert!(spans.len() < 150, "{covered}");
                }
            }
        }
    }

    #[test]
    fn what_is_covered_and_then_divided_has_all_times_once() {
        for newest in [1_800_000_000, 64 * 512, -5_000_000_000] {
            for gap in [0, 1, 64, 1_000, 31_536_000] {
                for rest in [0, 1, 63, 5_000, 3_000_000, 946_080_000] {
                    let (between, oldest) = (newest - gap, newest - gap - rest);
                    let groups = cover_then_divide(at(newest), at(between), at(oldest), 16);
                    assert!((1..=17).contains(&groups.len()), "{groups:?}");
                    let spans: Vec<_> = groups.iter().flat_map(|group| group.split(',')).collect();
                    let spans: Vec<_> = spans.into_iter().map(bounds).collect();
                    for pair in spans.windows(2) {
                        assert_eq!(pair[0].0, pair[1].1, "{groups:?}");
                    }
                    let (from, to) = (spans[spans.len() - 1].0, spans[0].1);
                    assert!(from <= oldest && newest < to, "{groups:?}");
                }
            }
        }
    }

    #[test]
    fn no_group_is_much_longer_than_the_longest() {
        let longest = Duration::seconds(64 * 16);
        let groups = groups(at(1_000_000), at(900_000), Duration::seconds(64), longest);
        for group in &groups {
            let length: i64 = group
                .split(',')
                .map(|span| bounds(span).1 - bounds(span).0)
                .sum();
            assert!(length <= 4 * longest.whole_seconds(), "{groups:?}");
        }
        assert!(groups.len() > 24, "{groups:?}");
    }
}
