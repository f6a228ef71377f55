//! Credential of a request: an API key, or the cookie of a session (contract §13).

use actix_web::{
    HttpRequest,
    http::{
        Method,
        header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderValue, ORIGIN},
    },
};
use labdata_application::{
    Error, Services,
    people::{authenticate::authenticate, sessions::authenticate_session},
};
use labdata_domain::{
    people::credential::ForeignSite,
    people::{
        actor::Actor,
        session::{PlainToken, SESSION_LIFETIME},
    },
};
use labdata_redacted::Secret;
use url::Url;

use super::{public_url::PublicUrl, scope::presented_key};

/// Name of the cookie where the platform is reached by TLS. Browsers accept the prefix `__Host-` only
/// from the host itself, for all of its paths.
const SECURE_COOKIE: &str = "__Host-labdata-session";

/// Name of the cookie over plain HTTP, where browsers refuse the other one.
const PLAIN_COOKIE: &str = "labdata-session";

/// Names of the cookie of a sign-in that continues at the identity provider.
const SECURE_ATTEMPT: &str = "__Host-labdata-sign-in";
const PLAIN_ATTEMPT: &str = "labdata-sign-in";

/// Credential of a request.
#[derive(Clone, Debug)]
pub enum Credential {
    /// An API key.
    Key(Secret),
    /// The token of a session.
    Session(Secret),
}

impl Credential {
    /// Reads the header `Authorization`, or else the cookie.
    ///
    /// # Errors
    /// `Unauthenticated` with the missing part; `Forbidden` for a change that comes with
    /// a cookie from a page of another site.
    pub fn of(request: &HttpRequest, public_url: &PublicUrl) -> Result<Self, Error> {
        let headers = request.headers();
        let token = session_token(headers, public_url);
        // A key wins: a browser adds its cookie unasked, a header is set on purpose.
        match token.filter(|_| !headers.contains_key(AUTHORIZATION)) {
            None => Ok(Self::Key(Secret::new(presented_key(request)?.to_owned()))),
            Some(_) if !is_own_page(request, public_url) => {
                Err(Error::refused(ForeignSite::Session))
            }
            Some(token) => Ok(Self::Session(Secret::new(token.to_owned()))),
        }
    }

    /// Finds the caller.
    ///
    /// # Errors
    /// `Unauthenticated` for a key or a session that is not valid.
    pub async fn authenticate(&self, services: &Services) -> Result<Actor, Error> {
        match self {
            Self::Key(key) => authenticate(services, key.reveal()).await,
            Self::Session(token) => authenticate_session(services, token.reveal()).await,
        }
    }
}

fn is_secure(public_url: &PublicUrl) -> bool {
    public_url.base().starts_with("https://")
}

fn cookie_name(public_url: &PublicUrl) -> &'static str {
    if is_secure(public_url) {
        SECURE_COOKIE
    } else {
        PLAIN_COOKIE
    }
}

/// The token of the request's session, if it shows one.
pub(crate) fn session_token<'r>(headers: &'r HeaderMap, public_url: &PublicUrl) -> Option<&'r str> {
    cookie_of(headers, cookie_name(public_url))
}

/// The value of the cookie of a sign-in that continues at the identity provider.
pub(crate) fn attempt_of<'r>(headers: &'r HeaderMap, public_url: &PublicUrl) -> Option<&'r str> {
    cookie_of(headers, attempt_name(public_url))
}

fn attempt_name(public_url: &PublicUrl) -> &'static str {
    if is_secure(public_url) {
        SECURE_ATTEMPT
    } else {
        PLAIN_ATTEMPT
    }
}

fn cookie_of<'r>(headers: &'r HeaderMap, name: &str) -> Option<&'r str> {
    // HTTP/2 splits cookies into several headers, which not every proxy joins (RFC 9113, section 8.2.3).
    let cookies = headers.get_all(COOKIE).filter_map(|it| it.to_str().ok());
    cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find(|(known, _)| *known == name)
        .map(|(_, token)| token)
}

/// Returns true if the request changes nothing, or comes from a page of the platform or from no page.
fn is_own_page(request: &HttpRequest, public_url: &PublicUrl) -> bool {
    if matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    ) {
        return true;
    }
    let headers = request.headers();
    // Set by the browser itself, so no script can forge it; old browsers send `Origin` only.
    if let Some(site) = headers.get("sec-fetch-site") {
        // `none` is a request by the user, such as a bookmark. `same-site` includes foreign subdomains.
        return site == "same-origin" || site == "none";
    }
    let own = Url::parse(&public_url.base_for(headers)).map(|url| url.origin());
    let presented = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    match (own, presented) {
        (Ok(own), Some(presented)) => presented == own.ascii_serialization(),
        // A browser sends one of the two headers with every change, so their absence is no proof of an own page.
        _ => false,
    }
}

/// The cookie of a session that begins.
///
/// # Errors
/// [`Error::Internal`] if no header can hold it.
pub(crate) fn session_cookie(
    public_url: &PublicUrl,
    token: &PlainToken,
) -> Result<HeaderValue, Error> {
    let seconds = SESSION_LIFETIME.whole_seconds();
    cookie(public_url, cookie_name(public_url), token.reveal(), seconds)
}

/// The cookie of a sign-in that continues at the identity provider; of no seconds, its removal. `Lax` lets the browser
/// send it when the provider sends it back.
///
/// # Errors
/// As [`session_cookie`].
pub(crate) fn attempt_cookie(
    public_url: &PublicUrl,
    value: &str,
    seconds: i64,
) -> Result<HeaderValue, Error> {
    cookie(public_url, attempt_name(public_url), value, seconds)
}

/// The cookie that removes the one of a session.
///
/// # Errors
/// As [`session_cookie`].
pub(crate) fn ended_cookie(public_url: &PublicUrl) -> Result<HeaderValue, Error> {
    cookie(public_url, cookie_name(public_url), "", 0)
}

fn cookie(
    public_url: &PublicUrl,
    name: &str,
    value: &str,
    seconds: i64,
) -> Result<HeaderValue, Error> {
    // Browsers drop a `Secure` cookie that arrives by plain HTTP, and `__Host-` requires the attribute.
    let secure = if is_secure(public_url) {
        "; Secure"
    } else {
        ""
    };
    let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&text).map_err(|error| Error::Internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    const LOCAL: &str = "http://127.0.0.1:8080";

    #[test]
    fn the_name_of_the_cookie_and_its_attributes_follow_the_public_url() {
        let token = PlainToken::from_random([7; 32]);
        let presented = |base: &str| {
            let cookie = session_cookie(&PublicUrl::fixed(base), &token).unwrap();
            cookie.to_str().unwrap().replace(token.reveal(), "…")
        };
        let rest = "…; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax";
        assert_eq!(presented(LOCAL), format!("labdata-session={rest}"));
        assert_eq!(
            presented("https://lab.example.org"),
            format!("__Host-labdata-session={rest}; Secure")
        );
    }

    #[test]
    fn a_token_is_found_among_other_cookies_by_its_whole_name() {
        let url = PublicUrl::fixed(LOCAL);
        for (header, expected) in [
            ("labdata-session=abc", Some("abc")),
            ("a=b; labdata-session=abc; c=d", Some("abc")),
            ("a=labdata-session; xlabdata-session=abc", None),
            ("__Host-labdata-session=abc", None),
            ("", None),
        ] {
            let request = TestRequest::default().insert_header((COOKIE, header));
            let request = request.to_http_request();
            assert_eq!(session_token(request.headers(), &url), expected, "{header}");
        }
    }

    #[test]
    fn changes_come_from_own_pages_only() {
        let url = PublicUrl::fixed(LOCAL);
        let post = |headers: &[(&'static str, &'static str)]| {
            let mut request = TestRequest::post();
            for header in headers {
                request = request.append_header(*header);
            }
            is_own_page(&request.to_http_request(), &url)
        };
        assert!(post(&[("sec-fetch-site", "same-origin")]));
        assert!(post(&[("sec-fetch-site", "none")]));
        assert!(post(&[("origin", LOCAL)]));
        for headers in [
            &[][..],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "cross-site"), ("origin", LOCAL)],
            &[("origin", "null")],
            &[("origin", "http://127.0.0.1:8081")],
            &[("origin", "https://127.0.0.1:8080")],
        ] {
            assert!(!post(headers), "{headers:?}");
        }
        let get = TestRequest::get().insert_header(("sec-fetch-site", "cross-site"));
        assert!(is_own_page(&get.to_http_request(), &url));
    }
}
