//! Outcomes of attempts at a delivery, and the state that they leave.

use time::OffsetDateTime;

/// Maximum number of characters of a stored error.
pub const MAX_STORED_ERROR: usize = 500;

/// State of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// It waits, or a worker has claimed it.
    Pending {
        /// Time from which on it may be claimed: the end of the lease if it is claimed.
        due_at: OffsetDateTime,
    },
    /// The receiver took it.
    Delivered {
        /// Time of the response.
        at: OffsetDateTime,
    },
    /// It was given up.
    Failed {
        /// Time of the last failure.
        at: OffsetDateTime,
    },
}

impl DeliveryState {
    /// Names of all states.
    pub const NAMES: [&'static str; 3] = ["pending", "delivered", "failed"];

    /// Its name in the API and the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Delivered { .. } => "delivered",
            Self::Failed { .. } => "failed",
        }
    }
}

/// Outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The receiver took it.
    Delivered {
        /// Time of the response.
        at: OffsetDateTime,
        /// Its status.
        status: u16,
    },
    /// It is tried again.
    Retry {
        /// Time of the failure.
        at: OffsetDateTime,
        /// Time of the next attempt.
        due_at: OffsetDateTime,
        /// Status of the response, if there was one.
        status: Option<u16>,
        /// Reason.
        error: String,
    },
    /// It is given up.
    Failed {
        /// Time of the failure.
        at: OffsetDateTime,
        /// Status of the response, if there was one.
        status: Option<u16>,
        /// Reason.
        error: String,
        /// The receiver wants no further deliveries.
        gone: bool,
    },
}

impl DeliveryOutcome {
    /// State of the delivery.
    #[must_use]
    pub const fn state(&self) -> DeliveryState {
        match self {
            Self::Delivered { at, .. } => DeliveryState::Delivered { at: *at },
            Self::Retry { due_at, .. } => DeliveryState::Pending { due_at: *due_at },
            Self::Failed { at, .. } => DeliveryState::Failed { at: *at },
        }
    }

    /// Status of the response, if there was one.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Delivered { status, .. } => Some(*status),
            Self::Retry { status, .. } | Self::Failed { status, .. } => *status,
        }
    }

    /// Reason of a failure.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Delivered { .. } => None,
            Self::Retry { error, .. } | Self::Failed { error, .. } => Some(error),
        }
    }
}

/// Shortens a reason and removes control characters: receivers may cause any text.
pub(super) fn stored_error(error: &str) -> String {
    let characters = error.chars().filter(|character| !character.is_control());
    characters.take(MAX_STORED_ERROR).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_errors_are_short_and_plain() {
        assert_eq!(stored_error("a\0b\nc"), "abc");
        assert_eq!(
            stored_error(&"é".repeat(9_999)).chars().count(),
            MAX_STORED_ERROR
        );
    }
}
