//! The provider: a server on a free port.

use std::{
    collections::VecDeque,
    future,
    io::{Error, ErrorKind, Result},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::JoinHandle,
    time::sleep,
};

use crate::{
    dialect::{error, events, whole},
    reply::{Fault, Reply},
    request::Request,
};

/// Chooses the reply to a request that the script has none for.
pub type Responder = dyn Fn(&Request) -> Reply + Send + Sync;

/// A provider. It ends with this value.
#[derive(Debug)]
pub struct Provider {
    address: String,
    state: Arc<Mutex<State>>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    script: VecDeque<Reply>,
    /// The reply to each request beyond the script.
    otherwise: Option<Arc<Responder>>,
    requests: Vec<Request>,
    /// Number of replies that are being sent.
    open: usize,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Provider {
    /// Starts a provider without a script.
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    /// Starts a provider at that address.
    pub async fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::<Mutex<State>>::default();
        let serving = tokio::spawn(serve(listener, state.clone()));
        Self {
            address,
            state,
            serving,
        }
    }

    /// Base URL of both dialects.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Adds a reply to the script.
    pub fn will(&self, reply: Reply) {
        lock(&self.state).script.push_back(reply);
    }

    /// Sets the replies to the requests beyond the script. Without them, this kind of request gets 500.
    pub fn otherwise(&self, responder: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        lock(&self.state).otherwise = Some(Arc::new(responder));
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.state).requests.clone()
    }

    /// Waits until no reply is being sent, because all are complete or their clients have left.
    pub async fn idle(&self) {
        while lock(&self.state).open > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((connection, _)) = listener.accept().await {
        tokio::spawn(converse(connection, state.clone()));
    }
}

/// Responds to the requests of a connection, one after the other.
async fn converse(connection: TcpStream, state: Arc<Mutex<State>>) {
    let _ = connection.set_nodelay(true);
    let (reader, mut writer) = connection.into_split();
    let mut reader = BufReader::new(reader);
    while let Some(request) = Request::read(&mut reader).await {
        let reply = {
            let mut state = lock(&state);
            state.open += 1;
            state.requests.push(request.clone());
            let otherwise = state.otherwise.clone();
            let scripted = state.script.pop_front();
            scripted.unwrap_or_else(|| match otherwise {
                Some(responder) => responder(&request),
                None => Reply::error(500, "the script has no further reply"),
            })
        };
        let sending = send(&mut writer, &request, &reply);
        // A client that leaves ends a reply that is silent or slow.
        let sent = tokio::select! {
            sent = sending => sent,
            () = left(&mut reader) => Err(ErrorKind::ConnectionAborted.into()),
        };
        lock(&state).open -= 1;
        if sent.is_err() {
            return;
        }
    }
}

/// Waits until the client closes the connection.
async fn left(reader: &mut BufReader<OwnedReadHalf>) {
    match reader.fill_buf().await {
        Ok([]) | Err(_) => {}
        // The next request, which a client sends only after the reply.
        Ok(_) => future::pending().await,
    }
}

async fn send(writer: &mut OwnedWriteHalf, request: &Request, reply: &Reply) -> Result<()> {
    match reply.fault {
        Some(Fault::NoResponse) => return Err(ErrorKind::ConnectionReset.into()),
        Some(Fault::Silence) => future::pending().await,
        _ => {}
    }
    let is_messages = request.is_messages();
    if reply.status != 200 || !request.is_streaming() {
        let body = if reply.status == 200 {
            whole(reply, is_messages)
        } else {
            error(reply, is_messages)
        };
        let body = body.to_string();
        let length = format!("content-length: {}\r\n", body.len());
        let head = head(reply, "application/json", &length);
        writer.write_all(head.as_bytes()).await?;
        return writer.write_all(body.as_bytes()).await;
    }
    let head = head(reply, "text/event-stream", "transfer-encoding: chunked\r\n");
    writer.write_all(head.as_bytes()).await?;
    for event in events(reply, is_messages) {
        sleep(reply.pace).await;
        for chunk in event.as_bytes().chunks(reply.split.unwrap_or(usize::MAX)) {
            write_chunk(writer, chunk).await?;
        }
    }
    match reply.fault {
        Some(Fault::Reset) => Err(Error::from(ErrorKind::ConnectionReset)),
        Some(Fault::SilentBody | Fault::SilentEnd | Fault::EndlessEvent) => future::pending().await,
        _ => writer.write_all(b"0\r\n\r\n").await,
    }
}

async fn write_chunk(writer: &mut OwnedWriteHalf, bytes: &[u8]) -> Result<()> {
    let head = format!("{:x}\r\n", bytes.len());
    let chunk = [head.as_bytes(), bytes, b"\r\n"].concat();
    writer.write_all(&chunk).await?;
    writer.flush().await
}

fn head(reply: &Reply, content_type: &str, framing: &str) -> String {
    let mut given = reply.headers.iter();
    let given = given.find(|(name, _)| name == "content-type");
    let content_type = given.map_or(content_type, |(_, value)| value);
    let mut head = format!(
        "HTTP/1.1 {} Status\r\ncontent-type: {content_type}\r\n{framing}",
        reply.status
    );
    for (name, value) in reply
        .headers
        .iter()
        .filter(|(name, _)| name != "content-type")
    {
        head.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
    }
    head.push_str("\r\n");
    head
}
