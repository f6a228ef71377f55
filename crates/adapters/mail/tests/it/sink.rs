//! A mail server for tests that stores received e-mails.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Behavior of the server towards clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Accepts every e-mail.
    Accepts,
    /// Never replies.
    Silent,
    /// Rejects every recipient with this reply.
    Rejects(&'static str),
}

/// A received e-mail: headers, an empty line, the body.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedEmail {
    pub(crate) recipients: Vec<String>,
    pub(crate) content: String,
}

impl ReceivedEmail {
    /// Value of a header, unfolded.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let (head, _) = self.content.split_once("\r\n\r\n")?;
        let unfolded = head.replace("\r\n ", " ").replace("\r\n\t", " ");
        let start = format!("{}:", name.to_ascii_lowercase());
        let line = unfolded
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with(&start))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    }
}

/// A running server; stops when dropped.
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedEmail>>>,
    connections: Arc<Mutex<usize>>,
    server: JoinHandle<()>,
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Sink {
    /// Starts a server on a free port.
    pub(crate) async fn start(behavior: Behavior) -> Self {
        Self::on(([127, 0, 0, 1], 0).into(), behavior).await
    }

    /// Starts a server on this address.
    pub(crate) async fn on(address: SocketAddr, behavior: Behavior) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let (keep, count) = (Arc::clone(&received), Arc::clone(&connections));
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *count.lock().unwrap() += 1;
                tokio::spawn(talk(stream, behavior.clone(), Arc::clone(&keep)));
            }
        });
        Self {
            address,
            received,
            connections,
            server,
        }
    }

    /// URL of the server.
    pub(crate) fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// E-mails received so far.
    pub(crate) fn received(&self) -> Vec<ReceivedEmail> {
        self.received.lock().unwrap().clone()
    }

    /// Number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

async fn talk(
    stream: TcpStream,
    behavior: Behavior,
    received: Arc<Mutex<Vec<ReceivedEmail>>>,
) -> Option<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    if behavior == Behavior::Silent {
        while lines.next_line().await.ok()?.is_some() {}
        return None;
    }
    writer.write_all(b"220 sink\r\n").await.ok()?;
    let mut recipients = Vec::new();
    while let Some(line) = lines.next_line().await.ok()? {
        let command = line
            .split([' ', ':'])
            .next()
            .unwrap_or_default()
            .to_ascii_uppercase();
        let response = match (command.as_str(), &behavior) {
            ("RCPT", Behavior::Rejects(response)) => (*response).to_owned(),
            ("RCPT", _) => {
                let address = line.split(['<', '>']).nth(1).unwrap_or_default();
                recipients.push(address.to_owned());
                "250 ok".to_owned()
            }
            ("DATA", _) => {
                writer.write_all(b"354 go on\r\n").await.ok()?;
                let mut content = String::new();
                loop {
                    let line = lines.next_line().await.ok()??;
                    if line == "." {
                        break;
                    }
                    content.push_str(line.strip_prefix('.').unwrap_or(&line));
                    content.push_str("\r\n");
                }
                let recipients = std::mem::take(&mut recipients);
                received.lock().unwrap().push(ReceivedEmail {
                    recipients,
                    content,
                });
                "250 received".to_owned()
            }
            ("QUIT", _) => {
                writer.write_all(b"221 bye\r\n").await.ok()?;
                return Some(());
            }
            _ => "250 ok".to_owned(),
        };
        writer
            .write_all(format!("{response}\r\n").as_bytes())
            .await
            .ok()?;
    }
    Some(())
}
