//! Signed URLs in memory: the URL is a number, and what it permits is looked up.

use async_trait::async_trait;
use labdata_domain::ids::OrganizationId;
use labdata_ports::{
    PortError,
    files::blob::{
        DownloadGrant, Granted, SignatureError, SignedRequest, SignedUpload, UploadGrant, UrlSigner,
    },
};
use time::OffsetDateTime;

use crate::memory::fake;

/// Prefix of every URL. No host of that name can exist.
const BASE: &str = "http://memory.invalid";
/// Prefix of every path.
const PATH: &str = "/signed/";

fake!(
    /// Signed URLs in memory. They can be guessed, so this is for tests alone.
    pub struct InMemoryUrlSigner;
);

impl InMemoryUrlSigner {
    fn grant(&self, grant: Granted) -> String {
        let granted = &mut self.memory.lock().granted;
        granted.push(grant);
        format!("{BASE}{PATH}{}", granted.len())
    }
}

/// The headers that an upload must carry, as Google Cloud Storage calls them.
fn upload_headers(grant: &UploadGrant) -> Vec<(String, String)> {
    [
        ("content-type", grant.content_type.as_str().to_owned()),
        ("x-goog-if-generation-match", "0".to_owned()),
        ("x-goog-content-length-range", format!("0,{}", grant.limit)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

#[async_trait]
impl UrlSigner for InMemoryUrlSigner {
    async fn sign_upload(
        &self,
        organization: OrganizationId,
        grant: &UploadGrant,
    ) -> Result<SignedUpload, PortError> {
        let url = self.grant(Granted::Upload(organization, grant.clone()));
        Ok(SignedUpload {
            url,
            headers: upload_headers(grant),
        })
    }

    async fn sign_download(
        &self,
        organization: OrganizationId,
        grant: &DownloadGrant,
    ) -> Result<String, PortError> {
        Ok(self.grant(Granted::Download(organization, grant.clone())))
    }

    fn verify(
        &self,
        request: &SignedRequest<'_>,
        now: OffsetDateTime,
    ) -> Result<Granted, SignatureError> {
        let number = request
            .path
            .strip_prefix(PATH)
            .filter(|_| request.query.is_empty());
        let granted = number
            .and_then(|number| number.parse::<usize>().ok()?.checked_sub(1))
            .and_then(|index| self.memory.lock().granted.get(index).cloned())
            .ok_or(SignatureError::Mismatch)?;
        let expires_at = match &granted {
            Granted::Upload(_, grant) => {
                if request.method != "PUT" {
                    return Err(SignatureError::Mismatch);
                }
                for (name, value) in upload_headers(grant) {
                    let sent = request.headers.iter().find(|(sent, _)| *sent == name);
                    match sent {
                        None => return Err(SignatureError::MissingHeader(name)),
                        Some((_, sent)) if *sent != value => return Err(SignatureError::Mismatch),
                        Some(_) => {}
                    }
                }
                grant.expires_at
            }
            Granted::Download(_, grant) => {
                if !matches!(request.method, "GET" | "HEAD") {
                    return Err(SignatureError::Mismatch);
                }
                grant.expires_at
            }
        };
        if now < expires_at {
            Ok(granted)
        } else {
            Err(SignatureError::Expired)
        }
    }
}

#[cfg(test)]
mod tests {
    use labdata_domain::files::{ContentType, ObjectKey};
    use time::{Duration, macros::datetime};
    use uuid::Uuid;

    use super::*;
    use crate::Memory;

    const NOW: OffsetDateTime = datetime!(2026-01-01 00:00:00 UTC);

    #[tokio::test]
    async fn an_upload_url_permits_what_was_signed_until_it_expires() {
        let signer = InMemoryUrlSigner::new(&Memory::new());
        let organization = OrganizationId::new(Uuid::nil());
        let grant = UploadGrant {
            object: ObjectKey::new(Uuid::nil()),
            content_type: ContentType::substitute(Some("text/csv")),
            limit: 10,
            expires_at: NOW + Duration::minutes(15),
        };
        let upload = signer.sign_upload(organization, &grant).await.unwrap();
        let path = upload.url.strip_prefix(BASE).unwrap();
        let request = SignedRequest {
            method: "PUT",
            path,
            query: "",
            headers: &upload.headers,
        };
        let granted = Granted::Upload(organization, grant.clone());
        assert_eq!(signer.verify(&request, NOW), Ok(granted));
        assert_eq!(
            signer.verify(&request, grant.expires_at),
            Err(SignatureError::Expired)
        );
        let get = SignedRequest {
            method: "GET",
            ..request
        };
        assert_eq!(signer.verify(&get, NOW), Err(SignatureError::Mismatch));
        let bare = SignedRequest {
            headers: &[],
            ..request
        };
        let missing = SignatureError::MissingHeader("content-type".to_owned());
        assert_eq!(signer.verify(&bare, NOW), Err(missing));
        let other = SignedRequest {
            path: "/signed/2",
            ..request
        };
        assert_eq!(signer.verify(&other, NOW), Err(SignatureError::Mismatch));
    }
}
