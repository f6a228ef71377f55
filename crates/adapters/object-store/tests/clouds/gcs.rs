//! Google Cloud Storage, against a double that checks its signatures.

use std::sync::Arc;

use labdata_domain::files::MAX_FILE_BYTES;
use labdata_object_store::Storage;
use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::{
    Clock,
    files::blob::{BlobStore, SignedUpload, UploadGrant, UrlSigner},
};

use crate::{
    bodies::{
        LAB, body, long_bodies_are_stored_whole_once_or_not_at_all, object, put, read, upload,
    },
    gcs_server::GcsServer,
    open,
    s3::{Now, direct, send},
};

struct Gcs {
    storage: Storage,
    server: GcsServer,
}

#[async_trait]
impl Harness for Gcs {
    async fn fresh() -> Self {
        let server = GcsServer::start().await;
        let account = server.service_account();
        let environment = [("GOOGLE_SERVICE_ACCOUNT_KEY", account.as_str())];
        let storage = open("gs://lab/prefix", &environment).await.unwrap();
        Self { storage, server }
    }
}

impl Subject<dyn BlobStore> for Gcs {
    fn subject(&self) -> Arc<dyn BlobStore> {
        self.storage.blobs.clone()
    }
}

labdata_port_contracts::blob!(Gcs);

#[tokio::test]
async fn long_bodies_go_in_parts() {
    let gcs = Gcs::fresh().await;
    long_bodies_are_stored_whole_once_or_not_at_all(gcs.subject()).await;
}

#[tokio::test]
async fn a_wrong_key_is_refused_in_one_line() {
    for key in [
        "{}",
        "no json",
        r#"{"private_key":"x","private_key_id":"1","client_email":"e"}"#,
    ] {
        let environment = [("GOOGLE_SERVICE_ACCOUNT_KEY", key)];
        let error = open("gs://lab", &environment).await.err().expect("refused");
        assert!(
            error.starts_with("cannot use gs://lab as the file storage: "),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
}

#[tokio::test]
async fn a_direct_url_takes_what_was_signed_once_and_nothing_else() {
    let gcs = Gcs::fresh().await;
    let (blobs, urls) = (gcs.subject(), direct(&gcs.storage));
    let grant = upload(object(1), Now.now());
    let given = urls.sign_upload(LAB, &grant).await.unwrap();
    let names: Vec<&str> = given
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let expected = [
        "content-type",
        "x-goog-content-length-range",
        "x-goog-if-generation-match",
    ];
    assert_eq!(names, expected);
    for missing in expected {
        assert_eq!(
            send(&given, b"bytes", missing).await,
            400,
            "without {missing}"
        );
    }
    for position in 0..expected.len() {
        let mut other = given.clone();
        if let Some((_, value)) = other.headers.get_mut(position) {
            "1,99999999999".clone_into(value);
        }
        assert_eq!(send(&other, b"bytes", "").await, 403);
    }
    let elsewhere = SignedUpload {
        url: given
            .url
            .replace(&object(1).to_string(), &object(2).to_string()),
        headers: given.headers.clone(),
    };
    assert_eq!(send(&elsewhere, b"bytes", "").await, 403);
    assert_eq!(send(&given, b"bytes", "").await, 200);
    assert_eq!(send(&given, b"other", "").await, 412);
    assert_eq!(read(&*blobs, object(1)).await, b"bytes");

    let small = UploadGrant {
        limit: 4,
        ..upload(object(3), Now.now())
    };
    let small = urls.sign_upload(LAB, &small).await.unwrap();
    assert_eq!(send(&small, b"bytes", "").await, 400);
    assert!(blobs.size(LAB, object(3)).await.is_err());
    assert_eq!(grant.limit, MAX_FILE_BYTES);
}

#[tokio::test]
async fn an_expired_url_is_refused() {
    let gcs = Gcs::fresh().await;
    let past = Now.now() - time::Duration::minutes(15);
    let signer = direct(&gcs.storage);
    let given = signer
        .sign_upload(LAB, &upload(object(1), past))
        .await
        .unwrap();
    // It is good for the second in which it was signed.
    while send(&given, b"bytes", "").await != 400 {}
}

#[tokio::test]
async fn the_checksum_is_the_storages_own_and_the_object_is_not_read() {
    let gcs = Gcs::fresh().await;
    let blobs = gcs.subject();
    let stored = put(&*blobs, object(1), body(b"123456789")).await.unwrap();
    assert_eq!(stored.crc32c.to_base64(), "4waSgw==");
    assert_eq!(blobs.checksum(LAB, object(1)).await.unwrap(), stored);
    assert_eq!(gcs.server.reads(), 0);
}
