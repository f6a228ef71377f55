//! Addresses of webhooks.

use std::fmt;

/// Maximum number of characters of an address.
pub const MAX_URL_LENGTH: usize = 2_000;

/// An address: an absolute URL of http or https, without user, password and fragment.
///
/// Addresses of Slack and Teams are secrets by themselves, so `Debug` shows the host only.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(String);

/// Error: a text is no address of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a webhook's address is a URL such as https://lab.example.org/hook, without user, password and fragment"
)]
pub struct InvalidWebhookUrl;

impl WebhookUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// [`InvalidWebhookUrl`].
    pub fn parse(text: &str) -> Result<Self, InvalidWebhookUrl> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidWebhookUrl)?;
        let is_http = ["http", "https"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known));
        let permitted = |c: char| c.is_ascii_graphic() && !r#"#"<>\^`{|}"#.contains(c);
        let is_short = text.len() <= MAX_URL_LENGTH;
        if is_http && is_short && rest.chars().all(permitted) && is_authority(authority(rest)) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidWebhookUrl)
        }
    }

    /// The address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its host, with the port if it names one.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0
            .split_once("://")
            .map_or("", |(_, rest)| authority(rest))
    }
}

/// Host and port: the part before path and query.
fn authority(rest: &str) -> &str {
    rest.split(['/', '?']).next().unwrap_or_default()
}

fn is_authority(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            // A placeholder for the address, which is parsed here and whose colons the check of names below would
            // refuse.
            Some((address, port)) if address.parse::<std::net::Ipv6Addr>().is_ok() => ("v6", port),
            _ => return false,
        },
        None => match authority.find(':') {
            Some(colon) => authority.split_at(colon),
            None => (authority, ""),
        },
    };
    let is_host = !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    is_host && is_port
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl({}…)", self.host())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_urls_of_http_are_addresses() {
        for (url, host) in [
            ("https://lab.example.org/hook?a=1&b=%20", "lab.example.org"),
            ("HTTP://10.0.0.7:8080", "10.0.0.7:8080"),
            ("https://[2001:db8::1]:443/x", "[2001:db8::1]:443"),
            (
                "https://hooks.slack.com/services/T0/B0/xyz",
                "hooks.slack.com",
            ),
        ] {
            assert_eq!(
                WebhookUrl::parse(url).map(|url| url.host().to_owned()),
                Ok(host.to_owned())
            );
        }
    }

    #[test]
    fn other_texts_are_none() {
        for url in [
            "",
            "lab.example.org/hook",
            "ftp://lab.example.org",
            "https://",
            "https:///path",
            "https://user:password@lab.example.org",
            "https://lab.example.org/#part",
            "https://lab example.org/",
            "https://lab.example.org/\r\nHost: x",
            "https://lab.example.org:99999/",
            "https://lab.example.org:0/",
            "https://[::1",
            "https://[nonsense]/",
            "https://bücher.example/",
            &format!("https://lab.example.org/{}", "a".repeat(MAX_URL_LENGTH)),
        ] {
            assert_eq!(WebhookUrl::parse(url), Err(InvalidWebhookUrl), "{url}");
        }
    }

    #[test]
    fn debug_hides_what_follows_the_host() {
        let url = WebhookUrl::parse("https://hooks.slack.com/services/secret").unwrap();
        assert_eq!(format!("{url:?}"), "WebhookUrl(hooks.slack.com…)");
    }
}
