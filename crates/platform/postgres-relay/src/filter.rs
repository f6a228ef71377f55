//! Reads the server's messages while they are forwarded.

/// Length of a message's type and length.
const HEADER: usize = 5;

/// Length of the request for authentication up to its kind, which is 0 once the client is logged in.
const AUTHENTICATION: usize = 9;

/// Takes notifications out of a stream of the server's messages, and notices the end of the login.
#[derive(Debug, Default)]
pub(crate) struct MessageFilter {
    /// Start of a message whose kind is not known yet.
    start: Vec<u8>,
    /// Bytes of the message that are still to come.
    left: u64,
    is_dropped: bool,
    is_logged_in: bool,
}

impl MessageFilter {
    /// Returns true once the server has said that the client is logged in.
    pub(crate) const fn is_logged_in(&self) -> bool {
        self.is_logged_in
    }

    /// Adds to `output` what of the next bytes is forwarded.
    pub(crate) fn feed(&mut self, mut input: &[u8], output: &mut Vec<u8>) {
        while let Some((first, rest)) = input.split_first() {
            if self.left > 0 {
                let length = usize::try_from(self.left)
                    .unwrap_or(usize::MAX)
                    .min(input.len());
                let (part, rest) = input.split_at(length);
                if !self.is_dropped {
                    output.extend_from_slice(part);
                }
                self.left -= u64::try_from(length).unwrap_or(self.left);
                input = rest;
                continue;
            }
            self.start.push(*first);
            input = rest;
            self.begin(output);
        }
    }

    /// Begins a message, if enough of it is known.
    fn begin(&mut self, output: &mut Vec<u8>) {
        let [kind, a, b, c, d, body @ ..] = self.start.as_slice() else {
            return;
        };
        let length = u64::from(u32::from_be_bytes([*a, *b, *c, *d])) + 1;
        let known = u64::try_from(self.start.len()).unwrap_or(u64::MAX);
        // Requests for authentication share one type, and only their content says that the login is over.
        if *kind == b'R' && self.start.len() < AUTHENTICATION && known < length {
            return;
        }
        self.is_logged_in |= *kind == b'R' && body == [0; AUTHENTICATION - HEADER];
        self.is_dropped = *kind == b'A';
        // A length below that of the length itself is the server's error, which the client finds.
        self.left = length.saturating_sub(known);
        if !self.is_dropped {
            output.append(&mut self.start);
        }
        self.start.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    #[test]
    fn notifications_do_not_pass_however_the_bytes_arrive() {
        let sent = [
            message(b'R', &[0, 0, 0, 10, 1, 2, 3]),
            message(b'R', &[0; 4]),
            message(b'A', b"\0\0\0\x07channel\0payload\0"),
            message(b'D', &[b'A'; 300]),
            message(b'1', b""),
            message(b'A', b"\0\0\0\x07channel\0\0"),
            message(b'Z', b"I"),
        ];
        let expected: Vec<u8> = [0, 1, 3, 4, 6]
            .iter()
            .flat_map(|it| sent[*it].clone())
            .collect();
        let sent = sent.concat();
        for size in [1, 2, 3, 7, 64, sent.len()] {
            let (mut filter, mut output) = (MessageFilter::default(), Vec::new());
            for part in sent.chunks(size) {
                filter.feed(part, &mut output);
            }
            assert_eq!(output, expected, "in parts of {size}");
            assert!(filter.is_logged_in());
        }
    }

    #[test]
    fn a_request_for_a_password_is_no_login() {
        let (mut filter, mut output) = (MessageFilter::default(), Vec::new());
        filter.feed(&message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"), &mut output);
        filter.feed(&message(b'R', &[0, 0, 0, 3]), &mut output);
        assert!(!filter.is_logged_in());
    }
}
