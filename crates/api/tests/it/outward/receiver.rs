//! A receiver of webhooks.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// A request: its head, in lower case, and its body.
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        let start = format!("{name}: ");
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(&start)).unwrap()
    }
}

/// A receiver on this machine, whose answer a test sets.
pub(crate) struct Receiver {
    pub(crate) url: String,
    status: Arc<AtomicU16>,
    received: mpsc::UnboundedReceiver<Received>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        Self::start_at(0).await
    }

    /// The same on that port.
    pub(crate) async fn start_at(port: u16) -> Self {
        let address = (Ipv4Addr::LOCALHOST, port);
        let listener = TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let status = Arc::new(AtomicU16::new(204));
        let (sender, received) = mpsc::unbounded_channel();
        let answer = Arc::clone(&status);
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let (sender, answer) = (sender.clone(), Arc::clone(&answer));
                tokio::spawn(async move {
                    while let Some(request) = read(&mut connection).await {
                        let status = answer.load(Ordering::Relaxed);
                        let response = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                        connection.write_all(response.as_bytes()).await.ok();
                        if sender.send(request).is_err() {
                            break;
                        }
                    }
                });
            }
        });
        Self {
            url,
            status,
            received,
        }
    }

    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    pub(crate) async fn next(&mut self) -> Received {
        self.received.recv().await.unwrap()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.received.is_empty()
    }
}

/// Reads a request with `Content-Length`; `None` at the end of the connection.
async fn read(connection: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let count = connection
            .read(&mut chunk)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_ascii_lowercase();
        let request = Received {
            head,
            body: body.to_owned(),
        };
        let length: usize = request.header("content-length").parse().unwrap();
        if request.body.len() >= length {
            return Some(request);
        }
    }
}
