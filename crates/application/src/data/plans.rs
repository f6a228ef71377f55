//! Plans of reads, which are made again when their tables change.

use labdata_domain::refusal::ErrorCode;

use crate::Error;

/// Number of attempts to plan against tables that keep changing.
pub(super) const MAX_PLANS: usize = 10;

/// Counts the plans of one read, against tables that change between a plan and its read.
#[derive(Debug, Default)]
pub struct Plans {
    outdated: usize,
}

impl Plans {
    /// Returns without an error if the read failed because its tables have changed, so that it can be planned again.
    ///
    /// # Errors
    /// The failure, if it is another one; [`Error::busy`] after too many plans.
    pub fn again(&mut self, failure: Error) -> Result<(), Error> {
        match failure {
            Error::Refused(refusal) if refusal.code == ErrorCode::TablesChanged => {
                self.outdated += 1;
                if self.outdated == MAX_PLANS {
                    Err(Error::busy())
                } else {
                    Ok(())
                }
            }
            other => Err(other),
        }
    }

    /// Returns true until a plan was outdated.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.outdated == 0
    }
}

/// Plans and reads, and again if the tables have changed between the two. A macro, as the futures of
/// closures are not known to be `Send`.
macro_rules! planned_anew {
    ($read:expr) => {{
        let mut plans = $crate::data::plans::Plans::default();
        loop {
            match $read.await {
                Err(failure) => {
                    if let Err(error) = plans.again(failure) {
                        break Err(error);
                    }
                }
                done => break done,
            }
        }
    }};
}
pub(super) use planned_anew;

#[cfg(test)]
mod tests {
    use labdata_domain::{conflict::Conflict, refusal::Resource};
    use labdata_ports::PortError;

    use super::*;

    #[test]
    fn a_read_is_planned_again_only_because_its_tables_changed_and_not_for_ever() {
        let changed = || Error::from(PortError::Conflict(Conflict::TablesChanged));
        let mut plans = Plans::default();
        assert!(plans.is_first());
        for _ in 1..MAX_PLANS {
            plans.again(changed()).unwrap();
        }
        assert!(!plans.is_first());
        let Err(Error::Refused(refusal)) = plans.again(changed()) else {
            panic!("tables that keep changing are no reason for a conflict");
        };
        assert_eq!(refusal.code, ErrorCode::Busy);
        let other = Error::not_found(Resource::Table);
        assert!(Plans::default().again(other).is_err());
    }
}
