//! One kept-alive connection, written to and read from by hand, so that the client costs next to nothing.

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::KEY;

/// A request of one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: &'static str,
    /// With a slash at its beginning.
    path: String,
    headers: String,
    body: Vec<u8>,
}

impl Request {
    /// Creates a request to a path of the API.
    pub(crate) fn new(method: &'static str, path: impl AsRef<str>) -> Self {
        Self::to(method, format!("/api/v1{}", path.as_ref()))
    }

    /// Creates a request to any path.
    pub(crate) fn to(method: &'static str, path: String) -> Self {
        Self {
            method,
            path,
            headers: format!("authorization: Bearer {KEY}\r\n"),
            body: Vec::new(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        for part in [name, ": ", value, "\r\n"] {
            self.headers += part;
        }
        self
    }

    /// Presents the cookie of a session instead of the key.
    pub(crate) fn session(mut self, cookie: &str) -> Self {
        self.headers = format!("cookie: {cookie}\r\nsec-fetch-site: same-origin\r\n");
        self
    }

    /// Presents nothing.
    pub(crate) fn without_key(mut self) -> Self {
        self.headers.clear();
        self
    }

    pub(crate) fn body(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.bytes("application/json", body.to_string().into_bytes())
    }

    pub(crate) fn bytes(self, content_type: &str, body: Vec<u8>) -> Self {
        self.header("content-type", content_type).body(body)
    }

    /// Sends a form with a file and other parts.
    pub(crate) fn form(self, parts: &[(&str, &str)], file_name: &str, file: &[u8]) -> Self {
        let mut body = Vec::new();
        for (name, value) in parts {
            body.extend_from_slice(
                format!(
                    "--part\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
                )
                .as_bytes(),
            );
        }
        let head = format!(
            "--part\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{file_name}\"\r\n\
             content-type: text/csv\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(file);
        body.extend_from_slice(b"\r\n--part--\r\n");
        self.bytes("multipart/form-data; boundary=part", body)
    }
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// A text of the body, which is JSON.
    pub(crate) fn text(&self, pointer: &str) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap();
        body.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("{pointer}: {body}"))
            .to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

/// The value of a header.
fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then_some(value)
    })
}

pub(crate) struct Connection {
    stream: TcpStream,
    host: String,
    received: Vec<u8>,
}

impl Connection {
    /// Opens a connection to `http://host:port`.
    pub(crate) async fn open(base: &str) -> Self {
        let host = base.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&host).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            host,
            received: Vec::new(),
        }
    }

    /// Sends a request and waits for the whole answer, which must be a success.
    pub(crate) async fn send(&mut self, request: &Request) -> Response {
        let mut bytes = format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\n{}content-length: {}\r\n\r\n",
            request.method,
            request.path,
            self.host,
            request.headers,
            request.body.len()
        )
        .into_bytes();
        bytes.extend_from_slice(&request.body);
        self.stream.write_all(&bytes).await.unwrap();
        self.received.clear();
        let response = loop {
            if let Some(response) = self.complete() {
                break response;
            }
            let read = self.stream.read_buf(&mut self.received).await.unwrap();
            assert_ne!(read, 0, "{request:?}: the connection was closed");
        };
        assert!(
            response.head.starts_with("HTTP/1.1 2"),
            "{} {}: {} {}",
            request.method,
            request.path,
            response.head,
            String::from_utf8_lossy(&response.body)
        );
        response
    }

    /// The answer, once it has been received.
    fn complete(&self) -> Option<Response> {
        let end = self
            .received
            .windows(4)
            .position(|part| part == b"\r\n\r\n")?;
        let (head, body) = self.received.split_at(end + 4);
        let head = std::str::from_utf8(head).unwrap();
        let is_complete = if header(head, "transfer-encoding").is_some() {
            body == b"0\r\n\r\n" || body.ends_with(b"\r\n0\r\n\r\n")
        } else {
            let length = header(head, "content-length");
            body.len() >= length.map_or(0, |length| length.parse().unwrap())
        };
        is_complete.then(|| Response {
            head: head.to_owned(),
            body: body.to_vec(),
        })
    }
}
