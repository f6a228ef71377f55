//! Given values, by key, and what each of them takes.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use labdata_redacted::redacted_url;
use url::Url;

use super::{SettingsError, source::Given};

/// Given values by key.
pub(super) struct Values<'a>(pub(super) &'a BTreeMap<&'static str, Given>);

impl Values<'_> {
    /// Parses the value, if given. Where `parse` returns `None`, the error names the accepted values
    /// by `takes`.
    pub(super) fn parsed<T>(
        &self,
        key: &str,
        takes: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(Given { name, value }) = self.0.get(key) else {
            return Ok(None);
        };
        if let Some(parsed) = parse(value) {
            return Ok(Some(parsed));
        }
        // A URL may have a password, also one that does not parse.
        let displayed = if value.contains("://") {
            redacted_url(value)
        } else {
            value.clone()
        };
        Err(SettingsError(format!(
            "{name} is {displayed:?}; it takes {takes}"
        )))
    }

    /// Like [`Self::parsed`], for values that may hold a secret: the error does not repeat them.
    pub(super) fn secret<T>(
        &self,
        key: &str,
        takes: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(Given { name, value }) = self.0.get(key) else {
            return Ok(None);
        };
        match parse(value) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(SettingsError(format!(
                "{name} is malformed; it takes {takes}"
            ))),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, SettingsError> {
        self.parsed(key, "a text that is not blank", |value| {
            let value = value.trim();
            (!value.is_empty()).then(|| value.to_owned())
        })
    }

    pub(super) fn number(&self, key: &str, default: u32) -> Result<u32, SettingsError> {
        Ok(self.optional_number(key)?.unwrap_or(default))
    }

    pub(super) fn optional_number(&self, key: &str) -> Result<Option<u32>, SettingsError> {
        let parse = |value: &str| value.trim().parse().ok().filter(|number| *number >= 1);
        self.parsed(key, "a whole number from 1 to 4294967295", parse)
    }

    pub(super) fn bytes(&self, key: &str) -> Result<Option<u64>, SettingsError> {
        let parse = |value: &str| value.trim().parse().ok().filter(|bytes| *bytes >= 1);
        self.parsed(key, "a number of bytes, at least 1", parse)
    }

    /// Applies an adapter's check to a value that was given.
    pub(super) fn check(
        &self,
        key: &str,
        value: &str,
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> Result<(), SettingsError> {
        check(value).map_err(|reason| {
            let name = self.0.get(key).map_or(key, |given| given.name.as_str());
            // The error is one line, which the reason of a library need not be.
            SettingsError(format!("{name}: {}", reason.replace('\n', " ")))
        })
    }

    pub(super) fn directory(&self, key: &str) -> Result<Option<PathBuf>, SettingsError> {
        self.path(key, "a directory")
    }

    /// A path that must exist as `is_there` wants it.
    pub(super) fn existing(
        &self,
        key: &str,
        takes: &str,
        is_there: impl Fn(&Path) -> bool,
    ) -> Result<Option<PathBuf>, SettingsError> {
        self.parsed(key, takes, |value| {
            (!value.is_empty() && !value.contains('\0'))
                // Absolute: PostgreSQL and scripts run in other working directories.
                .then(|| std::path::absolute(value).ok())
                .flatten()
                .filter(|path| is_there(path))
        })
    }

    pub(super) fn path(&self, key: &str, takes: &str) -> Result<Option<PathBuf>, SettingsError> {
        self.parsed(key, takes, |value| {
            (!value.is_empty() && !value.contains('\0'))
                .then(|| std::path::absolute(value).ok())
                .flatten()
        })
    }

    pub(super) fn http_url(&self, key: &str) -> Result<Option<String>, SettingsError> {
        self.parsed(key, "a URL such as https://lab.example.org", |value| {
            http_url(value).map(|_| value.trim_end_matches('/').to_owned())
        })
    }
}

pub(super) fn http_url(value: &str) -> Option<Url> {
    let url = Url::parse(value).ok()?;
    // Paths are appended to it, which a query or fragment would swallow.
    let plain = url.query().is_none() && url.fragment().is_none();
    (matches!(url.scheme(), "http" | "https") && url.has_host() && plain).then_some(url)
}
