//! HTML that the platform writes.

/// Escapes a text for HTML, also within quotes.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // HTML 4 has no `&apos;`.
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let escaped = escaped("<a href=\"x\" title='&'>");
        assert_eq!(
            escaped,
            "&lt;a href=&quot;x&quot; title=&#39;&amp;&#39;&gt;"
        );
    }
}
