//! Guard against requests of other sites' pages.

use actix_web::{HttpRequest, http::header::ORIGIN};
use labdata_application::Error;
use labdata_domain::people::credential::ForeignSite;
use url::Url;

use crate::http::public_url::PublicUrl;

/// Checks that a request does not come from the page of another site. A page that has bound its name to
/// this server's address sends its name as the origin. Programs that are no browsers send none.
///
/// # Errors
/// `Forbidden`.
pub(super) fn check_origin(public_url: &PublicUrl, request: &HttpRequest) -> Result<(), Error> {
    let Some(origin) = request.headers().get(ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().ok().and_then(|text| Url::parse(text).ok());
    let own = Url::parse(public_url.base()).ok();
    match (origin, own) {
        (Some(origin), Some(own)) if origin.origin() == own.origin() => Ok(()),
        _ => Err(Error::refused(ForeignSite::Page)),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn is_answered(origin: Option<&str>) -> bool {
        let mut request = TestRequest::default();
        if let Some(origin) = origin {
            request = request.insert_header((ORIGIN, origin));
        }
        let own = PublicUrl::fixed("https://lab.example.org");
        check_origin(&own, &request.to_http_request()).is_ok()
    }

    #[test]
    fn only_pages_of_the_platform_are_answered() {
        assert!(is_answered(None));
        assert!(is_answered(Some("https://lab.example.org")));
        for origin in [
            "http://lab.example.org",
            "https://lab.example.org:8443",
            "https://evil.example.com",
            "http://localhost:8080",
            "null",
            "",
        ] {
            assert!(!is_answered(Some(origin)), "{origin}");
        }
    }
}
