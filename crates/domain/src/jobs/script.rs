//! Scripts of jobs: their versions, and exact edits.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::{ids::UserId, page::Cursor};

/// The most characters of a script.
pub const MAX_CODE_LENGTH: usize = 1_000_000;

/// The most edits of one change.
pub const MAX_EDITS: usize = 100;

/// A job's script as it was saved once; it never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptVersion {
    /// Counted from 1 within the job.
    pub number: u32,
    /// Python source.
    pub code: String,
    /// When it was saved.
    pub created_at: OffsetDateTime,
    /// Who saved it.
    pub created_by: UserId,
}

/// A version of a script, without the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSummary {
    /// Counted from 1 within the job.
    pub number: u32,
    /// When it was saved.
    pub created_at: OffsetDateTime,
    /// Who saved it.
    pub created_by: UserId,
    /// Whether the next run uses it.
    pub is_current: bool,
}

impl VersionSummary {
    /// Its place in the list of versions: by number alone.
    #[must_use]
    pub fn place(&self) -> Cursor {
        Cursor {
            at: OffsetDateTime::UNIX_EPOCH,
            id: Uuid::from_u128(self.number.into()),
        }
    }

    /// The number of the version at that place.
    #[must_use]
    pub fn number_at(place: Cursor) -> u32 {
        u32::try_from(place.id.as_u128()).unwrap_or(u32::MAX)
    }
}

/// An exact replacement of text in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What stands there; it must stand in one place only.
    pub old: String,
    /// What is to stand there.
    pub new: String,
}

/// Why edits cannot be made. The number counts edits from 0, as they were given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is nothing to look for.
    #[error("edits[{0}]: old_string is empty; give the text that is to be replaced")]
    Empty(usize),
    /// The text is not in the script.
    #[error(
        "edits[{0}]: old_string is not in the script as the edits before it leave it; nothing was \
         saved"
    )]
    Missing(usize),
    /// The text is in the script more than once.
    #[error(
        "edits[{0}]: old_string is in the script more than once; give more of the text around it. \
         Nothing was saved"
    )]
    Ambiguous(usize),
    /// The script would be too long.
    #[error("edits[{0}]: the script would have more than {MAX_CODE_LENGTH} characters")]
    TooLong(usize),
}

/// The script after the edits, each made in what the one before it left. Places that overlap
/// count as several.
///
/// # Errors
/// [`EditError`] for the first edit that does not match exactly once.
pub fn apply_edits(code: &str, edits: &[Edit]) -> Result<String, EditError> {
    let mut code = code.to_owned();
    for (index, edit) in edits.iter().enumerate() {
        let first = edit.old.chars().next().ok_or(EditError::Empty(index))?;
        let start = code.find(&edit.old).ok_or(EditError::Missing(index))?;
        let behind = start + first.len_utf8();
        if code
            .get(behind..)
            .is_some_and(|rest| rest.contains(&edit.old))
        {
            return Err(EditError::Ambiguous(index));
        }
        code.replace_range(start..start + edit.old.len(), &edit.new);
        if code.chars().count() > MAX_CODE_LENGTH {
            return Err(EditError::TooLong(index));
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str) -> Edit {
        Edit {
            old: old.to_owned(),
            new: new.to_owned(),
        }
    }

    #[test]
    fn each_edit_sees_what_the_one_before_it_left() {
        let edits = [edit("a = 1", "b = 2"), edit("b = 2", "c = 3")];
        assert_eq!(apply_edits("a = 1\n", &edits).unwrap(), "c = 3\n");
    }

    #[test]
    fn an_edit_that_does_not_match_exactly_once_is_named() {
        let cases = [
            (
                "x",
                vec![edit("x", "y"), edit("x", "z")],
                EditError::Missing(1),
            ),
            ("x x", vec![edit("x", "y")], EditError::Ambiguous(0)),
            ("aaa", vec![edit("aa", "b")], EditError::Ambiguous(0)),
            ("äää", vec![edit("ää", "b")], EditError::Ambiguous(0)),
            ("", vec![edit("", "b")], EditError::Empty(0)),
            ("X", vec![edit("x", "b")], EditError::Missing(0)),
        ];
        for (code, edits, error) in cases {
            assert_eq!(apply_edits(code, &edits), Err(error), "{code}");
        }
    }

    #[test]
    fn text_that_an_edit_brings_in_may_stand_there_already() {
        let edits = [edit("one", "two"), edit("two, two", "three")];
        assert_eq!(apply_edits("one, two", &edits).unwrap(), "three");
    }

    #[test]
    fn a_script_does_not_grow_beyond_its_limit() {
        let big = "x".repeat(MAX_CODE_LENGTH);
        assert_eq!(
            apply_edits("a b", &[edit("a", &big)]),
            Err(EditError::TooLong(0))
        );
    }

    #[test]
    fn a_script_may_grow_to_its_limit() {
        let big = "ü".repeat(MAX_CODE_LENGTH - 2);
        let edited = apply_edits("a b", &[edit("a", &big)]).unwrap();
        assert_eq!(edited.chars().count(), MAX_CODE_LENGTH);
    }

    #[test]
    fn the_place_of_a_version_tells_its_number() {
        let version = VersionSummary {
            number: 7,
            created_at: OffsetDateTime::UNIX_EPOCH,
            created_by: UserId::new(Uuid::from_u128(1)),
            is_current: true,
        };
        assert_eq!(VersionSummary::number_at(version.place()), 7);
        let beyond = Cursor {
            id: Uuid::from_u128(u128::MAX),
            ..version.place()
        };
        assert_eq!(VersionSummary::number_at(beyond), u32::MAX);
    }
}
