//! Scripts of jobs: text, inline metadata, versions and exact edits.

mod metadata;
mod requirement;
mod text;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    ids::UserId,
    page::Cursor,
    refusal::{ErrorCode, Refuse},
};

pub use metadata::ScriptMetadata;
pub use text::{ScriptFlaw, foreign_encoding, normalized};

/// Maximum number of characters of a script.
pub const MAX_CODE_LENGTH: usize = 1_000_000;

/// Maximum number of edits of one change.
pub const MAX_EDITS: usize = 100;

/// Saved version of a job's script; immutable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptVersion {
    /// Version number, starting at 1 within the job.
    pub number: u32,
    /// Python source, [`normalized`].
    pub code: String,
    /// Time at which it was saved.
    pub created_at: OffsetDateTime,
    /// User who saved it.
    pub created_by: UserId,
}

/// Metadata of a script version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSummary {
    /// Version number, starting at 1 within the job.
    pub number: u32,
    /// Time at which it was saved.
    pub created_at: OffsetDateTime,
    /// User who saved it.
    pub created_by: UserId,
    /// True if the next run uses it.
    pub is_current: bool,
}

/// Returns true if the version of that number is the one that the next run uses; `current` is the
/// job's version number.
#[must_use]
pub fn is_current_version(number: u32, current: Option<u32>) -> bool {
    current == Some(number)
}

impl VersionSummary {
    /// The summary of a version of a job whose version number is `current`.
    #[must_use]
    pub fn new(
        number: u32,
        created_at: OffsetDateTime,
        created_by: UserId,
        current: Option<u32>,
    ) -> Self {
        Self {
            number,
            created_at,
            created_by,
            is_current: is_current_version(number, current),
        }
    }

    /// Returns its position in the list of versions, which is ordered by number alone.
    #[must_use]
    pub fn place(&self) -> Cursor {
        Cursor {
            // A cursor is a time and a UUID; the number alone identifies a version.
            at: OffsetDateTime::UNIX_EPOCH,
            id: Uuid::from_u128(self.number.into()),
        }
    }

    /// Returns the number of the version at that position.
    #[must_use]
    pub fn number_at(place: Cursor) -> u32 {
        u32::try_from(place.id.as_u128()).unwrap_or(u32::MAX)
    }
}

/// Exact replacement of text in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Text to replace; it must occur exactly once.
    pub old: String,
    /// Replacement.
    pub new: String,
}

/// Reason why edits fail. The number is the index of the edit, starting at 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The job has no script.
    #[error("this job has no script to edit: give its code")]
    NoScript,
    /// The text to replace is empty.
    #[error("edits[{0}]: old_string is empty; give the text that is to be replaced")]
    Empty(usize),
    /// The text does not occur in the script.
    #[error(
        "edits[{0}]: old_string is not in the script as the edits before it leave it; nothing was \
         saved"
    )]
    Missing(usize),
    /// The text occurs more than once.
    #[error(
        "edits[{0}]: old_string is in the script more than once; give more of the text around it. \
         Nothing was saved"
    )]
    Ambiguous(usize),
    /// The script would be too long.
    #[error("edits[{0}]: the script would have more than {MAX_CODE_LENGTH} characters")]
    TooLong(usize),
}

impl Refuse for EditError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::NoScript => ErrorCode::ScriptMissing,
            Self::Empty(_) | Self::Missing(_) | Self::Ambiguous(_) | Self::TooLong(_) => {
                ErrorCode::InvalidEdit
            }
        }
    }
}

/// Applies edits one after the other and returns the new script. Overlapping occurrences count
/// separately. Lines of edits end like those of the stored script, regardless of the client sends.
///
/// # Errors
/// [`EditError`] for the first edit that does not match exactly once.
pub fn apply_edits(code: &str, edits: &[Edit]) -> Result<String, EditError> {
    let mut code = code.to_owned();
    for (index, edit) in edits.iter().enumerate() {
        let (old, new) = (
            text::normalized_lines(&edit.old),
            text::normalized_lines(&edit.new),
        );
        let first = old.chars().next().ok_or(EditError::Empty(index))?;
        let start = code.find(&old).ok_or(EditError::Missing(index))?;
        // One character further, not behind the match: overlapping occurrences are ambiguous, too.
        let behind = start + first.len_utf8();
        if code.get(behind..).is_some_and(|rest| rest.contains(&old)) {
            return Err(EditError::Ambiguous(index));
        }
        code.replace_range(start..start + old.len(), &new);
        // After each edit, so that no intermediate script takes more memory.
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
    fn each_edit_applies_to_the_result_of_the_one_before() {
        let edits = [edit("a = 1", "b = 2"), edit("b = 2", "c = 3")];
        assert_eq!(apply_edits("a = 1\n", &edits).unwrap(), "c = 3\n");
    }

    #[test]
    fn line_ends_of_edits_are_those_of_the_script() {
        let edits = [edit("a = 1\r\nb", "a = 2\rb")];
        assert_eq!(
            apply_edits("a = 1\nb = 1\n", &edits).unwrap(),
            "a = 2\nb = 1\n"
        );
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

    fn summary(number: u32, current: Option<u32>) -> VersionSummary {
        let user = UserId::new(Uuid::from_u128(1));
        VersionSummary::new(number, OffsetDateTime::UNIX_EPOCH, user, current)
    }

    #[test]
    fn only_the_version_that_the_job_names_is_current() {
        assert!(summary(7, Some(7)).is_current);
        assert!(!summary(6, Some(7)).is_current);
        assert!(!summary(8, Some(7)).is_current);
        assert!(!summary(1, None).is_current);
    }

    #[test]
    fn the_position_of_a_version_has_its_number() {
        let version = summary(7, Some(7));
        assert_eq!(VersionSummary::number_at(version.place()), 7);
        let beyond = Cursor {
            id: Uuid::from_u128(u128::MAX),
            ..version.place()
        };
        assert_eq!(VersionSummary::number_at(beyond), u32::MAX);
    }
}
