//! A double of Google Cloud Storage: its XML API as far as the platform uses it. Requests with a
//! signature are checked as the storage checks them; those without one are the platform's own, and
//! bring a token, which is not checked.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use labdata_domain::files::Crc32c;
use labdata_ports::Clock;
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    goog4::{Signed, verify},
    s3::Now,
};

/// A key made for these tests, and its public half.
const KEY: &str = include_str!("gcs_test_key.pem");
const PUBLIC_KEY: &str = "MIIBCgKCAQEAmbz3MNXszZtmN1Owr3puYxtCDz8/DK8vF6J5bzvUsvhOf/ElL5NfITrEnjpS8t/TKXdjGsAU2XlAceK9PQY6imgf24VxBh7a9opqYNOyCTZpxPyU/kQVXjMOK82ACWnO/3ao7nPuxajk0Vv3IvB0EYJpD2vxPFeWZch1o5zvpzS0go9MvVEwRmle7fO1UzPJbem7MJQLxdQNXYufcVOPrm/MjfHOpIkVR01HzoXz6p/XLBOf+t2V6VDgaY2RhXqX2qEiF2eAg17H8RUeWfWIuj3B5ZB6KGsmxUcZCMhMVWGH1HAQtESCar1IbRrsR4ueJfadxgbamYXNPc031lVdoQIDAQAB";

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Bytes>,
    parts: BTreeMap<String, BTreeMap<u32, Bytes>>,
    /// Number of reads of whole objects.
    reads: usize,
}

/// The server, running as long as the runtime.
pub(crate) struct GcsServer {
    pub(crate) endpoint: String,
    state: Arc<Mutex<State>>,
}

type Reply = Response<Full<Bytes>>;

impl GcsServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        tokio::spawn(serve(listener, state.clone()));
        Self { endpoint, state }
    }

    /// A service account's key that names this server.
    pub(crate) fn service_account(&self) -> String {
        json!({
            "gcs_base_url": self.endpoint,
            "client_email": "lab@project.iam.gserviceaccount.com",
            "private_key": KEY,
            "private_key_id": "1",
        })
        .to_string()
    }

    /// Returns the number of reads of whole objects.
    pub(crate) fn reads(&self) -> usize {
        self.state.lock().unwrap().reads
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((socket, _)) = listener.accept().await {
        let state = state.clone();
        let response = service_fn(move |request| {
            let state = state.clone();
            async move { Ok::<_, Infallible>(response(request, &state).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(socket), response);
        tokio::spawn(connection);
    }
}

async fn response(request: Request<Incoming>, state: &Mutex<State>) -> Reply {
    let (parts, body) = request.into_parts();
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let headers: Vec<_> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    if query.contains("X-Goog-Signature") {
        let signed = Signed {
            method: parts.method.as_str(),
            path,
            query,
            headers: &headers,
        };
        if let Err(code) = verify(&signed, PUBLIC_KEY, Now.now()) {
            let status = if code == "SignatureDoesNotMatch" {
                403
            } else {
                400
            };
            return plain(status, code);
        }
    }
    if !query.contains("X-Goog-Signature") && !parts.headers.contains_key("authorization") {
        return plain(401, "AuthenticationRequired");
    }
    let Ok(body) = body.collect().await else {
        return plain(400, "IncompleteBody");
    };
    let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    handle(
        &parts.method,
        &path,
        query,
        &parts.headers,
        body.to_bytes(),
        &mut state.lock().unwrap(),
    )
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

fn plain(status: u16, text: &str) -> Reply {
    Response::builder()
        .status(status)
        .header("etag", "\"1\"")
        .header("x-goog-generation", "1")
        .body(Full::from(text.to_owned()))
        .unwrap()
}

fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = http_pairs(query);
    pairs.find_map(|(known, value)| (known == name).then_some(value))
}

fn http_pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    url::form_urlencoded::parse(query.as_bytes()).into_owned()
}

fn handle(
    method: &Method,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    body: Bytes,
    state: &mut State,
) -> Reply {
    let upload = parameter(query, "uploadId");
    if *method == Method::POST && upload.is_none() {
        let id = format!("upload {path}");
        state.parts.insert(id.clone(), BTreeMap::new());
        return plain(
            200,
            &format!(
                "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
            ),
        );
    }
    if let Some(upload) = upload {
        return part(method, (path, query), &upload, body, state);
    }
    if parameter(query, "list-type").is_some() {
        let prefix = format!(
            "{}/{}",
            path.trim_end_matches('/'),
            parameter(query, "prefix").unwrap_or_default()
        );
        return list(&state.objects, path, &prefix);
    }
    match *method {
        Method::PUT => {
            if header(headers, "x-goog-if-generation-match") == Some("0")
                && state.objects.contains_key(path)
            {
                return plain(412, "PreconditionFailed");
            }
            let most = header(headers, "x-goog-content-length-range")
                .and_then(|range| range.split(',').nth(1)?.parse().ok());
            if most.is_some_and(|most: usize| body.len() > most) {
                return plain(400, "EntityTooLarge");
            }
            let bytes = match header(headers, "x-goog-copy-source") {
                None => body,
                Some(source) => {
                    let source = percent_encoding::percent_decode_str(source).decode_utf8_lossy();
                    match state.objects.get(&format!("/{source}")) {
                        Some(bytes) => bytes.clone(),
                        None => return plain(404, "NoSuchKey"),
                    }
                }
            };
            state.objects.insert(path.to_owned(), bytes);
            plain(200, "")
        }
        Method::DELETE => match state.objects.remove(path) {
            Some(_) => plain(204, ""),
            None => plain(404, "NoSuchKey"),
        },
        _ => read(method, path, query, headers, state),
    }
}

fn part(
    method: &Method,
    (path, query): (&str, &str),
    upload: &str,
    body: Bytes,
    state: &mut State,
) -> Reply {
    match *method {
        Method::PUT => {
            let number = parameter(query, "partNumber").unwrap().parse().unwrap();
            state.parts.get_mut(upload).unwrap().insert(number, body);
            plain(200, "")
        }
        Method::POST => {
            let parts = state.parts.remove(upload).unwrap();
            let whole: Vec<u8> = parts.into_values().flatten().collect();
            state.objects.insert(path.to_owned(), whole.into());
            plain(
                200,
                "<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>",
            )
        }
        _ => {
            state.parts.remove(upload);
            plain(204, "")
        }
    }
}

fn list(objects: &BTreeMap<String, Bytes>, bucket: &str, prefix: &str) -> Reply {
    let bucket = format!("{}/", bucket.trim_end_matches('/'));
    let contents: String = objects
        .iter()
        .filter(|(path, _)| path.starts_with(prefix))
        .map(|(path, bytes)| {
            format!(
                "<Contents><Key>{}</Key><Size>{}</Size>\
                 <LastModified>2026-01-01T00:00:00Z</LastModified></Contents>",
                path.strip_prefix(&bucket).unwrap(),
                bytes.len()
            )
        })
        .collect();
    plain(
        200,
        &format!("<ListBucketResult>{contents}</ListBucketResult>"),
    )
}

fn read(method: &Method, path: &str, query: &str, headers: &HeaderMap, state: &mut State) -> Reply {
    let Some(bytes) = state.objects.get(path) else {
        return plain(404, "NoSuchKey");
    };
    let crc = u32::try_from(checksum(CrcAlgorithm::Crc32Iscsi, bytes)).unwrap();
    let mut response = Response::builder()
        .header("etag", "\"1\"")
        .header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        .header("x-goog-generation", "1")
        .header("x-goog-hash", "md5=AAAAAAAAAAAAAAAAAAAAAA==")
        .header(
            "x-goog-hash",
            format!("crc32c={}", Crc32c::new(crc).to_base64()),
        );
    for name in ["content-type", "content-disposition"] {
        if let Some(value) = parameter(query, &format!("response-{name}")) {
            response = response.header(name, value);
        }
    }
    let size = bytes.len();
    if *method == Method::HEAD {
        return response
            .header("content-length", size)
            .body(Full::default())
            .unwrap();
    }
    let range = header(headers, "range").and_then(|range| {
        let (start, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        Some((start.parse::<usize>().ok()?, last.parse::<usize>().ok()?))
    });
    let body = match range {
        Some((start, last)) => {
            response = response
                .status(206)
                .header("content-range", format!("bytes {start}-{last}/{size}"));
            bytes.slice(start..=last)
        }
        None => bytes.clone(),
    };
    if range.is_none() {
        state.reads += 1;
    }
    response.body(Full::from(body)).unwrap()
}
