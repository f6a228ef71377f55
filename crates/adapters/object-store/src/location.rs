//! Storage URLs.

use std::{fmt, path::PathBuf, str::FromStr};

use labdata_redacted::redacted_url;
use percent_encoding::percent_decode_str;

/// The provider of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// Amazon S3, or a server with the same API.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage; a bucket is a container there.
    Azure,
}

impl Cloud {
    /// Every cloud.
    pub const ALL: [Self; 3] = [Self::S3, Self::Gcs, Self::Azure];

    /// Scheme of the cloud's storage URLs.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gs",
            Self::Azure => "az",
        }
    }
}

/// A storage location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory of this machine.
    Local(PathBuf),
    /// A bucket of a cloud.
    Bucket {
        /// Provider.
        cloud: Cloud,
        /// Name of the bucket.
        name: String,
        /// Prefix of all objects' paths; empty, or names separated by slashes.
        prefix: String,
    },
}

/// The receiver of uploads by signed URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadMode {
    /// The platform's endpoint, which passes the bytes on.
    Gateway,
    /// The cloud itself.
    Direct,
}

impl Location {
    /// The default mode: direct if the cloud enforces everything that a URL must (docs/adr/0010).
    #[must_use]
    pub const fn default_mode(&self) -> UploadMode {
        match self {
            Self::Bucket {
                cloud: Cloud::Gcs, ..
            } => UploadMode::Direct,
            Self::Local(_) | Self::Bucket { .. } => UploadMode::Gateway,
        }
    }
}

/// The setting is not a usable storage URL. The text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no storage URL: it takes file://<directory>, s3://<bucket>/<prefix>, \
     gs://<bucket>/<prefix> or az://<container>/<prefix>"
)]
pub struct InvalidLocation(String);

impl FromStr for Location {
    type Err = InvalidLocation;

    /// Reads `file://<directory>`, relative (`file://./objects`) to the working directory, or
    /// `s3://`, `gs://` or `az://` with a bucket and an optional prefix. Parts of a prefix have only
    /// letters, digits, `-`, `_` and `.`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Someone may have written credentials before the bucket.
        let invalid = || InvalidLocation(redacted_url(text));
        let (scheme, rest) = text.split_once("://").ok_or_else(invalid)?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme == "file" {
            let directory = percent_decode_str(rest)
                .decode_utf8()
                .map_err(|_| invalid())?;
            if directory.is_empty() || directory.contains('\0') {
                return Err(invalid());
            }
            return Ok(Self::Local(PathBuf::from(directory.into_owned())));
        }
        let cloud = Cloud::ALL
            .into_iter()
            .find(|cloud| cloud.scheme() == scheme)
            .ok_or_else(invalid)?;
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        // Characters that need no escaping, neither in URLs nor in what clouds sign.
        let plain = |part: &str| {
            !matches!(part, "" | "." | "..")
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        };
        if !plain(name) || !(prefix.is_empty() || prefix.split('/').all(plain)) {
            return Err(invalid());
        }
        Ok(Self::Bucket {
            cloud,
            name: name.to_owned(),
            prefix: prefix.to_owned(),
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(directory) => write!(f, "file://{}", directory.display()),
            Self::Bucket {
                cloud,
                name,
                prefix,
            } if prefix.is_empty() => write!(f, "{}://{name}", cloud.scheme()),
            Self::Bucket {
                cloud,
                name,
                prefix,
            } => write!(f, "{}://{name}/{prefix}", cloud.scheme()),
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
    fn cloud_urls_name_a_bucket_and_perhaps_a_prefix() {
        let cases = [
            ("s3://lab", Cloud::S3, "lab", "", UploadMode::Gateway),
            ("S3://lab/", Cloud::S3, "lab", "", UploadMode::Gateway),
            ("gs://lab/a/b", Cloud::Gcs, "lab", "a/b", UploadMode::Direct),
            ("az://lab/a/", Cloud::Azure, "lab", "a", UploadMode::Gateway),
        ];
        for (url, cloud, name, prefix, mode) in cases {
            let location: Location = url.parse().unwrap();
            let (name, prefix) = (name.to_owned(), prefix.to_owned());
            let expected = Location::Bucket {
                cloud,
                name,
                prefix,
            };
            assert_eq!(location, expected);
            assert_eq!(location.default_mode(), mode);
            assert_eq!(location.to_string().parse(), Ok(expected), "{location}");
        }
    }

    #[test]
    fn anything_else_is_refused_in_one_clear_line() {
        for url in [
            "ftp://host",
            "/var/lib",
            "file://",
            "s3://",
            "s3:///prefix",
            "gs://bucket//a",
            "gs://bucket/a/../b",
            "az://container/with space",
            "s3://user:secret@bucket/",
            "s3://bucket/a?region=x",
        ] {
            let error = url.parse::<Location>().unwrap_err().to_string();
            assert!(error.contains("it takes file://<directory>"), "{error}");
            assert!(!error.contains('\n'));
        }
    }
}
