//! Isolation of scripts: its degrees, and the minimum under which none runs.

use std::fmt;

/// Degree of isolation of a script from the machine that runs it, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// The script may do everything that the platform's account may do.
    None,
    /// Landlock denies access to other files and processes.
    Landlock,
    /// The script has separate views of files, processes and network.
    Namespaces,
}

impl Isolation {
    /// All degrees, strongest first.
    pub const ALL: [Self; 3] = [Self::Namespaces, Self::Landlock, Self::None];

    /// Least isolation under which scripts run unless the operator sets another one.
    pub const DEFAULT_MINIMUM: Self = Self::Landlock;

    /// Returns the degree of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the name, as the setting `LABDATA_JOB_ISOLATION` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Landlock => "landlock",
            Self::Namespaces => "namespaces",
        }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A machine that offers less isolation than the minimum, so that no script runs on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsufficientIsolation {
    /// The minimum.
    pub minimum: Isolation,
    /// Why each degree from the minimum upwards failed.
    pub reasons: String,
}

impl fmt::Display for InsufficientIsolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { minimum, reasons } = self;
        let weaker: Vec<&str> = Isolation::ALL
            .into_iter()
            .filter(|it| it < minimum)
            .map(Isolation::name)
            .collect();
        write!(
            f,
            "the worker's machine isolates scripts less than LABDATA_JOB_ISOLATION={minimum} \
             demands ({reasons}); the operator can run the worker where the kernel allows more, or \
             accept less with LABDATA_JOB_ISOLATION={}",
            weaker.join(" or ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_isolate_more_than_landlock_and_landlock_more_than_nothing() {
        assert!(Isolation::Namespaces > Isolation::Landlock);
        assert!(Isolation::Landlock > Isolation::None);
        for isolation in Isolation::ALL {
            assert_eq!(Isolation::parse(isolation.name()), Some(isolation));
        }
        assert_eq!(Isolation::parse("Landlock"), None);
    }

    #[test]
    fn the_message_names_the_setting_and_every_weaker_value() {
        let text = InsufficientIsolation {
            minimum: Isolation::Namespaces,
            reasons: "namespaces: EPERM".to_owned(),
        }
        .to_string();
        assert!(text.contains("LABDATA_JOB_ISOLATION=namespaces demands (namespaces: EPERM)"));
        assert!(
            text.ends_with("LABDATA_JOB_ISOLATION=landlock or none"),
            "{text}"
        );
    }
}
