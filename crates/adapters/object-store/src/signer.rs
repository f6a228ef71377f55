//! Signed URLs of the platform's endpoint, the gateway.

use async_trait::async_trait;
use labdata_domain::{
    files::{ContentType, FilePath, ObjectKey},
    ids::OrganizationId,
};
use labdata_ports::{
    PortError,
    files::blob::{
        DownloadGrant, Granted, SignatureError, SignedRequest, SignedUpload, UploadGrant, UrlSigner,
    },
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use time::OffsetDateTime;

use crate::canonical::{Canonical, Key};

/// Path prefix of every signed URL; `<organization>/<object>` follows.
pub const STORAGE_PATH: &str = "/storage/";

const EXPIRES: &str = "x-labdata-expires";
const SIGNATURE: &str = "x-labdata-signature";
const FILE_NAME: &str = "response-file-name";
const RESPONSE_TYPE: &str = "response-content-type";

const CONTENT_TYPE: &str = "content-type";
const LENGTH_RANGE: &str = "x-goog-content-length-range";
const GENERATION: &str = "x-goog-if-generation-match";

/// All characters but the unreserved ones of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Signs URLs of the platform's endpoint and verifies requests to them. Uploads and downloads have
/// separate keys, both derived from the server's secret.
pub struct GatewaySigner {
    base: String,
    uploads: Key,
    downloads: Key,
}

impl GatewaySigner {
    /// Creates a signer for URLs below a base (scheme, host, port and an optional path, followed by
    /// [`STORAGE_PATH`]). All servers of a platform must use the same secret.
    #[must_use]
    pub fn new(public_url: &str, secret: &[u8; 32]) -> Self {
        Self {
            base: public_url.trim_end_matches('/').to_owned(),
            // Two keys, so that the signature of a download never admits an upload.
            uploads: Key::derive(secret, "labdata signed upload 1"),
            downloads: Key::derive(secret, "labdata signed download 1"),
        }
    }

    fn url(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        let query: Vec<String> = parameters
            .iter()
            .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, ESCAPED)))
            .collect();
        format!("{}{path}?{}", self.base, query.join("&"))
    }

    fn verify_upload(
        &self,
        request: &SignedRequest<'_>,
        query: &Query,
        object: ObjectKey,
    ) -> Result<UploadGrant, SignatureError> {
        let [expires, signature] = query.exactly([EXPIRES, SIGNATURE])?;
        let expires_at = expiry(expires)?;
        let content_type = header(request, CONTENT_TYPE)?;
        let range = header(request, LENGTH_RANGE)?;
        let generation = header(request, GENERATION)?;
        let canonical = Canonical {
            method: "PUT",
            path: request.path,
            expires: expires_at.unix_timestamp(),
            headers: &upload_headers(content_type, range, generation),
            parameters: &[],
        };
        if !self.uploads.verify(&canonical, signature) {
            return Err(SignatureError::Mismatch);
        }
        // Parsed after the check: the signature covers the text of the range, not its meaning.
        let limit = range
            .strip_prefix("0,")
            .and_then(|limit| limit.parse().ok());
        Ok(UploadGrant {
            object,
            content_type: ContentType::substitute(Some(content_type)),
            limit: limit.ok_or(SignatureError::Mismatch)?,
            expires_at,
        })
    }

    fn verify_download(
        &self,
        request: &SignedRequest<'_>,
        query: &Query,
        object: ObjectKey,
    ) -> Result<DownloadGrant, SignatureError> {
        let [content_type, name, expires, signature] =
            query.exactly([RESPONSE_TYPE, FILE_NAME, EXPIRES, SIGNATURE])?;
        let expires_at = expiry(expires)?;
        let canonical = Canonical {
            method: "GET",
            path: request.path,
            expires: expires_at.unix_timestamp(),
            headers: &[],
            parameters: &[(RESPONSE_TYPE, content_type), (FILE_NAME, name)],
        };
        if !self.downloads.verify(&canonical, signature) {
            return Err(SignatureError::Mismatch);
        }
        Ok(DownloadGrant {
            object,
            path: FilePath::parse(name).map_err(|_| SignatureError::Mismatch)?,
            content_type: ContentType::substitute(Some(content_type)),
            expires_at,
        })
    }
}

#[async_trait]
impl UrlSigner for GatewaySigner {
    async fn sign_upload(
        &self,
        organization: OrganizationId,
        grant: &UploadGrant,
    ) -> Result<SignedUpload, PortError> {
        let path = path(organization, grant.object);
        let expires = grant.expires_at.unix_timestamp();
        let range = format!("0,{}", grant.limit);
        let headers = upload_headers(grant.content_type.as_str(), &range, "0");
        let canonical = Canonical {
            method: "PUT",
            path: &path,
            expires,
            headers: &headers,
            parameters: &[],
        };
        let signature = self.uploads.sign(&canonical).ok_or_else(unsignable)?;
        let url = self.url(
            &path,
            &[(EXPIRES, &expires.to_string()), (SIGNATURE, &signature)],
        );
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(SignedUpload {
            url,
            headers: headers.into(),
        })
    }

    async fn sign_download(
        &self,
        organization: OrganizationId,
        grant: &DownloadGrant,
    ) -> Result<String, PortError> {
        let path = path(organization, grant.object);
        let expires = grant.expires_at.unix_timestamp();
        let shape = [
            (RESPONSE_TYPE, grant.content_type.as_str()),
            (FILE_NAME, grant.path.file_name()),
        ];
        let canonical = Canonical {
            method: "GET",
            path: &path,
            expires,
            headers: &[],
            parameters: &shape,
        };
        let signature = self.downloads.sign(&canonical).ok_or_else(unsignable)?;
        let [content_type, name] = shape;
        let expires = expires.to_string();
        Ok(self.url(
            &path,
            &[
                content_type,
                name,
                (EXPIRES, &expires),
                (SIGNATURE, &signature),
            ],
        ))
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        now: OffsetDateTime,
    ) -> Result<Granted, SignatureError> {
        let (organization, object) = ids(request.path).ok_or(SignatureError::Mismatch)?;
        let query = Query::parse(request.query)?;
        let (granted, expires_at) = match request.method {
            "PUT" => {
                let grant = self.verify_upload(request, &query, object)?;
                let expires_at = grant.expires_at;
                (Granted::Upload(organization, grant), expires_at)
            }
            // One URL for both: a client may ask for the size before it downloads.
            "GET" | "HEAD" => {
                let grant = self.verify_download(request, &query, object)?;
                let expires_at = grant.expires_at;
                (Granted::Download(organization, grant), expires_at)
            }
            _ => return Err(SignatureError::Mismatch),
        };
        // After the signature: only who has a real URL learns that it has expired.
        if expires_at <= now {
            Err(SignatureError::Expired)
        } else {
            Ok(granted)
        }
    }
}

/// The parameters of a URL, decoded.
struct Query(Vec<(String, String)>);

impl Query {
    fn parse(text: &str) -> Result<Self, SignatureError> {
        let decode = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8();
            decoded
                .map(std::borrow::Cow::into_owned)
                .map_err(|_| SignatureError::Mismatch)
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        });
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    /// The values of these parameters.
    ///
    /// # Errors
    /// [`SignatureError::Mismatch`] unless each is present once and no other is.
    fn exactly<const N: usize>(&self, names: [&str; N]) -> Result<[&str; N], SignatureError> {
        // An unsigned parameter could change what a proxy or a later version does with the request.
        if self.0.len() != N {
            return Err(SignatureError::Mismatch);
        }
        let mut complete = true;
        let values = names.map(|name| {
            let found = self.0.iter().find(|(candidate, _)| candidate == name);
            complete &= found.is_some();
            found.map_or("", |(_, value)| value.as_str())
        });
        if complete {
            Ok(values)
        } else {
            Err(SignatureError::Mismatch)
        }
    }
}

/// Headers of an upload, sorted by name as they are signed.
const fn upload_headers<'a>(
    content_type: &'a str,
    range: &'a str,
    generation: &'a str,
) -> [(&'static str, &'a str); 3] {
    [
        (CONTENT_TYPE, content_type),
        (LENGTH_RANGE, range),
        (GENERATION, generation),
    ]
}

fn path(organization: OrganizationId, object: ObjectKey) -> String {
    format!("{STORAGE_PATH}{organization}/{object}")
}

/// The ids in a path; `None` for a path that [`path`] never returns.
fn ids(text: &str) -> Option<(OrganizationId, ObjectKey)> {
    let (organization, object) = text.strip_prefix(STORAGE_PATH)?.split_once('/')?;
    let (organization, object) = (organization.parse().ok()?, object.parse().ok()?);
    // Ids parse in several spellings, and only one of them was signed.
    (path(organization, object) == text).then_some((organization, object))
}

fn expiry(text: &str) -> Result<OffsetDateTime, SignatureError> {
    let seconds: Option<i64> = text.parse().ok();
    seconds
        // `+5` and `05` parse as well; one time must have one signed form.
        .filter(|seconds| seconds.to_string() == text)
        .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok())
        .ok_or(SignatureError::Mismatch)
}

fn header<'a>(request: &SignedRequest<'a>, name: &str) -> Result<&'a str, SignatureError> {
    let mut found = request
        .headers
        .iter()
        .filter(|(candidate, _)| candidate == name);
    let (_, value) = found
        .next()
        .ok_or_else(|| SignatureError::MissingHeader(name.to_owned()))?;
    // Of two headers the signature covers one, and the endpoint may act on the other.
    if found.next().is_some() {
        Err(SignatureError::Mismatch)
    } else {
        Ok(value.as_str())
    }
}

fn unsignable() -> PortError {
    PortError::Internal("a name or type with control characters cannot be signed".to_owned())
}
