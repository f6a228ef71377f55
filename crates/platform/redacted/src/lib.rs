//! Values that must not appear in logs. A type that derives `Debug` holds its secrets in one of these.
//!
//! **Invariants.** Knows no other crate of the platform. No `Debug` and no `Display` of a type here shows
//! a value. `tests/it.rs` reads the sources of all crates and names derived ones that would.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use serde::{Deserialize, Serialize};

/// A text that is or may contain a secret, such as a key or a URL with a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps the text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Environment variables. Their names are displayed, their values are not.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Variables(Vec<(String, String)>);

impl Variables {
    /// No variables.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

impl Deref for Variables {
    type Target = Vec<(String, String)>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Variables {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl From<Vec<(String, String)>> for Variables {
    fn from(variables: Vec<(String, String)>) -> Self {
        Self(variables)
    }
}

impl FromIterator<(String, String)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl IntoIterator for Variables {
    type Item = (String, String);
    type IntoIter = std::vec::IntoIter<(String, String)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'v> IntoIterator for &'v Variables {
    type Item = &'v (String, String);
    type IntoIter = std::slice::Iter<'v, (String, String)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// A URL without its query, which may hold a token or a signature, and without all that stands before an
/// `@`, which may hold a password.
#[must_use]
pub fn redacted_url(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    // The last `@`: a password may contain some that are not escaped.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((_, rest)) => ("…@", rest),
        None => ("", rest),
    };
    match rest.split_once('?') {
        Some((rest, _)) => format!("{scheme}{user}{rest}?…"),
        None => format!("{scheme}{user}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_nowhere() {
        let secret = Secret::new("ldk_abc".to_owned());
        assert_eq!(format!("{secret:?} {secret:#?}"), "Secret(…) Secret(…)");
        assert_eq!(secret.reveal(), "ldk_abc");
    }

    #[test]
    fn variables_are_shown_by_their_names() {
        let pairs = vec![("LABDATA_API_KEY".to_owned(), "ldk_abc".to_owned())];
        let variables = Variables::from(pairs.clone());
        assert_eq!(format!("{variables:?}"), "{\"LABDATA_API_KEY\"}");
        assert_eq!(*variables, pairs);
        // They reach the process that they are for.
        let sent = serde_json::to_string(&variables).unwrap();
        assert_eq!(serde_json::from_str::<Variables>(&sent).unwrap(), variables);
    }

    #[test]
    fn a_url_is_shown_without_what_permits() {
        for (url, displayed) in [
            ("https://lab.example.org/a/b", "https://lab.example.org/a/b"),
            ("https://u:p@host:1/a", "https://…@host:1/a"),
            ("smtp://u:p%40@host", "smtp://…@host"),
            ("s3://key:se/cr?et@bucket/a", "s3://…@bucket/a"),
            ("http://u:p@w@host/a", "http://…@host/a"),
            ("http://host/a?X-Signature=1#x", "http://host/a?…"),
            ("u:p@host", "…@host"),
            ("no url", "no url"),
        ] {
            assert_eq!(redacted_url(url), displayed);
        }
    }
}
