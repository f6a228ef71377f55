//! Signed URLs permit exactly what they were signed for.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use labdata_domain::{
    files::{ContentType, FilePath, ObjectKey},
    ids::OrganizationId,
};
use labdata_object_store::GatewaySigner;
use labdata_ports::files::blob::{
    DownloadGrant, Granted, SignatureError, SignedRequest, SignedUpload, UploadGrant, UrlSigner,
};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

const LAB: OrganizationId = OrganizationId::new(Uuid::from_u128(0xa1));
const OTHER: OrganizationId = OrganizationId::new(Uuid::from_u128(0xa2));
const OBJECT: ObjectKey = ObjectKey::new(Uuid::from_u128(0xb1));
const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
const SECRET: [u8; 32] = [7; 32];
const BASE: &str = "http://127.0.0.1:8080";

fn signer() -> GatewaySigner {
    GatewaySigner::new(BASE, &SECRET)
}

fn download_grant(name: &str) -> DownloadGrant {
    DownloadGrant {
        object: OBJECT,
        path: FilePath::parse(name).unwrap(),
        content_type: ContentType::substitute(Some("text/csv; charset=utf-8")),
        expires_at: NOW + Duration::minutes(15),
    }
}

fn upload_grant() -> UploadGrant {
    UploadGrant {
        object: OBJECT,
        content_type: ContentType::substitute(Some("text/csv")),
        limit: 524_288_000,
        expires_at: NOW + Duration::minutes(15),
    }
}

async fn download_url(name: &str) -> String {
    signer()
        .sign_download(LAB, &download_grant(name))
        .await
        .unwrap()
}

async fn upload() -> SignedUpload {
    signer().sign_upload(LAB, &upload_grant()).await.unwrap()
}

fn verify_at(
    now: OffsetDateTime,
    method: &str,
    url: &str,
    headers: &[(String, String)],
) -> Result<Granted, SignatureError> {
    let rest = url.strip_prefix(BASE).unwrap();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    signer().verify(
        &SignedRequest {
            method,
            path,
            query,
            headers,
        },
        now,
    )
}

fn verify(
    method: &str,
    url: &str,
    headers: &[(String, String)],
) -> Result<Granted, SignatureError> {
    verify_at(NOW, method, url, headers)
}

#[tokio::test]
async fn a_download_url_permits_get_and_head_of_its_object() {
    for name in ["plate.csv", "Süd %41 & =?#.csv", "a\"b;c.csv"] {
        let url = download_url(name).await;
        let expected = Granted::Download(LAB, download_grant(name));
        assert_eq!(verify("GET", &url, &[]), Ok(expected.clone()), "{url}");
        assert_eq!(verify("HEAD", &url, &[]), Ok(expected));
        assert!(url.bytes().all(|b| b.is_ascii_graphic()), "{url}");
    }
}

#[tokio::test]
async fn a_download_is_named_by_the_last_part_of_the_path() {
    let url = download_url("../../etc/passwd").await;
    let Ok(Granted::Download(_, grant)) = verify("GET", &url, &[]) else {
        panic!("{url}")
    };
    assert_eq!(grant.path.as_str(), "passwd");
    assert!(!url.contains(".."), "{url}");
}

#[tokio::test]
async fn an_upload_url_permits_the_put_with_its_headers() {
    let SignedUpload { url, headers } = upload().await;
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "content-type",
            "x-goog-content-length-range",
            "x-goog-if-generation-match"
        ]
    );
    let values: Vec<&str> = headers.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["text/csv", "0,524288000", "0"]);
    assert_eq!(
        verify("PUT", &url, &headers),
        Ok(Granted::Upload(LAB, upload_grant()))
    );
}

#[tokio::test]
async fn a_url_permits_no_other_method() {
    let get = download_url("a.csv").await;
    let SignedUpload { url: put, headers } = upload().await;
    for (method, url) in [
        ("PUT", &get),
        ("DELETE", &get),
        ("POST", &put),
        ("GET", &put),
        ("HEAD", &put),
    ] {
        assert_eq!(
            verify(method, url, &headers),
            Err(SignatureError::Mismatch),
            "{method} {url}"
        );
    }
}

#[tokio::test]
async fn a_url_of_one_organization_does_not_fit_anothers_object() {
    let url = download_url("a.csv").await;
    let other_object = ObjectKey::new(Uuid::from_u128(0xb2));
    for (from, to) in [
        (LAB.to_string(), OTHER.to_string()),
        (OBJECT.to_string(), other_object.to_string()),
    ] {
        let tampered = url.replace(&from, &to);
        assert_ne!(tampered, url);
        assert_eq!(verify("GET", &tampered, &[]), Err(SignatureError::Mismatch));
    }
}

#[tokio::test]
async fn every_tampered_character_is_noticed() {
    let url = download_url("plate.csv").await;
    for (index, byte) in url.bytes().enumerate().skip(BASE.len()) {
        let replacement = if byte == b'a' { "b" } else { "a" };
        let mut tampered = url.clone();
        tampered.replace_range(index..=index, replacement);
        assert_eq!(
            verify("GET", &tampered, &[]),
            Err(SignatureError::Mismatch),
            "{tampered}"
        );
    }
}

#[tokio::test]
async fn parameters_cannot_be_left_out_repeated_or_added() {
    let url = download_url("plate.csv").await;
    let (path, query) = url.split_once('?').unwrap();
    let parameters: Vec<&str> = query.split('&').collect();
    for left_out in 0..parameters.len() {
        let mut rest = parameters.clone();
        let parameter = rest.remove(left_out);
        let shorter = format!("{path}?{}", rest.join("&"));
        assert_eq!(
            verify("GET", &shorter, &[]),
            Err(SignatureError::Mismatch),
            "{shorter}"
        );
        let repeated = format!("{url}&{parameter}");
        assert_eq!(
            verify("GET", &repeated, &[]),
            Err(SignatureError::Mismatch),
            "{repeated}"
        );
    }
    for added in ["x=1", "response-content-type=text/html", "%0a"] {
        let longer = format!("{url}&{added}");
        assert_eq!(
            verify("GET", &longer, &[]),
            Err(SignatureError::Mismatch),
            "{longer}"
        );
    }
    assert_eq!(verify("GET", path, &[]), Err(SignatureError::Mismatch));
}

#[tokio::test]
async fn other_spellings_of_the_path_do_not_fit() {
    let url = download_url("plate.csv").await;
    for (from, to) in [
        ("/storage/", "/storage/x/../"),
        ("/storage/", "//storage/"),
        ("/storage/", "/storage/%2e%2e/"),
        ("-0000000000a1/", "-0000000000A1/"),
        ("0000-0000", "00000000"),
    ] {
        let tampered = url.replacen(from, to, 1);
        assert_ne!(tampered, url);
        assert_eq!(
            verify("GET", &tampered, &[]),
            Err(SignatureError::Mismatch),
            "{tampered}"
        );
    }
}

#[tokio::test]
async fn after_its_time_a_url_is_expired_and_a_tampered_one_is_not_told_so() {
    let url = download_url("a.csv").await;
    let (last, over) = (NOW + Duration::seconds(899), NOW + Duration::minutes(15));
    assert!(verify_at(last, "GET", &url, &[]).is_ok());
    assert_eq!(
        verify_at(over, "GET", &url, &[]),
        Err(SignatureError::Expired)
    );
    let longer = url.replace("expires=900", "expires=9000");
    assert_ne!(longer, url);
    assert_eq!(
        verify_at(over, "GET", &longer, &[]),
        Err(SignatureError::Mismatch)
    );
}

#[tokio::test]
async fn a_signed_header_may_be_neither_missing_nor_changed_nor_doubled() {
    let SignedUpload { url, headers } = upload().await;
    for index in 0..headers.len() {
        let mut fewer = headers.clone();
        let (name, value) = fewer.remove(index);
        assert_eq!(
            verify("PUT", &url, &fewer),
            Err(SignatureError::MissingHeader(name.clone()))
        );
        let mut changed = headers.clone();
        changed[index].1 = format!("{value}0");
        assert_eq!(verify("PUT", &url, &changed), Err(SignatureError::Mismatch));
        let mut doubled = headers.clone();
        doubled.push((name, value));
        assert_eq!(verify("PUT", &url, &doubled), Err(SignatureError::Mismatch));
    }
}

#[tokio::test]
async fn another_secret_signs_another_url() {
    let url = GatewaySigner::new(BASE, &[8; 32])
        .sign_download(LAB, &download_grant("a.csv"))
        .await
        .unwrap();
    assert_eq!(verify("GET", &url, &[]), Err(SignatureError::Mismatch));
}

#[tokio::test]
async fn a_base_with_a_path_stands_before_the_signed_path() {
    let signer = GatewaySigner::new("https://lab.example/platform/", &SECRET);
    let url = signer
        .sign_download(LAB, &download_grant("a.csv"))
        .await
        .unwrap();
    let behind = url.strip_prefix("https://lab.example/platform").unwrap();
    assert!(verify("GET", &format!("{BASE}{behind}"), &[]).is_ok());
}

#[tokio::test]
async fn hostile_requests_are_a_mismatch_and_no_panic() {
    let paths = [
        "",
        "/",
        "/storage/",
        "/storage/a/b",
        "/storage/\u{0}/é",
        "/storage//",
    ];
    let long = "x".repeat(100_000);
    let expired = "x-labdata-expires=99999999999999999999&x-labdata-signature=00";
    let queries = ["", "&&&", "=", "%ff=%ff", "%00", expired, long.as_str()];
    for path in paths
        .iter()
        .copied()
        .chain([format!("/storage/{LAB}/{OBJECT}").as_str()])
    {
        for query in queries {
            for method in ["GET", "PUT", "HEAD", "", "get"] {
                let request = SignedRequest {
                    method,
                    path,
                    query,
                    headers: &[],
                };
                let refused = signer().verify(&request, NOW).unwrap_err();
                assert!(
                    !matches!(refused, SignatureError::Expired),
                    "{method} {path}?{query}"
                );
            }
        }
    }
}
