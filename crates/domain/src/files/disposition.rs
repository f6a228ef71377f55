//! File names of downloads.

use std::fmt::Write;

/// Returns a `Content-Disposition` value (RFC 6266) that saves a download under that name.
///
/// The value is always one line of printable ASCII: the plain form has `_` in place of characters
/// that older clients misread, and if it differs from the name, the extended form of RFC 5987
/// carries the whole name.
#[must_use]
pub fn attachment(file_name: &str) -> String {
    let plain: String = file_name
        .chars()
        .map(|c| {
            // For old clients: `"` would end the name, some decode `%`, and Windows refuses the other characters.
            let safe = matches!(c, ' '..='~')
                && !matches!(
                    c,
                    '"' | '\\' | '%' | '/' | ':' | '*' | '?' | '<' | '>' | '|'
                );
            if safe { c } else { '_' }
        })
        .collect();
    let mut value = format!("attachment; filename=\"{plain}\"");
    if plain != file_name {
        // The exact name, for clients that know RFC 6266.
        value.push_str("; filename*=UTF-8''");
        for byte in file_name.bytes() {
            // The attr-char of RFC 5987.
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                value.push(char::from(byte));
            } else {
                let _ = write!(value, "%{byte:02X}");
            }
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_name_is_quoted() {
        assert_eq!(
            attachment("plate 1.csv"),
            "attachment; filename=\"plate 1.csv\""
        );
        assert_eq!(
            attachment("a;b=c.csv"),
            "attachment; filename=\"a;b=c.csv\""
        );
    }

    #[test]
    fn other_names_come_in_both_forms() {
        assert_eq!(
            attachment("Süd €.csv"),
            "attachment; filename=\"S_d _.csv\"; filename*=UTF-8''S%C3%BCd%20%E2%82%AC.csv"
        );
        assert_eq!(
            attachment("a\"; filename=evil.exe"),
            "attachment; filename=\"a_; filename=evil.exe\"; filename*=UTF-8''a%22%3B%20filename%3Devil.exe"
        );
        assert_eq!(
            attachment("100%.csv"),
            "attachment; filename=\"100_.csv\"; filename*=UTF-8''100%25.csv"
        );
    }

    proptest! {
        #[test]
        fn no_name_ends_the_line_or_the_quotes(name in "\\PC*|(?s).*") {
            let value = attachment(&name);
            prop_assert!(value.bytes().all(|b| (b' '..=b'~').contains(&b)));
            prop_assert_eq!(value.matches('"').count(), 2);
            prop_assert!(!value.contains('\\'));
        }
    }
}
