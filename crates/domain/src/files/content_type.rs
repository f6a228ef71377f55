//! Content types of stored and served files.

use std::fmt;

use mime::Mime;

/// Content type of files without a known or permitted one.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// Maximum length of a content type in bytes.
const MAX_LENGTH: usize = 255;

/// Types that a browser could render as a page or run, and types without information (essence, in
/// lower case). Types that end in `+xml`, all `multipart/*` and all kinds of `JavaScript` are
/// substituted as well.
const SUBSTITUTED: [&str; 15] = [
    "text/html",
    "application/xhtml+xml",
    "text/xml",
    "application/xml",
    "text/xsl",
    "application/pdf",
    "message/rfc822",
    "application/hta",
    "application/x-shockwave-flash",
    "text/x-component",
    "text/cache-manifest",
    "*/*",
    "unknown/unknown",
    "application/unknown",
    OCTET_STREAM,
];

/// Content type of a file: well-formed, safe as a header value, and not renderable as a page by a
/// browser.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContentType(String);

impl ContentType {
    /// Returns the given type, or `application/octet-stream` if none was given, if it does not
    /// parse, or if a browser could render it as a page (notes on storage).
    #[must_use]
    pub fn substitute(given: Option<&str>) -> Self {
        given
            .map(str::trim)
            .and_then(Self::acceptable)
            .unwrap_or_default()
    }

    fn acceptable(given: &str) -> Option<Self> {
        if given.len() > MAX_LENGTH || !given.bytes().all(|b| (b' '..=b'~').contains(&b)) {
            return None;
        }
        let parsed: Mime = given.parse().ok()?;
        // Browsers ignore case and parameters when they decide what to render.
        let essence = parsed.essence_str().to_ascii_lowercase();
        let (top, sub) = essence.split_once('/')?;
        let script = ["javascript", "ecmascript", "livescript", "jscript"];
        let refused = SUBSTITUTED.contains(&essence.as_str())
            // Browsers run scripts in every XML dialect, SVG first of all.
            || essence.ends_with("+xml")
            || top == "multipart"
            || top == "*"
            || sub == "*"
            // The many spellings of JavaScript types (`x-javascript`, `javascript1.5`) share these names.
            || script.iter().any(|name| sub.contains(name));
        (!refused).then(|| Self(given.to_owned()))
    }

    /// Returns the type as a header value.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ContentType {
    fn default() -> Self {
        Self(OCTET_STREAM.to_owned())
    }
}

impl fmt::Display for ContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_types_are_kept_as_given() {
        for given in [
            "text/csv",
            "text/plain; charset=utf-8",
            "image/png",
            "application/json",
        ] {
            assert_eq!(ContentType::substitute(Some(given)).as_str(), given);
        }
    }

    #[test]
    fn types_that_a_browser_could_render_become_octet_stream() {
        let given = [
            "text/html",
            "TEXT/HTML; charset=utf-8",
            "image/svg+xml",
            "application/atom+xml",
            "text/xml",
            "application/pdf",
            "application/x-javascript",
            "text/javascript1.5",
            "text/jscript",
            "application/ecmascript",
            "text/livescript",
            "multipart/related; boundary=x",
            "message/rfc822",
            "*/*",
            "text/*",
            "unknown/unknown",
            "",
            "csv",
            "text/csv\r\nX-Evil: 1",
            "text/html\u{0}",
            "text/ html",
        ];
        for given in given {
            assert_eq!(
                ContentType::substitute(Some(given)).as_str(),
                OCTET_STREAM,
                "{given:?}"
            );
        }
        assert_eq!(ContentType::substitute(None).as_str(), OCTET_STREAM);
    }

    #[test]
    fn a_type_of_255_bytes_is_kept_and_a_longer_one_is_not() {
        let of_length = |length: usize| format!("text/{}", "x".repeat(length - "text/".len()));
        let longest = of_length(255);
        assert_eq!(ContentType::substitute(Some(&longest)).as_str(), longest);
        let longer = of_length(256);
        assert_eq!(
            ContentType::substitute(Some(&longer)).as_str(),
            OCTET_STREAM
        );
    }

    #[test]
    fn it_is_displayed_as_its_header_value() {
        let csv = ContentType::substitute(Some("text/csv"));
        assert_eq!(csv.to_string(), "text/csv");
    }

    proptest! {
        #[test]
        fn the_result_is_always_a_header_value_and_no_page(given in ".*|[a-z]{1,12}/[a-z+;=. ]{0,20}") {
            let stored = ContentType::substitute(Some(&given));
            prop_assert!(stored.as_str().bytes().all(|b| (b' '..=b'~').contains(&b)));
            prop_assert!(!stored.as_str().to_ascii_lowercase().contains("html"));
            prop_assert_eq!(ContentType::substitute(Some(stored.as_str())), stored);
        }
    }
}
