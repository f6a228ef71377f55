//! Encryption of the connection to a mail server, from its URL.

use url::{Host, Url};

/// Adds the encryption to the URL. `smtps://` is TLS from the start. `smtp://` uses STARTTLS if the
/// server offers it, and requires it if a password goes to another machine; a `tls=required`,
/// `tls=opportunistic` or `tls=none` in the URL takes precedence.
pub(crate) fn with_encryption(mut url: Url) -> Url {
    if url.scheme() == "smtp" && !url.query_pairs().any(|(name, _)| name == "tls") {
        // Opportunistic TLS can be stripped by an attacker, who would then read the password.
        let demanded = url.password().is_some() && !is_this_machine(&url);
        let tls = if demanded {
            "required"
        } else {
            "opportunistic"
        };
        url.query_pairs_mut().append_pair("tls", tls);
    }
    if url
        .query_pairs()
        .any(|(name, value)| name == "tls" && value == "none")
    {
        // The library knows `required` and `opportunistic` only; no parameter means no TLS.
        url.set_query(None);
    }
    url
}

fn is_this_machine(url: &Url) -> bool {
    // For schemes unknown to `url`, the host is a name even if it is an address.
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.starts_with("127."),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_go_to_other_machines_encrypted_or_not_at_all() {
        for (given, expected) in [
            (
                "smtps://u:p@mail.example.org",
                "smtps://u:p@mail.example.org",
            ),
            (
                "smtp://u:p@mail.example.org:587",
                "smtp://u:p@mail.example.org:587?tls=required",
            ),
            (
                "smtp://mail.example.org",
                "smtp://mail.example.org?tls=opportunistic",
            ),
            (
                "smtp://u:p@localhost:25",
                "smtp://u:p@localhost:25?tls=opportunistic",
            ),
            (
                "smtp://u:p@127.0.0.1:25",
                "smtp://u:p@127.0.0.1:25?tls=opportunistic",
            ),
            (
                "smtp://u:p@[::1]:25",
                "smtp://u:p@[::1]:25?tls=opportunistic",
            ),
            (
                "smtp://u:p@10.0.0.1?tls=opportunistic",
                "smtp://u:p@10.0.0.1?tls=opportunistic",
            ),
            ("smtp://u:p@10.0.0.1?tls=none", "smtp://u:p@10.0.0.1"),
        ] {
            let url = with_encryption(given.parse().unwrap());
            assert_eq!(url.as_str(), expected, "{given}");
        }
    }
}
