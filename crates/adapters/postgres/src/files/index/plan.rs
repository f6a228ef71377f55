//! Which files become segments next. Segments that are built one after the other are merged as
//! they grow, each with those before it that are not longer, so that there are few that are short
//! and a file is written a few times only.

use super::Place;

/// A segment as it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) id: i64,
    pub(super) files: u32,
    pub(super) is_full: bool,
    pub(super) newest: Place,
}

/// What to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Of the files behind this place
    pub(super) after: Option<Place>,
    /// and up to this one
    pub(super) through: Place,
    /// some are put into segments, at least those up to this one,
    pub(super) at_least: Option<Place>,
    /// which have so many files at the most
    pub(super) files: u32,
    /// and take the place of these.
    pub(super) replaced: Vec<i64>,
}

/// The segment, of those given from the newest on, that a file belongs to which came after it was
/// built: it has newer ones.
pub(super) fn late_for(segments: &[Segment], file: Place) -> Option<usize> {
    let newer = segments.iter().take_while(|segment| segment.newest >= file);
    newer.count().checked_sub(1)
}

/// Puts so many files that are newer than all segments, up to a place, into segments of `most` files.
pub(super) fn append(segments: &[Segment], new: u32, through: Place, most: u32) -> Plan {
    let mut files = new;
    let merged = segments.iter().take_while(|segment| {
        let merge = !segment.is_full && segment.files <= files.min(most.saturating_sub(files));
        if merge {
            files += segment.files;
        }
        merge
    });
    let merged: Vec<&Segment> = merged.collect();
    Plan {
        after: segments.get(merged.len()).map(|before| before.newest),
        through,
        at_least: merged.first().map(|newest| newest.newest),
        files: most,
        replaced: merged.iter().map(|segment| segment.id).collect(),
    }
}

/// Builds a segment anew, with so many more files that are missing in it or between it and the one
/// before.
pub(super) fn renew(segments: &[Segment], which: usize, more: u32, most: u32) -> Option<Plan> {
    let segment = segments.get(which)?;
    let files = segment.files.saturating_add(more).max(1);
    Some(Plan {
        after: segments.get(which + 1).map(|before| before.newest),
        through: segment.newest,
        at_least: Some(segment.newest),
        // Evenly, where it has to be divided.
        files: files.div_ceil(files.div_ceil(most.max(1))),
        replaced: vec![segment.id],
    })
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;

    const MOST: u32 = 100;

    fn place(second: u32) -> Place {
        let at = OffsetDateTime::from_unix_timestamp(second.into()).expect("a time");
        (at, Uuid::nil())
    }

    /// Segments one after the other from second 1 on, a file a second; the newest first.
    fn segments(files: &[u32]) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut second = 1;
        for (id, files) in (0..).zip(files) {
            segments.push(Segment {
                id,
                files: *files,
                is_full: *files >= MOST,
                newest: place(second + files - 1),
            });
            second += files;
        }
        segments.reverse();
        segments
    }

    #[test]
    fn the_first_files_are_put_into_a_segment_of_their_own() {
        let plan = append(&[], 7, place(9), MOST);
        let expected = Plan {
            after: None,
            through: place(9),
            at_least: None,
            files: MOST,
            replaced: vec![],
        };
        assert_eq!(plan, expected);
    }

    #[test]
    fn new_files_are_merged_with_the_segments_before_that_are_not_longer() {
        let standing = segments(&[MOST, 40, 16, 8]);
        let plan = append(&standing, 8, place(172), MOST);
        assert_eq!(plan.replaced, [3, 2]);
        assert_eq!(plan.after, Some(place(140)));
        assert_eq!(plan.at_least, Some(place(164)));
        // 8 are more than 7.
        let plan = append(&standing, 7, place(171), MOST);
        assert_eq!(plan.replaced, [0; 0]);
        assert_eq!((plan.after, plan.at_least), (Some(place(164)), None));
        let plan = append(&standing, 30, place(194), MOST);
        assert_eq!(plan.replaced, [3, 2, 1]);
        // With 40 it would be too long.
        let plan = append(&standing, 50, place(214), MOST);
        assert_eq!(plan.replaced, [3, 2]);
        let plan = append(&standing, 1_000, place(1_164), MOST);
        assert_eq!(plan.replaced, [0; 0]);
    }

    #[test]
    fn files_that_come_late_belong_to_the_segment_with_the_next_newer_ones() {
        let standing = segments(&[MOST, 40, 16]);
        for (file, expected) in [
            (place(0), Some(2)),
            (place(100), Some(2)),
            (place(101), Some(1)),
            (place(150), Some(0)),
            (place(157), None),
        ] {
            assert_eq!(late_for(&standing, file), expected);
        }
        let plan = renew(&standing, 1, 5, MOST);
        let expected = Plan {
            after: Some(place(100)),
            through: place(140),
            at_least: Some(place(140)),
            files: 45,
            replaced: vec![1],
        };
        assert_eq!(plan, Some(expected));
        let plan = renew(&standing, 2, 5, MOST).expect("a plan");
        assert_eq!((plan.after, plan.files), (None, 53));
    }
}
