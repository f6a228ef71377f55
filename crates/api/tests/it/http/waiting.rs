//! Time that one request may take. The server's service runs within the test, whose time jumps to the next timeout.

use std::{
    future::pending,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use actix_web::{
    body::to_bytes,
    dev::Service,
    http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER},
    test::{TestRequest, init_service},
    web::{Bytes, Data},
};
use async_trait::async_trait;
use futures::future::join;
use labdata_api::{
    app::App,
    http::{public_url::PublicUrl, server::service},
    routes::maintenance::openapi::OpenApiJson,
};
use labdata_application::{
    people::authenticate::authenticate,
    slots::{Slot, Work},
};
use labdata_domain::{ids::OrganizationId, people::scope::Scope};
use labdata_ports::data::query::{Query, QueryError, QueryRunner, ResultSink};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::server::TestServer;

const EXPORT: &str = "/api/v1/tables/experiment/export";

/// A service, and a caller of it.
struct Lab {
    app: App,
    key: String,
    // Has the store of the caller.
    _server: TestServer,
}

/// A response, and the time that it took.
#[derive(Debug, PartialEq)]
struct Ended {
    status: u16,
    code: String,
    retry_after: Option<String>,
    seconds: u64,
}

impl Ended {
    /// A refusal as one of `docs/reference/ERRORS.md`.
    fn refused(code: &str, retry_after: &str, seconds: u64) -> Self {
        Self {
            status: 503,
            code: code.to_owned(),
            retry_after: Some(retry_after.to_owned()),
            seconds,
        }
    }
}

impl Lab {
    async fn start() -> Self {
        let server = TestServer::start().await;
        let (services, agent) = (server.services.clone(), server.agent.clone());
        Self {
            app: App::new(services, agent, PublicUrl::fixed("http://lab")).unwrap(),
            key: server.key(&Scope::ALL, |_| {}).await,
            _server: server,
        }
    }

    async fn send(&self, request: TestRequest) -> Ended {
        let document = Data::new(OpenApiJson::new(|| Ok(Bytes::new())));
        let service = init_service(service(Data::new(self.app.clone()), document)).await;
        let request = request.insert_header((AUTHORIZATION, format!("Bearer {}", self.key)));
        let started = Instant::now();
        let response = match service.call(request.to_request()).await {
            Ok(response) => response.into_parts().1,
            Err(error) => error.error_response(),
        };
        let seconds = started.elapsed().as_secs();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.map(|it| it.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body()).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        Ended {
            status,
            code: body["code"].as_str().unwrap().to_owned(),
            retry_after,
            seconds,
        }
    }

    /// Takes all slots of the caller.
    async fn take(&self, work: Work) -> Vec<Slot> {
        let slots = &self.app.services.slots;
        let caller = authenticate(&self.app.services, &self.key).await.unwrap();
        let mut taken = Vec::new();
        while let Ok(slot) = slots.enter(work, &caller).await {
            taken.push(slot);
        }
        taken
    }
}

#[tokio::test(start_paused = true)]
async fn all_waits_of_a_request_take_no_longer_than_one() {
    let lab = Lab::start().await;
    let results = lab.take(Work::Result).await;
    let _streams = lab.take(Work::Stream).await;
    let exhausted = Ended::refused("exhausted", "1", 10);
    let free_results = async {
        sleep(Duration::from_secs(8)).await;
        drop(results);
    };
    // Waits for its first slot for 8 s, and then for its second one.
    let (ended, ()) = join(lab.send(TestRequest::get().uri(EXPORT)), free_results).await;
    assert_eq!(ended, exhausted);
    // Another request does not pay for it.
    let ended = lab.send(TestRequest::get().uri(EXPORT)).await;
    assert_eq!(ended, exhausted);
}

/// Queries without an end. Holds the last one.
#[derive(Default)]
struct Endless(Mutex<Option<Weak<()>>>);

#[async_trait]
impl QueryRunner for Endless {
    async fn stream(
        &self,
        _: OrganizationId,
        _: &Query,
        _: &mut dyn ResultSink,
    ) -> Result<(), QueryError> {
        let running = Arc::new(());
        *self.0.lock().unwrap() = Some(Arc::downgrade(&running));
        pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_longer_than_its_limit_is_given_up() {
    let mut lab = Lab::start().await;
    let queries = Arc::new(Endless::default());
    let mut services = (*lab.app.services).clone();
    services.queries = queries.clone();
    lab.app = App::new(services, lab.app.platform.agent.clone(), lab.app.public_url).unwrap();
    lab.app.request_timeout = Duration::from_secs(70);
    let results = lab.take(Work::Result).await.len();
    let query = TestRequest::post().uri("/api/v1/tools/query");
    let query = query.set_json(json!({"query": "select 1"}));
    assert_eq!(lab.send(query).await, Ended::refused("timed_out", "5", 70));
    let last = queries.0.lock().unwrap().clone();
    let last = last.expect("the query began");
    assert!(last.upgrade().is_none(), "the query still runs");
    assert_eq!(lab.take(Work::Result).await.len(), results);
}

/// Its time depends on the network of its sender.
#[tokio::test(start_paused = true)]
async fn a_request_with_a_file_has_no_limit_in_total() {
    let mut lab = Lab::start().await;
    lab.app.request_timeout = Duration::from_secs(7);
    let _spooled = lab.take(Work::SpooledFile).await;
    let import = TestRequest::post()
        .uri("/api/v1/tables/experiment/import")
        .insert_header((CONTENT_TYPE, "multipart/form-data; boundary=b"))
        .set_payload(
            "--b\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\nname\r\n--b--\r\n",
        );
    assert_eq!(lab.send(import).await, Ended::refused("exhausted", "1", 10));
}
