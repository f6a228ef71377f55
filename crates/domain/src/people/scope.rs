//! Scopes of API keys.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Permission of an API key. A scope never implies another (contract §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Reading files, tables, jobs.
    Read,
    /// Uploading files, running jobs, writing data.
    Write,
    /// Managing keys, tables and instruments.
    Admin,
}

impl Scope {
    /// Every scope, in the order in which they are displayed.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// Returns its name in the API, on the command line and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    /// Returns the scope of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Admin => 4,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// Returns the set of all scopes.
    #[must_use]
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Returns true if the scope is in the set.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Returns true if no scope is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the scopes of the set in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL
            .into_iter()
            .filter(move |scope| self.contains(*scope))
    }

    /// Returns the scopes that both sets have.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the scopes of this set that the other one lacks.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the first scope of this set that `granted` lacks.
    #[must_use]
    pub fn first_missing_from(self, granted: Self) -> Option<Scope> {
        self.iter().find(|scope| !granted.contains(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_never_implies_another() {
        let admin: Scopes = [Scope::Admin].into_iter().collect();
        assert!(!admin.contains(Scope::Read));
        assert!(!admin.contains(Scope::Write));
        assert_eq!(Scopes::all().first_missing_from(admin), Some(Scope::Read));
    }

    #[test]
    fn scopes_have_names_that_read_back() {
        for (scope, name) in [
            (Scope::Read, "read"),
            (Scope::Write, "write"),
            (Scope::Admin, "admin"),
        ] {
            assert_eq!(scope.as_str(), name);
            assert_eq!(scope.to_string(), name);
            assert_eq!(Scope::from_name(name), Some(scope));
        }
        assert_eq!(Scope::from_name("Read"), None);
    }

    #[test]
    fn a_set_has_each_scope_once_in_the_order_in_which_they_are_shown() {
        let twice: Scopes = [Scope::Write, Scope::Read, Scope::Read]
            .into_iter()
            .collect();
        let presented: Vec<Scope> = twice.iter().collect();
        assert_eq!(presented, [Scope::Read, Scope::Write]);
        assert_eq!(twice.first_missing_from(Scopes::all()), None);
        assert!(!twice.is_empty());
        assert!(Scopes::default().is_empty());
        assert_eq!(Scopes::default().iter().count(), 0);
    }
}
