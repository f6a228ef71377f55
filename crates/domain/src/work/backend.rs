//! Job backends: who sees their runs, and what follows from it.

use std::fmt;

use super::WorkKind;
use crate::refusal::{ErrorCode, Refuse};

/// Visibility of a backend's runs: script, environment and log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RunVisibility {
    /// Only the platform sees them.
    #[default]
    Platform,
    /// Everyone with access to the backend sees and controls the runs of all organizations.
    BackendUsers,
}

/// Rules for a job backend, from its kind and the operator's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BackendPolicy {
    /// Work that it does.
    pub work: WorkKind,
    /// Visibility of the backend's runs.
    pub visibility: RunVisibility,
    /// True if organizations may share a backend whose users see the runs of all of them.
    pub allows_sharing: bool,
}

impl BackendPolicy {
    /// Returns true if the decision depends on the number of organizations.
    #[must_use]
    pub const fn depends_on_organizations(self) -> bool {
        matches!(self.visibility, RunVisibility::BackendUsers) && !self.allows_sharing
    }

    /// Refuses a backend whose users would see the runs of several organizations, unless the operator
    /// allows it.
    ///
    /// # Errors
    /// [`SharedBackend`].
    pub const fn check(self, organizations: usize) -> Result<(), SharedBackend> {
        if self.depends_on_organizations() && organizations > 1 {
            Err(SharedBackend(self.work))
        } else {
            Ok(())
        }
    }

    /// Returns true if a run gets a nonce instead of its key, because others see its environment.
    #[must_use]
    pub const fn hides_keys(self) -> bool {
        matches!(self.visibility, RunVisibility::BackendUsers)
    }
}

/// Refusal of a backend for this work, because several organizations would share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBackend(pub WorkKind);

impl fmt::Display for SharedBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cluster, work, setting) = match self.0 {
            WorkKind::Run => ("LABDATA_JOB_BACKEND", "runs", "LABDATA_JOB_BACKEND"),
            WorkKind::Training => (
                "LABDATA_ML_BACKEND (unless set, that of LABDATA_JOB_BACKEND)",
                "trainings",
                "LABDATA_ML_BACKEND",
            ),
        };
        write!(
            f,
            "the platform has several organizations, and everyone with access to the Ray cluster of \
             {cluster} can read and control the {work} of all of them; the operator can set \
             {setting}=local, operate one platform per organization, or accept this with \
             LABDATA_JOB_RAY_SHARED=true"
        )
    }
}

impl std::error::Error for SharedBackend {}

impl Refuse for SharedBackend {
    fn code(&self) -> ErrorCode {
        ErrorCode::BackendUnfit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_visible_backend_is_refused_to_several_organizations_and_only_without_the_opt_in() {
        for (visibility, allows_sharing, organizations, expected) in [
            (RunVisibility::BackendUsers, false, 0, Ok(())),
            (RunVisibility::BackendUsers, false, 1, Ok(())),
            (
                RunVisibility::BackendUsers,
                false,
                2,
                Err(SharedBackend(WorkKind::Run)),
            ),
            (RunVisibility::BackendUsers, true, 2, Ok(())),
            (RunVisibility::Platform, false, 2, Ok(())),
        ] {
            let policy = BackendPolicy {
                work: WorkKind::Run,
                visibility,
                allows_sharing,
            };
            assert_eq!(policy.check(organizations), expected, "{policy:?}");
        }
    }

    #[test]
    fn the_refusal_names_what_the_operator_can_set() {
        for (work, setting) in [
            (WorkKind::Run, "LABDATA_JOB_BACKEND=local"),
            (WorkKind::Training, "LABDATA_ML_BACKEND=local"),
        ] {
            let text = SharedBackend(work).to_string();
            for setting in [setting, "LABDATA_JOB_RAY_SHARED=true"] {
                assert!(text.contains(setting), "{text}");
            }
        }
    }

    #[test]
    fn the_opt_in_does_not_show_keys() {
        let policy = BackendPolicy {
            visibility: RunVisibility::BackendUsers,
            allows_sharing: true,
            ..BackendPolicy::default()
        };
        assert!(policy.hides_keys());
    }
}
