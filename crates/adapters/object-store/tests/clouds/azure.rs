//! Azure, against Azurite.

use labdata_object_store::Storage;
use labdata_ports::{
    Clock,
    files::blob::{PutBlobError, SignedUpload, UrlSigner},
};
use uuid::Uuid;

use crate::{
    azurite::{ACCOUNT, Azurite, KEY, azurite},
    bodies::{
        LAB, body, long_bodies_are_stored_whole_once_or_not_at_all, object, put, read, upload,
    },
    open,
    s3::{Now, direct, send},
};

async fn storage(azurite: &Azurite, prefix: &str, key: &str) -> Result<Storage, String> {
    let environment = [
        ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT),
        ("AZURE_STORAGE_ACCOUNT_KEY", key),
        ("AZURE_STORAGE_ENDPOINT", azurite.endpoint.as_str()),
    ];
    open(&format!("az://lab/{prefix}"), &environment).await
}

#[tokio::test]
async fn bodies_are_stored_whole_once_or_not_at_all() {
    let Some(azurite) = azurite().await else {
        return;
    };
    let storage = storage(&azurite, "bodies", KEY).await.unwrap();
    let blobs = storage.blobs;
    let stored = put(&*blobs, object(9), body(b"bytes")).await.unwrap();
    assert_eq!(blobs.checksum(LAB, object(9)).await.unwrap(), stored);
    let again = put(&*blobs, object(9), body(b"other")).await;
    assert!(matches!(again, Err(PutBlobError::Exists)), "{again:?}");
    assert_eq!(read(&*blobs, object(9)).await, b"bytes");
    blobs.delete(LAB, object(9)).await.unwrap();
    blobs.delete(LAB, object(9)).await.unwrap();
    assert!(blobs.size(LAB, object(9)).await.is_err());
    blobs.probe().await.unwrap();
    long_bodies_are_stored_whole_once_or_not_at_all(blobs).await;
}

#[tokio::test]
async fn a_wrong_key_is_refused_in_one_line() {
    let Some(azurite) = azurite().await else {
        return;
    };
    let error = storage(&azurite, "keys", "d3Jvbmc=")
        .await
        .err()
        .expect("refused");
    assert!(
        error.starts_with("cannot use az://lab/keys as the file storage: "),
        "{error}"
    );
    assert!(!error.contains('\n'), "{error}");
}

#[tokio::test]
async fn a_direct_url_only_creates() {
    let Some(azurite) = azurite().await else {
        return;
    };
    let storage = storage(&azurite, "direct", KEY).await.unwrap();
    let (blobs, signer) = (&storage.blobs, direct(&storage));
    let given = signer
        .sign_upload(LAB, &upload(object(1), Now.now()))
        .await
        .unwrap();
    let other = |from: &str, to: &str| SignedUpload {
        url: given.url.replace(from, to),
        headers: given.headers.clone(),
    };
    for tampered in [
        other(&object(1).to_string(), &object(2).to_string()),
        other("sp=c", "sp=w"),
        other("&se=2", "&se=3"),
        other(&LAB.to_string(), &Uuid::from_u128(0xa2).to_string()),
    ] {
        assert_ne!(tampered, given);
        assert_eq!(send(&tampered, b"bytes", "").await, 403, "{}", tampered.url);
    }
    assert_eq!(send(&given, b"bytes", "").await, 201);
    assert_eq!(send(&given, b"other", "").await, 403);
    assert_eq!(read(&**blobs, object(1)).await, b"bytes");
    // It neither reads nor removes.
    assert_eq!(
        reqwest::get(&given.url).await.unwrap().status().as_u16(),
        403
    );
    let removal = reqwest::Client::new()
        .delete(&given.url)
        .send()
        .await
        .unwrap();
    assert_eq!(removal.status().as_u16(), 403);
}

#[tokio::test]
async fn an_expired_url_is_refused() {
    let Some(azurite) = azurite().await else {
        return;
    };
    let storage = storage(&azurite, "expiry", KEY).await.unwrap();
    let past = Now.now() - time::Duration::hours(1);
    let given = direct(&storage)
        .sign_upload(LAB, &upload(object(1), past))
        .await
        .unwrap();
    assert_eq!(send(&given, b"bytes", "").await, 403);
}
