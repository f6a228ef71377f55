//! Which encryption a mail server's URL asks for.

use url::{Host, Url};

/// The URL with the encryption spelt out: `smtps://` is TLS from the start. `smtp://` is STARTTLS
/// where the server offers it, and demanded where a password would go to another machine; an own
/// `tls=required`, `tls=opportunistic` or `tls=none` wins.
pub(crate) fn with_encryption(mut url: Url) -> Url {
    if url.scheme() == "smtp" && !url.query_pairs().any(|(name, _)| name == "tls") {
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
        url.set_query(None);
    }
    url
}

fn is_this_machine(url: &Url) -> bool {
    // Of an unknown scheme the host is not parsed into an address.
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
