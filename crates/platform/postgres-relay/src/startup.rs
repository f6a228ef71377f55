//! The first messages of a client: requests for encryption, to cancel, to log in.

use std::{collections::BTreeMap, io};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Codes in place of a version of the protocol.
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// Major version of the protocol, in the upper half of its number.
const MAJOR_VERSION: u32 = 3;

/// Maximum length of the first message, as PostgreSQL's own.
const MAX_LENGTH: u32 = 10_000;

/// A first message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FirstMessage {
    /// A request for TLS.
    Ssl,
    /// A request for encryption by GSSAPI.
    Gss,
    /// A request to cancel a statement, as it is.
    Cancel(Vec<u8>),
    /// A login.
    Login(Login),
}

/// A login: version of the protocol and parameters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Login {
    version: u32,
    parameters: BTreeMap<String, String>,
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_owned())
}

/// Reads a first message.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<FirstMessage> {
    let length = stream.read_u32().await?;
    // The length counts itself and the code behind it.
    if !(8..=MAX_LENGTH).contains(&length) {
        return Err(invalid("a first message of that length"));
    }
    let code = stream.read_u32().await?;
    let rest =
        usize::try_from(length - 8).map_err(|_| invalid("a first message of that length"))?;
    // Bounded before it is allocated, as the client is not known yet.
    let mut body = vec![0; rest];
    stream.read_exact(&mut body).await?;
    match code {
        SSL_REQUEST => Ok(FirstMessage::Ssl),
        GSS_REQUEST => Ok(FirstMessage::Gss),
        CANCEL_REQUEST => {
            let mut message = Vec::with_capacity(rest + 8);
            message.extend_from_slice(&length.to_be_bytes());
            message.extend_from_slice(&code.to_be_bytes());
            message.extend_from_slice(&body);
            Ok(FirstMessage::Cancel(message))
        }
        version if version >> 16 == MAJOR_VERSION => Ok(FirstMessage::Login(Login {
            version,
            parameters: parameters(&body)?,
        })),
        _ => Err(invalid("another version of the protocol")),
    }
}

/// Parses names and values that end with a zero byte each; one more ends the list.
fn parameters(body: &[u8]) -> io::Result<BTreeMap<String, String>> {
    let body = body
        .strip_suffix(&[0])
        .ok_or_else(|| invalid("parameters without an end"))?;
    let mut texts = body.split_inclusive(|byte| *byte == 0).map(|text| {
        let text = text
            .strip_suffix(&[0])
            .ok_or_else(|| invalid("a parameter without an end"))?;
        String::from_utf8(text.to_vec()).map_err(|_| invalid("a parameter that is no UTF-8"))
    });
    let mut parameters = BTreeMap::new();
    while let Some(name) = texts.next() {
        let (name, value) = (name?, texts.next().ok_or_else(|| invalid("a name alone"))??);
        // PostgreSQL takes the last of several, so a check of the first would be none.
        if parameters.insert(name, value).is_some() {
            return Err(invalid("a parameter twice"));
        }
    }
    Ok(parameters)
}

impl Login {
    /// The role.
    pub(crate) fn user(&self) -> &str {
        self.parameters.get("user").map_or("", String::as_str)
    }

    /// The database; PostgreSQL's default is the name of the role.
    pub(crate) fn database(&self) -> &str {
        match self.parameters.get("database").map(String::as_str) {
            None | Some("") => self.user(),
            Some(database) => database,
        }
    }

    /// Returns whether it asks for replication.
    pub(crate) fn is_replication(&self) -> bool {
        self.parameters.contains_key("replication")
    }

    /// The message, made of what was read.
    pub(crate) fn message(&self) -> Vec<u8> {
        let mut message = vec![0; 4];
        message.extend_from_slice(&self.version.to_be_bytes());
        for (name, value) in &self.parameters {
            for text in [name, value] {
                message.extend_from_slice(text.as_bytes());
                message.push(0);
            }
        }
        message.push(0);
        let length = u32::try_from(message.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes();
        for (byte, of_length) in message.iter_mut().zip(length) {
            *byte = of_length;
        }
        message
    }
}

/// A refusal as PostgreSQL writes it: severity, `SQLSTATE`, message.
pub(crate) fn refusal(sqlstate: &str, text: &str) -> Vec<u8> {
    let mut fields = Vec::new();
    for (field, value) in [
        (b'S', "FATAL"),
        (b'V', "FATAL"),
        (b'C', sqlstate),
        (b'M', text),
    ] {
        fields.push(field);
        fields.extend_from_slice(value.as_bytes());
        fields.push(0);
    }
    fields.push(0);
    let length = u32::try_from(fields.len() + 4).unwrap_or(u32::MAX);
    let mut message = vec![b'E'];
    message.extend_from_slice(&length.to_be_bytes());
    message.extend_from_slice(&fields);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(parameters: &[u8]) -> Vec<u8> {
        let length = u32::try_from(parameters.len() + 8).unwrap();
        [
            &length.to_be_bytes()[..],
            &196_608_u32.to_be_bytes(),
            parameters,
        ]
        .concat()
    }

    #[tokio::test]
    async fn a_login_is_read_and_written_as_it_was() {
        let sent = login(b"database\0lab\0user\0sql_1\0\0");
        let FirstMessage::Login(read) = read(&mut &sent[..]).await.unwrap() else {
            panic!("no login");
        };
        assert_eq!((read.user(), read.database()), ("sql_1", "lab"));
        assert_eq!(read.message(), sent);
    }

    #[tokio::test]
    async fn without_a_database_it_is_that_of_the_role() {
        let sent = login(b"user\0sql_1\0replication\0true\0\0");
        let FirstMessage::Login(read) = read(&mut &sent[..]).await.unwrap() else {
            panic!("no login");
        };
        assert_eq!(read.database(), "sql_1");
        assert!(read.is_replication());
    }

    #[tokio::test]
    async fn what_cannot_be_read_for_sure_is_refused() {
        for body in [
            &b"user\0sql_1\0user\0labdata\0\0"[..],
            b"user\0sql_1\0",
            b"user\0\0",
            b"user\0\xff\0\0",
            b"",
        ] {
            assert!(read(&mut &login(body)[..]).await.is_err(), "{body:?}");
        }
        for length in [0_u32, 7, MAX_LENGTH + 1, u32::MAX] {
            assert!(read(&mut &length.to_be_bytes()[..]).await.is_err());
        }
    }
}
