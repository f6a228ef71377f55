//! Text of the e-mails that notifications become.

use std::fmt::Write;

use super::Notification;
use crate::html::escaped;

/// Text of an e-mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailText {
    /// The subject: one line.
    pub subject: String,
    /// The text part.
    pub text: String,
    /// The HTML part.
    pub html: String,
}

impl EmailText {
    /// Renders a notification. `public_url` is the platform's URL, without a slash at the end.
    #[must_use]
    pub fn of(notification: &Notification, public_url: &str) -> Self {
        let Notification {
            title,
            body,
            action_url,
            sender,
            ..
        } = notification;
        // A name with line breaks could pass for text of the platform.
        let sender = format!("Sent by {} on {public_url}", one_line(sender.name()));
        let link =
            (!action_url.is_empty()).then(|| format!("{public_url}{}", escaped_url(action_url)));
        let parts: [Option<&str>; 3] = [
            Some(body.trim_end()).filter(|body| !body.is_empty()),
            link.as_deref(),
            Some(&sender),
        ];
        let text = [Some(title.as_str())]
            .into_iter()
            .chain(parts)
            .flatten()
            .collect::<Vec<_>>();
        Self {
            // A line break would begin another header field (header injection).
            subject: one_line(title),
            text: text.join("\n\n") + "\n",
            html: html(title, body, link.as_deref(), &sender),
        }
    }

    /// Renders an e-mail that is no notification: a title, a paragraph, a link of the platform and its sender.
    pub(crate) fn with_link(title: &str, body: &str, link: &str, sender: &str) -> Self {
        let (title, sender) = (one_line(title), one_line(sender));
        Self {
            text: format!("{title}\n\n{body}\n\n{link}\n\n{sender}\n"),
            html: html(&title, body, Some(link), &sender),
            subject: title,
        }
    }
}

fn html(title: &str, body: &str, link: Option<&str>, sender: &str) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
         <body style=\"font-family: sans-serif\">\n<h1 style=\"font-size: 1.2em\">{title}</h1>\n",
        title = escaped(title)
    );
    if !body.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            html,
            "<p style=\"white-space: pre-wrap\">{}</p>",
            escaped(body)
        );
    }
    if let Some(link) = link {
        let link = escaped(link);
        let _ = writeln!(html, "<p><a href=\"{link}\">{link}</a></p>");
    }
    let _ = writeln!(
        html,
        "<p style=\"color: #666\">{}</p>\n</body></html>",
        escaped(sender)
    );
    html
}

/// Puts a text on one line: a line end in a subject would start another header.
fn one_line(text: &str) -> String {
    let spaced = text.replace(|character: char| character.is_control(), " ");
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Escapes the characters of a path that a URL must not have, so that mail programs find its end.
fn escaped_url(path: &str) -> String {
    let mut url = String::with_capacity(path.len());
    for byte in path.bytes() {
        // Programs that look for links in text end them at such characters.
        if byte.is_ascii_graphic() && !b"<>\"`{}|^".contains(&byte) {
            url.push(char::from(byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use serde_json::Map;
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;
    use crate::{
        ids::{ApiKeyId, NotificationId},
        notifications::Sender,
    };

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn notification(title: &str, body: &str, action_url: &str) -> Notification {
        Notification {
            id: NotificationId::new(Uuid::from_u128(1)),
            title: title.to_owned(),
            body: body.to_owned(),
            action_url: action_url.to_owned(),
            data: Some(Map::new()),
            sender: Sender::ApiKey {
                id: ApiKeyId::new(Uuid::from_u128(2)),
                name: "<key>".to_owned(),
            },
            created_at: NOW,
            read_at: None,
        }
    }

    #[test]
    fn a_subject_is_one_line() {
        let title = "done\r\nBcc: all@example.org\u{85}\u{0}x";
        let text = EmailText::of(&notification(title, "", ""), "https://lab.example.org");
        assert_eq!(text.subject, "done Bcc: all@example.org x");
        assert!(!text.subject.contains(char::is_control));
    }

    #[test]
    fn nothing_in_a_notification_becomes_markup() {
        let notification = notification("<b>a</b>", "1 < 2 & \"3\"", "/x?a=\"><script>&b=ä");
        let text = EmailText::of(&notification, "https://lab.example.org");
        assert!(text.html.contains("&lt;b&gt;a&lt;/b&gt;"), "{}", text.html);
        assert!(
            text.html.contains("1 &lt; 2 &amp; &quot;3&quot;"),
            "{}",
            text.html
        );
        assert!(
            !text.html.contains("<script>") && !text.html.contains("<key>"),
            "{}",
            text.html
        );
        let link = "https://lab.example.org/x?a=%22%3E%3Cscript%3E&b=%C3%A4";
        assert!(text.text.contains(link), "{}", text.text);
        assert!(
            text.html.contains(&link.replace('&', "&amp;")),
            "{}",
            text.html
        );
    }

    #[test]
    fn what_is_empty_leaves_no_trace() {
        let text = EmailText::of(&notification("done", "", ""), "https://lab.example.org");
        assert_eq!(
            text.text,
            "done\n\nSent by <key> on https://lab.example.org\n"
        );
        assert!(!text.html.contains("<a "), "{}", text.html);
    }
}
