//! Content negotiation: JSON or a file format, by the `Accept` header.

use actix_web::{
    HttpRequest,
    http::header::{ACCEPT_ENCODING, Accept, Header, HeaderMap, HeaderValue, Quality},
};
use labdata_operations::ResultForm;
use labdata_table_formats::Format;

use super::ApiError;

/// `Content-Type` of a response in that form.
#[must_use]
pub(crate) fn content_type(form: ResultForm) -> HeaderValue {
    HeaderValue::from_static(match form {
        ResultForm::File(Format::Csv) => "text/csv; charset=utf-8; header=present",
        other => other.media_type(),
    })
}

/// Parsed `Accept` header of a request.
#[derive(Clone, Debug)]
pub struct Accepted(Accept);

impl Accepted {
    /// Parses the header; a malformed one counts as absent.
    #[must_use]
    pub(super) fn of(request: &HttpRequest) -> Self {
        Self(Accept::parse(request).unwrap_or_else(|_| Accept(Vec::new())))
    }

    /// Returns true if the client accepts JSON, or says nothing of what it accepts.
    #[must_use]
    pub fn allows_json(&self) -> bool {
        let json = self.quality(ResultForm::Json.media_type());
        self.0.is_empty() || json.is_some_and(|quality| quality > Quality::ZERO)
    }

    /// Selects the form that the client prefers; JSON if it names none of the supported ones.
    ///
    /// # Errors
    /// [`ApiError::NotAcceptable`] if the client accepts no form and excludes JSON.
    pub fn form(&self) -> Result<ResultForm, ApiError> {
        let mut best = (ResultForm::Json, Quality::ZERO);
        for form in ResultForm::ALL {
            let quality = self.quality(form.media_type()).unwrap_or(Quality::ZERO);
            // Strictly greater, so that of equal preferences the first form, JSON, wins.
            if quality > best.1 {
                best = (form, quality);
            }
        }
        // A header that names foreign types only gets JSON; one that says `application/json;q=0` excludes it.
        if best.1 == Quality::ZERO && self.quality(ResultForm::Json.media_type()).is_some() {
            let known = ResultForm::ALL.map(ResultForm::media_type).join(", ");
            return Err(ApiError::NotAcceptable(format!("results come as {known}")));
        }
        Ok(best.0)
    }

    /// Quality of a media type by the most specific range that matches it; `None` if none does.
    fn quality(&self, media_type: &str) -> Option<Quality> {
        let (class, _) = media_type.split_once('/')?;
        let ranges = self.0.iter().filter_map(|item| {
            let range = &item.item;
            let specific = match (range.type_().as_str(), range.subtype().as_str()) {
                ("*", "*") => 0,
                (of, "*") if of == class => 1,
                _ if range.essence_str() == media_type => 2,
                _ => return None,
            };
            Some((specific, item.quality))
        });
        // The most specific range counts, not the highest quality (RFC 9110, section 12.5.1).
        let (_, quality) = ranges.max_by_key(|(specific, _)| *specific)?;
        Some(quality)
    }
}

/// Returns whether a client takes a response that is compressed with gzip.
pub(crate) fn accepts_gzip(request: &HeaderMap) -> bool {
    request
        .get_all(ACCEPT_ENCODING)
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            let is_refused = weight
                .trim()
                .strip_prefix("q=")
                .and_then(|weight| weight.trim().parse().ok())
                .is_some_and(|weight: f32| weight <= 0.0);
            name.trim().eq_ignore_ascii_case("gzip") && !is_refused
        })
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn chosen(accept: &str) -> Option<ResultForm> {
        let request = TestRequest::default().insert_header(("accept", accept));
        Accepted::of(&request.to_http_request()).form().ok()
    }

    #[test]
    fn json_comes_unless_another_form_is_more_welcome() {
        let file = |format| Some(ResultForm::File(format));
        for (accept, form) in [
            ("", Some(ResultForm::Json)),
            ("*/*", Some(ResultForm::Json)),
            ("application/*", Some(ResultForm::Json)),
            ("text/html, image/png", Some(ResultForm::Json)),
            ("not a media type", Some(ResultForm::Json)),
            ("text/csv", file(Format::Csv)),
            ("text/*", file(Format::Csv)),
            ("Text/CSV; charset=utf-8", file(Format::Csv)),
            ("text/csv, */*;q=0.5", file(Format::Csv)),
            ("text/csv;q=0.5, application/json", Some(ResultForm::Json)),
            (
                "application/vnd.apache.arrow.stream",
                file(Format::ArrowStream),
            ),
            ("application/vnd.apache.parquet", file(Format::Parquet)),
            ("*/*, application/json;q=0", file(Format::ArrowStream)),
            ("application/json;q=0, text/html", None),
            ("*/*;q=0", None),
        ] {
            assert_eq!(chosen(accept), form, "{accept}");
        }
    }

    #[test]
    fn a_request_without_the_header_gets_json() {
        let request = TestRequest::default().to_http_request();
        assert_eq!(Accepted::of(&request).form().unwrap(), ResultForm::Json);
    }
}
