//! Where the objects are kept, as a setting says it.

use std::{fmt, path::PathBuf, str::FromStr};

use percent_encoding::percent_decode_str;

/// A storage location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory of this machine.
    Local(PathBuf),
}

/// The setting names no location that this program can use; the text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLocation {
    /// A storage of a cloud.
    #[error("storage on {0}:// is not supported yet; use file://<directory>")]
    NotYet(String),
    /// Anything else.
    #[error("{0:?} is no storage URL; use file://<directory>")]
    Unknown(String),
}

impl FromStr for Location {
    type Err = InvalidLocation;

    /// Reads `file://<directory>`; a relative directory (`file://./objects`) is one of the
    /// directory in which the program was started.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || InvalidLocation::Unknown(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(unknown)?;
        match scheme.to_ascii_lowercase().as_str() {
            "file" => {
                let directory = percent_decode_str(rest)
                    .decode_utf8()
                    .map_err(|_| unknown())?;
                if directory.is_empty() || directory.contains('\0') {
                    return Err(unknown());
                }
                Ok(Self::Local(PathBuf::from(directory.into_owned())))
            }
            "s3" | "gs" | "az" => Err(InvalidLocation::NotYet(scheme.to_ascii_lowercase())),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(directory) => write!(f, "file://{}", directory.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_urls_name_directories() {
        let cases = [
            (
                "file:///var/lib/labdata/objects",
                "/var/lib/labdata/objects",
            ),
            ("file://./.labdata/objects", "./.labdata/objects"),
            ("FILE:///a%20b", "/a b"),
        ];
        for (url, directory) in cases {
            assert_eq!(
                url.parse(),
                Ok(Location::Local(PathBuf::from(directory))),
                "{url}"
            );
        }
    }

    #[test]
    fn other_schemes_are_refused_in_one_clear_line() {
        let cases = [
            (
                "s3://bucket/prefix",
                "storage on s3:// is not supported yet; use file://<directory>",
            ),
            (
                "ftp://host",
                "\"ftp://host\" is no storage URL; use file://<directory>",
            ),
            (
                "/var/lib",
                "\"/var/lib\" is no storage URL; use file://<directory>",
            ),
            (
                "file://",
                "\"file://\" is no storage URL; use file://<directory>",
            ),
        ];
        for (url, line) in cases {
            let error = url.parse::<Location>().unwrap_err().to_string();
            assert_eq!(error, line);
            assert!(!error.contains('\n'));
        }
    }
}
