//! Positions in the event log.

use std::{fmt, str::FromStr};

/// Position in the event log: events are read in this order, regardless of the order in which their
/// transactions commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventPosition {
    /// Number of the transaction that recorded the event.
    pub transaction: u64,
    /// Number of the event, increasing within its transaction.
    pub number: u64,
}

impl EventPosition {
    /// The position before all events.
    pub const START: Self = Self {
        transaction: 0,
        number: 0,
    };
}

/// As it is displayed to clients: two hexadecimal numbers.
impl fmt::Display for EventPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.transaction, self.number)
    }
}

/// A text that is not the id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is not the id of an event")]
pub struct InvalidEventPosition;

impl FromStr for EventPosition {
    type Err = InvalidEventPosition;

    fn from_str(text: &str) -> Result<Self, InvalidEventPosition> {
        let (transaction, number) = text.split_once('-').ok_or(InvalidEventPosition)?;
        Ok(Self {
            transaction: hexadecimal(transaction)?,
            number: hexadecimal(number)?,
        })
    }
}

/// A number that the database can hold.
fn hexadecimal(text: &str) -> Result<u64, InvalidEventPosition> {
    // `from_str_radix` also takes `+` and capital letters; a position has one spelling.
    let is_canonical = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let number = u64::from_str_radix(text, 16).ok();
    number
        // The log has them as `bigint`, so a larger number is no position.
        .filter(|number| is_canonical && i64::try_from(*number).is_ok())
        .ok_or(InvalidEventPosition)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_position_reads_back(transaction in 0..=i64::MAX, number in 0..=i64::MAX) {
            let position = EventPosition {
                transaction: transaction.unsigned_abs(),
                number: number.unsigned_abs(),
            };
            prop_assert_eq!(position.to_string().parse(), Ok(position));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            if let Ok(position) = text.parse::<EventPosition>() {
                prop_assert_eq!(position.to_string().parse(), Ok(position));
            }
        }
    }

    #[test]
    fn texts_that_are_no_position_are_refused() {
        for text in [
            "",
            "-",
            "1",
            "1-",
            "-1",
            "+1-2",
            "1-2-3",
            "1 -2",
            "g-1",
            "A-1",
            "8000000000000000-0",
            "11112222333344445-0",
        ] {
            assert_eq!(
                text.parse::<EventPosition>(),
                Err(InvalidEventPosition),
                "{text}"
            );
        }
    }

    #[test]
    fn positions_are_ordered_by_transaction_first() {
        let position = |transaction, number| EventPosition {
            transaction,
            number,
        };
        assert!(position(1, 9) < position(2, 3) && position(2, 3) < position(2, 4));
    }
}
