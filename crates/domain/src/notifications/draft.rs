//! Drafts of notifications and their limits.

use serde_json::{Map, Value};

use crate::{
    names::is_one_line,
    refusal::{ErrorCode, Refuse},
};

/// Maximum number of characters of a title.
pub const MAX_TITLE: usize = 200;
/// Maximum number of characters of a body.
pub const MAX_BODY: usize = 10_000;
/// Maximum number of characters of an action's path.
pub const MAX_ACTION_URL: usize = 2_000;
/// Maximum number of characters of a deduplication key.
pub const MAX_DEDUPE_KEY: usize = 500;
/// Maximum size of the stored context in bytes of JSON.
pub const MAX_DATA_BYTES: usize = 65_536;
/// Keys of the stored context that are reserved for attribution.
pub const RESERVED_DATA_KEYS: [&str; 2] = ["sender", "api_key_id"];

/// A notification to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// Title: one line.
    pub title: String,
    /// Deduplication key: a repeat to the same user is dropped.
    pub dedupe_key: String,
    /// Body; may be empty.
    pub body: String,
    /// Path on the platform that it opens; may be empty.
    pub action_url: String,
    /// Context to store with it.
    pub data: Option<Map<String, Value>>,
}

/// Reason why a notification is refused, displayed to the sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// A text is too short or too long.
    #[error("{field} must have {least} to {most} characters")]
    Length {
        /// Field name.
        field: &'static str,
        /// Minimum number of characters.
        least: usize,
        /// Maximum number of characters.
        most: usize,
    },
    /// The title is blank or has several lines.
    #[error(
        "title must be one line: not blank, and without control characters such as line breaks"
    )]
    Title,
    /// The action is no path of the platform.
    #[error(
        "action_url must be a path of the platform, such as /jobs/<job_id>: it starts with one /, \
         has no backslash and no control character, and at most {MAX_ACTION_URL} characters"
    )]
    ActionUrl,
    /// The context uses a reserved key.
    #[error("data: the key \"{0}\" is reserved for sender attribution")]
    ReservedKey(&'static str),
    /// The context is too large.
    #[error("data must be at most {MAX_DATA_BYTES} bytes as JSON")]
    DataTooLarge,
}

impl Refuse for DraftError {
    fn code(&self) -> ErrorCode {
        ErrorCode::InvalidNotification
    }
}

/// Regular expression of action URLs; their length is bounded besides.
pub const ACTION_URL_PATTERN: &str =
    r"^(/([^/\\\u0000-\u001F\u007F-\u009F][^\\\u0000-\u001F\u007F-\u009F]*)?)?$";

impl Draft {
    /// Refuses an invalid draft.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self) -> Result<(), DraftError> {
        length("title", &self.title, 1, MAX_TITLE)?;
        if !is_one_line(&self.title) {
            return Err(DraftError::Title);
        }
        length("dedupe_key", &self.dedupe_key, 1, MAX_DEDUPE_KEY)?;
        length("body", &self.body, 0, MAX_BODY)?;
        // A link elsewhere would borrow the trust in the platform's own messages.
        if !self.action_url.is_empty() && !is_platform_path(&self.action_url) {
            return Err(DraftError::ActionUrl);
        }
        let Some(data) = &self.data else {
            return Ok(());
        };
        if let Some(key) = RESERVED_DATA_KEYS
            .into_iter()
            .find(|key| data.contains_key(*key))
        {
            return Err(DraftError::ReservedKey(key));
        }
        let size = serde_json::to_vec(data).map_or(usize::MAX, |json| json.len());
        if size > MAX_DATA_BYTES {
            Err(DraftError::DataTooLarge)
        } else {
            Ok(())
        }
    }
}

fn length(field: &'static str, text: &str, least: usize, most: usize) -> Result<(), DraftError> {
    if (least..=most).contains(&text.chars().count()) {
        Ok(())
    } else {
        Err(DraftError::Length { field, least, most })
    }
}

/// Returns true if a browser that follows the path stays on the platform. `//host` and `/\host`
/// leave it; browsers remove tabs and line ends first.
#[must_use]
pub fn is_platform_path(text: &str) -> bool {
    text.starts_with('/')
        && !text.starts_with("//")
        && !text.contains(|character: char| character == '\\' || character.is_control())
        && text.chars().count() <= MAX_ACTION_URL
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft {
            title: "done".to_owned(),
            dedupe_key: "run 1".to_owned(),
            ..Draft::default()
        }
    }

    #[test]
    fn a_title_and_a_key_are_enough() {
        assert_eq!(draft().check(), Ok(()));
    }

    #[test]
    fn a_title_is_one_line() {
        for title in ["  ", "a\nb", "a\r", "\u{1b}[1m"] {
            let draft = Draft {
                title: title.to_owned(),
                ..draft()
            };
            assert_eq!(draft.check(), Err(DraftError::Title), "{title:?}");
        }
    }

    #[test]
    fn lengths_are_counted_in_characters() {
        let title = |count| {
            Draft {
                title: "ü".repeat(count),
                ..draft()
            }
            .check()
        };
        assert_eq!((title(1), title(200)), (Ok(()), Ok(())));
        assert!(title(0).is_err() && title(201).is_err());
        let body = |count| {
            Draft {
                body: "ü".repeat(count),
                ..draft()
            }
            .check()
        };
        assert_eq!((body(0), body(10_000)), (Ok(()), Ok(())));
        assert!(body(10_001).is_err());
        let key = |count| {
            Draft {
                dedupe_key: "ü".repeat(count),
                ..draft()
            }
            .check()
        };
        assert_eq!((key(1), key(500)), (Ok(()), Ok(())));
        assert!(key(0).is_err() && key(501).is_err());
    }

    #[test]
    fn actions_stay_on_the_platform() {
        let check = |url: &str| {
            Draft {
                action_url: url.to_owned(),
                ..draft()
            }
            .check()
        };
        let long = format!("/{}", "a".repeat(MAX_ACTION_URL - 1));
        for fine in [
            "",
            "/",
            "/jobs/1",
            "/files?query=a&b=//c",
            "/a//b",
            "/#x",
            &long,
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        let longer = format!("{long}a");
        for bad in [
            "jobs/1",
            "//evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/\\evil.example",
            "/\t/evil.example",
            "\n/jobs",
            " /jobs",
            &longer,
        ] {
            assert_eq!(check(bad), Err(DraftError::ActionUrl), "{bad}");
        }
    }

    #[test]
    fn keys_for_attribution_are_the_platforms() {
        let data = |key: &str, value: &str| Draft {
            data: Some(Map::from_iter([(key.to_owned(), Value::from(value))])),
            ..draft()
        };
        for key in RESERVED_DATA_KEYS {
            assert_eq!(data(key, "x").check(), Err(DraftError::ReservedKey(key)));
        }
        assert_eq!(data("Sender", "x").check(), Ok(()));
        assert_eq!(
            data("a", &"x".repeat(MAX_DATA_BYTES)).check(),
            Err(DraftError::DataTooLarge)
        );
    }

    #[test]
    fn context_has_at_most_65536_bytes_as_json() {
        let with = |value: usize| {
            let data = Map::from_iter([("a".to_owned(), Value::from("x".repeat(value)))]);
            Draft {
                data: Some(data),
                ..draft()
            }
        };
        let frame = r#"{"a":""}"#.len();
        assert_eq!(with(MAX_DATA_BYTES - frame).check(), Ok(()));
        assert_eq!(
            with(MAX_DATA_BYTES - frame + 1).check(),
            Err(DraftError::DataTooLarge)
        );
    }
}
