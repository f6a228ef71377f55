//! Service SAS of Azure Blob Storage: URLs that permit one operation on one blob. `object_store`
//! signs uploads with the permission to write, which overwrites; these URLs only create.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use object_store::signer::Url;
use sha2::Sha256;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Version of the service's signature rules.
const VERSION: &str = "2020-12-06";

/// Signs with the key of a storage account.
#[derive(Clone)]
pub(crate) struct ServiceSas {
    account: String,
    key: Vec<u8>,
}

impl ServiceSas {
    /// Creates a signer with an account's key; `None` if the key is not base64.
    pub(crate) fn new(account: &str, key: &str) -> Option<Self> {
        Some(Self {
            account: account.to_owned(),
            key: STANDARD.decode(key).ok()?,
        })
    }

    /// Signs the blob's URL with the permission to create it. `None` for a time that RFC 3339 cannot
    /// express.
    pub(crate) fn sign_creation(&self, mut blob: Url, expires_at: OffsetDateTime) -> Option<Url> {
        let permitted = "c";
        // The service accepts times in whole seconds, and signs the text as it is written.
        let expires = expires_at.replace_nanosecond(0).ok()?;
        let expires = expires.format(&Rfc3339).ok()?;
        // An emulator has the account in the path.
        let in_host = blob
            .host_str()
            .is_some_and(|host| host.split('.').next() == Some(&self.account));
        let resource = if in_host {
            format!("/blob/{}{}", self.account, blob.path())
        } else {
            format!("/blob{}", blob.path())
        };
        let signed = [
            permitted, "", // start
            &expires, &resource, "", // stored policy
            "", // addresses
            "", // protocol
            VERSION, "b", // a blob
            "",  // snapshot
            "",  // encryption scope
            "",  // Cache-Control of the response
            "",  // Content-Disposition
            "",  // Content-Encoding
            "",  // Content-Language
            "",  // Content-Type
        ]
        .join("\n");
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.update(signed.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        // Removes the signature of the library, which would permit to overwrite.
        blob.set_query(None);
        let mut query = blob.query_pairs_mut();
        query
            .append_pair("sv", VERSION)
            .append_pair("sr", "b")
            .append_pair("sp", permitted)
            .append_pair("se", &expires)
            .append_pair("sig", &signature);
        drop(query);
        Some(blob)
    }
}
