//! The exchange of a run's nonce for its key, before the script starts.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use labdata_port_contracts::work::{end_of, log_from, spec};
use labdata_ports::work::runner::{EndReason, JobRunner, KeyExchange, RunSpec};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use crate::cluster::shared_runner;

/// Prints its key.
const SHOWS_ITS_KEY: &str = "import os\nprint(os.environ['LABDATA_API_KEY'])\n";

/// A platform that answers every exchange in turn with one of these; an empty one is a lost connection.
struct Platform {
    url: String,
    requests: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Platform {
    async fn start(responses: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/run-key", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let reply = responses.get(number).or(responses.last()).unwrap();
                response(client, reply).await;
            }
        });
        Self {
            url,
            requests,
            serving,
        }
    }

    fn spec(&self) -> RunSpec {
        RunSpec {
            key_exchange: Some(KeyExchange {
                url: self.url.clone(),
                nonce: "the-nonce".to_owned(),
                variable: "LABDATA_API_KEY".to_owned(),
            }),
            ..spec(SHOWS_ITS_KEY)
        }
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn response(mut client: TcpStream, response: &str) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(client.read_u8().await.unwrap());
    }
    let request = String::from_utf8(request).unwrap();
    assert!(
        request.starts_with("POST /run-key HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nAuthorization: Bearer the-nonce\r\n"),
        "{request}"
    );
    client.write_all(response.as_bytes()).await.unwrap();
}

const KEY: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"key\": \"the-key\"}";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n{\"detail\": \"busy\"}";
const USED: &str = "HTTP/1.1 401 No\r\nConnection: close\r\n\r\n{\"detail\": \"it was used\"}";
const MOVED: &str =
    "HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:9/elsewhere\r\nConnection: close\r\n\r\n";
const NO_KEY: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<html>another server</html>";

#[tokio::test]
async fn a_busy_platform_is_asked_again_and_the_script_gets_the_key() {
    let (runner, platform) = (shared_runner().await, Platform::start(&[BUSY, KEY]).await);
    let spec = platform.spec();
    runner.submit(&spec).await.unwrap();
    let end = end_of(&runner, spec.run).await;
    assert!(end.succeeded(), "{end:?}");
    assert_eq!(log_from(&runner, spec.run, 0).await, "the-key\n");
    assert_eq!(platform.requests.load(Ordering::SeqCst), 2);
    runner.reap(spec.run).await.unwrap();
}

#[tokio::test]
async fn a_refused_nonce_is_not_shown_again_nor_to_another_host_and_the_script_does_not_start() {
    let runner = shared_runner().await;
    for (responses, cause) in [
        (&[USED][..], "401 it was used"),
        (&[MOVED][..], "307 "),
        (&[NO_KEY][..], "contains no key"),
    ] {
        let platform = Platform::start(responses).await;
        let spec = platform.spec();
        runner.submit(&spec).await.unwrap();
        let end = end_of(&runner, spec.run).await;
        assert_eq!(end.reason, EndReason::KeyNotReceived, "{end:?}");
        assert!(end.error_tail.contains(cause), "{end:?}");
        assert!(end.error_tail.contains(&platform.url), "{end:?}");
        assert_eq!(log_from(&runner, spec.run, 0).await, "");
        assert_eq!(platform.requests.load(Ordering::SeqCst), 1);
        runner.reap(spec.run).await.unwrap();
    }
}

#[tokio::test]
async fn an_exchange_without_an_answer_is_not_repeated_and_loses_the_run() {
    let (runner, platform) = (shared_runner().await, Platform::start(&[""]).await);
    let spec = platform.spec();
    runner.submit(&spec).await.unwrap();
    let end = end_of(&runner, spec.run).await;
    assert_eq!(end.reason, EndReason::Lost, "{end:?}");
    assert_eq!(platform.requests.load(Ordering::SeqCst), 1);
    runner.reap(spec.run).await.unwrap();
}
