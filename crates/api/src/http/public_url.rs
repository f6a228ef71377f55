//! The URL under which clients reach this server.

use actix_web::{
    HttpRequest,
    http::header::{HOST, HeaderMap},
};
use labdata_operations::BaseUrl;
use url::Url;

/// Base of the platform's URLs in responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    base: String,
    follows_host: bool,
}

impl PublicUrl {
    /// A fixed URL. No header of a request changes it.
    #[must_use]
    pub fn fixed(base: impl Into<String>) -> Self {
        Self {
            base: base.into().trim_end_matches('/').to_owned(),
            follows_host: false,
        }
    }

    /// The URL of a server on an unspecified address (`0.0.0.0`), which cannot know its name: each
    /// client gets URLs with the `Host` that it called, and `base` where there is none.
    #[must_use]
    pub fn of_host(base: impl Into<String>) -> Self {
        Self {
            follows_host: true,
            ..Self::fixed(base)
        }
    }

    /// The configured base, for requests to any host.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The base of the URLs in the response to a request with these headers, without a trailing slash.
    pub(super) fn base_for(&self, headers: &HeaderMap) -> String {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        match host.filter(|_| self.follows_host).and_then(http_origin) {
            Some(origin) => origin,
            None => self.base.clone(),
        }
    }

    /// The base, and how the client of the request reaches it.
    #[must_use]
    pub fn as_reached(&self, request: &HttpRequest) -> BaseUrl {
        BaseUrl {
            configured: self.base.clone(),
            reached: self.base_for(request.headers()),
        }
    }
}

/// `http://` with the host, if it is one: a name or address, and perhaps a port.
fn http_origin(host: &str) -> Option<String> {
    let origin = format!("http://{host}");
    let url = Url::parse(&origin).ok()?;
    // The header is the client's text and ends up in links: no credentials, path or query may enter by it.
    let bare = url.username().is_empty() && url.password().is_none();
    let nothing_after = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let well_formed = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte));
    (bare && nothing_after && well_formed).then_some(origin)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn localized(public_url: &PublicUrl, headers: &[(&str, &str)], url: &str) -> String {
        let mut request = TestRequest::default();
        for header in headers {
            request = request.append_header(*header);
        }
        public_url
            .as_reached(&request.to_http_request())
            .localize(url.to_owned())
    }

    #[test]
    fn urls_follow_the_host_on_an_unspecified_address_only() {
        let (signed, base) = ("http://127.0.0.1:80/storage/a?b", "http://127.0.0.1:80");
        let host = [("host", "lab-pc.local:8080")];
        let open = PublicUrl::of_host(base);
        assert_eq!(
            localized(&open, &host, signed),
            "http://lab-pc.local:8080/storage/a?b"
        );
        assert_eq!(
            localized(&open, &[("host", "[::1]:8080")], signed),
            "http://[::1]:8080/storage/a?b"
        );
        assert_eq!(localized(&PublicUrl::fixed(base), &host, signed), signed);
        let bucket = "https://bucket.example.org/a?b";
        assert_eq!(localized(&open, &host, bucket), bucket);
    }

    #[test]
    fn a_forged_host_never_becomes_a_url() {
        let (signed, base) = ("http://127.0.0.1:80/storage/a", "http://127.0.0.1:80");
        for host in [
            "",
            "a/b",
            "a?b",
            "a#b",
            "user:secret@a",
            "a b",
            "<script>",
            "a:port",
            "a\\b",
        ] {
            let open = PublicUrl::of_host(base);
            assert_eq!(
                localized(&open, &[("host", host)], signed),
                signed,
                "{host}"
            );
        }
        let forwarded = [
            ("x-forwarded-host", "evil.example"),
            ("forwarded", "host=evil.example"),
        ];
        assert_eq!(
            localized(&PublicUrl::of_host(base), &forwarded, signed),
            signed
        );
    }
}
