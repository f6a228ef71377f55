//! Head of an HTTP request.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum length of a head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Request line and headers, and the bytes of the body that were read with them.
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names and values.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) rest: Vec<u8>,
}

impl RequestHead {
    /// Reads a head. Returns none if the connection ends first, or the bytes are no HTTP/1 request.
    pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|found| found == b"\r\n\r\n") {
                break at;
            }
            // Bounded, because a script decides how long a head is.
            if bytes.len() > MAX_HEAD_BYTES || stream.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
        };
        let rest = bytes.split_off(end + 4);
        Ok(String::from_utf8(bytes)
            .ok()
            .and_then(|head| Self::parse(&head, rest)))
    }

    fn parse(head: &str, rest: Vec<u8>) -> Option<Self> {
        let mut lines = head.trim_end().split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if !version.starts_with("HTTP/1.") || words.next().is_some() {
            return None;
        }
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':')?;
            // A bare line feed could hide another header.
            let is_plain = !name.is_empty() && !line.contains(['\n', '\r']);
            is_plain.then(|| (name.to_owned(), value.trim().to_owned()))
        });
        Some(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: headers.collect::<Option<_>>()?,
            rest,
        })
    }

    /// Returns the request for another target, without headers of the connection but those given.
    pub(crate) fn to_bytes(&self, target: &str, added: &[(&str, &str)]) -> Vec<u8> {
        let mut text = format!("{} {target} HTTP/1.1\r\n", self.method);
        let own = self
            .headers
            .iter()
            .filter(|(name, _)| !is_of_connection(name))
            .map(|(name, value)| (&**name, &**value));
        for (name, value) in own.chain(added.iter().copied()) {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.rest);
        bytes
    }
}

fn is_of_connection(name: &str) -> bool {
    // RFC 9110, 7.6.1: fields about one connection are not forwarded. `Transfer-Encoding` stays,
    // because the body is copied as it was sent.
    [
        "connection",
        "proxy-connection",
        "proxy-authorization",
        "keep-alive",
        "upgrade",
    ]
    .iter()
    .any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(mut text: &[u8]) -> Option<RequestHead> {
        RequestHead::read(&mut text).await.unwrap()
    }

    #[tokio::test]
    async fn a_request_is_passed_on_without_what_concerns_the_proxy() {
        let text = b"POST http://host/a HTTP/1.1\r\nHost: host\r\nProxy-Authorization: x\r\n\
                     Connection: keep-alive\r\nContent-Length: 4\r\n\r\nbody";
        let head = read(text).await.unwrap();
        let passed = head.to_bytes("/a", &[("Connection", "close")]);
        assert_eq!(
            String::from_utf8(passed).unwrap(),
            "POST /a HTTP/1.1\r\nHost: host\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
        );
    }

    #[tokio::test]
    async fn what_is_no_request_is_refused() {
        for text in [
            &b"SSH-2.0-x\r\n\r\n"[..],
            b"GET / HTTP/2\r\n\r\n",
            b"GET / HTTP/1.1\r\nno header\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
            b"GET / HTTP/1.1\r\n",
        ] {
            assert!(read(text).await.is_none(), "{text:?}");
        }
    }
}
