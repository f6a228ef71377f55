//! S3, against `s3s-fs`.

use std::sync::Arc;

use labdata_object_store::{DirectSigner, GatewaySigner, Storage};
use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::{
    Clock, PortError,
    files::blob::{BlobStore, Granted, PutBlobError, SignedRequest, SignedUpload, UrlSigner},
};
use time::{Duration, OffsetDateTime};

use crate::{
    bodies::{
        LAB, body, download, long, long_bodies_are_stored_whole_once_or_not_at_all, object, put,
        read, upload,
    },
    open,
    s3_server::S3Server,
};

struct S3 {
    storage: Storage,
    server: S3Server,
}

#[async_trait]
impl Harness for S3 {
    async fn fresh() -> Self {
        let server = S3Server::start().await;
        let storage = open("s3://lab/some/prefix", &server.environment())
            .await
            .unwrap();
        Self { storage, server }
    }
}

impl Subject<dyn BlobStore> for S3 {
    fn subject(&self) -> Arc<dyn BlobStore> {
        self.storage.blobs.clone()
    }
}

labdata_port_contracts::blob!(S3);

#[tokio::test]
async fn long_bodies_go_in_parts() {
    let s3 = S3::fresh().await;
    long_bodies_are_stored_whole_once_or_not_at_all(s3.subject()).await;
}

#[tokio::test]
async fn what_a_killed_server_left_is_swept() {
    let s3 = S3::fresh().await;
    let blobs = s3.subject();
    // What lies in `incoming/` of another process, as an object of that name.
    let raw = open("s3://lab/some/prefix/incoming", &s3.server.environment())
        .await
        .unwrap();
    put(&*raw.blobs, object(1), body(b"torn")).await.unwrap();
    put(&*blobs, object(1), body(b"whole")).await.unwrap();
    let (long_ago, later) = (
        OffsetDateTime::UNIX_EPOCH,
        OffsetDateTime::from_unix_timestamp(99_999_999_999).unwrap(),
    );
    assert_eq!(blobs.sweep_unfinished(long_ago).await.unwrap(), 0);
    assert_eq!(blobs.sweep_unfinished(later).await.unwrap(), 1);
    assert!(raw.blobs.size(LAB, object(1)).await.is_err());
    assert_eq!(read(&*blobs, object(1)).await, b"whole");
}

#[tokio::test]
async fn a_storage_that_is_down_is_unavailable_and_nothing_is_lost() {
    let s3 = S3::fresh().await;
    let blobs = s3.subject();
    put(&*blobs, object(1), body(b"bytes")).await.unwrap();
    s3.server.set_down(true);
    let small = put(&*blobs, object(2), body(b"bytes")).await;
    let unavailable = |result: Result<_, PutBlobError>| {
        matches!(result, Err(PutBlobError::Port(PortError::Unavailable(_))))
    };
    assert!(unavailable(small));
    assert!(unavailable(put(&*blobs, object(2), body(&long())).await));
    assert!(matches!(
        blobs.size(LAB, object(1)).await,
        Err(PortError::Unavailable(_))
    ));
    assert!(matches!(
        blobs.probe().await,
        Err(PortError::Unavailable(_))
    ));
    s3.server.set_down(false);
    assert_eq!(read(&*blobs, object(1)).await, b"bytes");
    put(&*blobs, object(2), body(b"bytes")).await.unwrap();
}

#[tokio::test]
async fn wrong_settings_are_refused_in_one_line() {
    let server = S3Server::start().await;
    let [endpoint, region, key, secret] = server.environment();
    let cases = [
        (
            "s3://lab",
            [endpoint, region, key, ("AWS_SECRET_ACCESS_KEY", "wrong")],
        ),
        (
            "s3://lab",
            [("AWS_ENDPOINT", "http://127.0.0.1:1"), region, key, secret],
        ),
        (
            "s3://lab",
            [("AWS_ENDPOINT", "no url"), region, key, secret],
        ),
    ];
    for (url, environment) in cases {
        let error = open(url, &environment).await.err().expect("refused");
        let beginning = format!("cannot use {url} as the file storage: ");
        assert!(
            error.starts_with(&beginning) && !error.contains('\n'),
            "{error}"
        );
    }
}

/// The time of this machine, by which the server checks expiry.
pub(crate) struct Now;

impl Clock for Now {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server under test has this clock too"
    )]
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

pub(crate) fn direct(storage: &Storage) -> DirectSigner {
    let bucket = storage.bucket.clone().expect("a bucket");
    let gateway = GatewaySigner::new("http://127.0.0.1:1", &[7; 32]);
    DirectSigner::new(bucket, gateway, Arc::new(Now)).unwrap()
}

/// Sends the bytes to the URL as a client does; the answer's status.
pub(crate) async fn send(given: &SignedUpload, bytes: &[u8], without: &str) -> u16 {
    let mut request = reqwest::Client::new().put(&given.url).body(bytes.to_vec());
    for (name, value) in given.headers.iter().filter(|(name, _)| name != without) {
        request = request.header(name, value);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_direct_url_takes_what_was_signed_once_and_nothing_else() {
    let s3 = S3::fresh().await;
    let (blobs, signer) = (s3.subject(), direct(&s3.storage));
    let given = signer
        .sign_upload(LAB, &upload(object(1), Now.now()))
        .await
        .unwrap();
    assert!(given.url.starts_with(&s3.server.endpoint), "{}", given.url);
    for missing in ["content-type", "if-none-match"] {
        let status = send(&given, b"bytes", missing).await;
        assert!((400..500).contains(&status), "{status} without {missing}");
    }
    let mut other_type = given.clone();
    other_type.headers[0].1 = "text/html".to_owned();
    assert_eq!(send(&other_type, b"bytes", "").await, 403);
    let tampered = SignedUpload {
        url: given
            .url
            .replace(&object(1).to_string(), &object(2).to_string()),
        headers: given.headers.clone(),
    };
    assert_eq!(send(&tampered, b"bytes", "").await, 403);
    assert!(blobs.size(LAB, object(1)).await.is_err());
    assert_eq!(send(&given, b"bytes", "").await, 200);
    assert_eq!(send(&given, b"other", "").await, 412);
    let stored = blobs.checksum(LAB, object(1)).await.unwrap();
    assert_eq!(stored.size, 5);
    assert_eq!(read(&*blobs, object(1)).await, b"bytes");
}

#[tokio::test]
async fn downloads_are_the_gateways_own() {
    let s3 = S3::fresh().await;
    let signer = direct(&s3.storage);
    let grant = download(object(1), Now.now());
    let url = signer.sign_download(LAB, &grant).await.unwrap();
    let (path, query) = url
        .strip_prefix("http://127.0.0.1:1")
        .and_then(|rest| rest.split_once('?'))
        .expect("a URL of the gateway's");
    for method in ["GET", "HEAD"] {
        let request = SignedRequest {
            method,
            path,
            query,
            headers: &[],
        };
        let granted = signer.verify(&request, Now.now()).unwrap();
        let Granted::Download(LAB, granted) = granted else {
            panic!("{granted:?}");
        };
        assert_eq!(granted.object, grant.object);
    }
}
