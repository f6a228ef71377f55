//! A server of one test's own, and a client for it.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::dev::ServerHandle;
use async_trait::async_trait;
use labdata_api::{
    app::App,
    compose::table_reader,
    http::{metrics::Metrics, public_url::PublicUrl, server::bind},
    system::SystemIds,
};
use labdata_application::{
    Services,
    agent::{Agent, NoUsageObserver},
    outward::sql_logins::SqlAccess,
};
use labdata_domain::{
    agent::{AgentLimits, ModelChoice},
    ids::{OrganizationId, UserId},
    outward::sql_logins::SqlEndpoint,
    people::{
        ApiKey, PlainApiKey,
        role::Role,
        scope::{Scope, Scopes},
        tenancy::{Organization, User},
    },
    refusal::ErrorCode,
};
use labdata_llm::{LlmClient, LlmSettings};
use labdata_memory::{
    FixedClock, InMemoryAgentRunRepository, InMemoryChatRepository, InMemoryPredictor, Memory,
    ports,
};
use labdata_ports::{
    Clock, PortError,
    maintenance::{ConnectionCounts, StoreFigures, StoreHealth},
};
use reqwest::{
    Method, StatusCode,
    header::{CONTENT_TYPE, HeaderMap},
};
use serde_json::Value;

/// A running server with one organization, `lab`.
pub(crate) struct TestServer {
    pub(crate) services: Services,
    pub(crate) agent: Agent,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) ready: Arc<Switch>,
    pub(crate) metrics: Metrics,
    pub(crate) predictor: Arc<InMemoryPredictor>,
    pub(crate) address: SocketAddr,
    pub(crate) organization: OrganizationId,
    pub(crate) user: UserId,
    handle: ServerHandle,
    http: reqwest::Client,
}

/// A store that stops answering while `broken` is true.
pub(crate) struct Switch {
    pub(crate) broken: AtomicBool,
    store: Arc<dyn StoreHealth>,
}

#[async_trait]
impl StoreHealth for Switch {
    async fn probe(&self) -> Result<(), PortError> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(PortError::Unavailable("broken by the test".to_owned()));
        }
        self.store.probe().await
    }

    fn connections(&self) -> ConnectionCounts {
        self.store.connections()
    }

    async fn figures(&self) -> Result<StoreFigures, PortError> {
        self.probe().await?;
        self.store.figures().await
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // The stop is under way when this returns; no test waits for it.
        drop(self.handle.stop(false));
    }
}

/// Time that a client may keep a table waiting that is sent while it is read: longer than any test.
const STALL: Duration = Duration::from_hours(1);

impl TestServer {
    /// Starts a server on a free port, with an empty store.
    pub(crate) async fn start() -> Self {
        let clock = Arc::new(FixedClock::default());
        let displayed: Arc<dyn Clock> = clock.clone();
        let services = in_memory(displayed);
        Self::start_on(services, clock).await
    }

    /// Starts another server on the same store, as a second replica would be.
    pub(crate) async fn replica(&self) -> Self {
        let mut services = self.services.clone();
        services.slots = Arc::default();
        services.key_cache = Arc::default();
        services.served_models = Arc::default();
        services.recent_checks = Arc::default();
        services.device_watch = Arc::default();
        Self::start_with(services, self.agent.clone(), Arc::clone(&self.clock)).await
    }

    /// Starts a server on these ports, without a model for its agent.
    pub(crate) async fn start_on(services: Services, clock: Arc<FixedClock>) -> Self {
        let agent = agent_without_model(&services);
        Self::start_with(services, agent, clock).await
    }

    /// Starts a server on these ports with that agent.
    pub(crate) async fn start_with(
        mut services: Services,
        agent: Agent,
        clock: Arc<FixedClock>,
    ) -> Self {
        let predictor = Arc::new(InMemoryPredictor::default());
        services.predictor = predictor.clone();
        Self::serve(services, agent, clock, predictor, |_| ()).await
    }

    /// Starts a server whose state is changed as the test wants.
    pub(crate) async fn start_changed(change: impl FnOnce(&mut App)) -> Self {
        let clock = Arc::new(FixedClock::default());
        let displayed: Arc<dyn Clock> = clock.clone();
        let services = in_memory(displayed);
        let agent = agent_without_model(&services);
        Self::serve(services, agent, clock, Arc::default(), change).await
    }

    /// Starts a server on these ports, whose predictor is another one than that in memory.
    pub(crate) async fn start_predicting(services: Services, clock: Arc<FixedClock>) -> Self {
        let agent = agent_without_model(&services);
        Self::serve(services, agent, clock, Arc::default(), |_| ()).await
    }

    async fn serve(
        mut services: Services,
        agent: Agent,
        clock: Arc<FixedClock>,
        predictor: Arc<InMemoryPredictor>,
        change: impl FnOnce(&mut App),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ready = Arc::new(Switch {
            broken: AtomicBool::new(false),
            store: Arc::clone(&services.health),
        });
        services.health = ready.clone();
        let public_url = PublicUrl::fixed(format!("http://{address}"));
        let mut app = App::new(services.clone(), agent.clone(), public_url).unwrap();
        app.stall = STALL;
        change(&mut app);
        let metrics = app.metrics.clone();
        let (server, handle, _) = bind(app, listener).unwrap();
        tokio::spawn(server);
        let (organization, user) = member(&services, "lab").await;
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        Self {
            services,
            agent,
            clock,
            ready,
            metrics,
            predictor,
            address,
            organization,
            user,
            handle,
            http,
        }
    }

    /// A client with a fresh key of these scopes.
    pub(crate) async fn client(&self, scopes: &[Scope]) -> Client {
        let key = self.key(scopes, |_| {}).await;
        self.with_key(&key)
    }

    /// A client with a key of every scope.
    pub(crate) async fn admin(&self) -> Client {
        self.client(&Scope::ALL).await
    }

    /// A client of another administrator of the organization, with every scope.
    pub(crate) async fn colleague(&self) -> Client {
        let grace = user(&self.services, self.organization, "Grace").await;
        let key = self.key(&Scope::ALL, |key| key.user = grace).await;
        self.with_key(&key)
    }

    /// A client of another organization, with every scope.
    pub(crate) async fn stranger(&self) -> Client {
        let (organization, user) = member(&self.services, "another lab").await;
        let key = self
            .key(&Scope::ALL, |key| {
                key.organization = organization;
                key.user = user;
            })
            .await;
        self.with_key(&key)
    }

    /// A client that shows that key.
    pub(crate) fn with_key(&self, key: &str) -> Client {
        Client {
            authorization: Some(format!("Bearer {key}")),
            ..self.anonymous()
        }
    }

    /// A client that shows no key.
    pub(crate) fn anonymous(&self) -> Client {
        Client {
            base: format!("http://{}", self.address),
            authorization: None,
            http: self.http.clone(),
        }
    }

    /// A fresh key, changed as the test wants before it is stored.
    pub(crate) async fn key(&self, scopes: &[Scope], change: impl FnOnce(&mut ApiKey)) -> String {
        let (mut prefix, mut secret) = ([0; 5], [0; 32]);
        self.services.ids.fill_random(&mut prefix);
        self.services.ids.fill_random(&mut secret);
        let plain = PlainApiKey::from_random(prefix, secret);
        let mut key = ApiKey {
            id: self.services.ids.next_id().into(),
            organization: self.organization,
            user: self.user,
            name: "of a test".to_owned(),
            prefix: plain.prefix().to_owned(),
            hash: plain.hash(),
            scopes: scopes.iter().copied().collect::<Scopes>(),
            tables: None,
            execution: None,
            created_at: self.clock.now(),
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
        };
        change(&mut key);
        self.services.api_keys.add(&key).await.unwrap();
        plain.reveal().to_owned()
    }
}

/// An organization of that name and a user in it.
async fn member(services: &Services, name: &str) -> (OrganizationId, UserId) {
    let organization = Organization {
        id: services.ids.next_id().into(),
        name: name.to_owned(),
        created_at: services.clock.now(),
    };
    let organization = services
        .tenancy
        .ensure_organization(&organization)
        .await
        .unwrap()
        .id;
    (organization, user(services, organization, "Ada").await)
}

/// An administrator of that name.
async fn user(services: &Services, organization: OrganizationId, name: &str) -> UserId {
    let user = User {
        id: services.ids.next_id().into(),
        organization,
        email: format!("{}@example.org", name.to_lowercase()),
        name: name.to_owned(),
        role: Role::Admin,
        groups: Vec::new(),
        created_at: services.clock.now(),
        disabled_at: None,
    };
    services.tenancy.ensure_user(&user).await.unwrap().id
}

/// A user of `/me`, as responses name people who did something.
pub(crate) fn named(user: &Value) -> Value {
    serde_json::json!({"id": user["id"], "email": user["email"], "name": user["name"]})
}

/// An agent whose provider of models is not set.
pub(crate) fn agent_without_model(services: &Services) -> Agent {
    let settings = LlmSettings {
        provider: None,
        base_url: None,
        api_key: None,
        timeout: Duration::from_secs(1),
    };
    Agent {
        model: Arc::new(LlmClient::new(&settings, Arc::clone(&services.ids)).unwrap()),
        chats: Arc::new(InMemoryChatRepository::new(&Memory::new())),
        runs: Arc::new(InMemoryAgentRunRepository::new(&Memory::new())),
        tools: labdata_operations::tools::all(),
        models: ModelChoice::default(),
        limits: AgentLimits::default(),
        observer: Arc::new(NoUsageObserver),
    }
}

/// SQL logins, served at an address where nothing listens.
pub(crate) fn sql_access() -> SqlAccess {
    SqlAccess {
        endpoint: Some(SqlEndpoint {
            host: None,
            port: 5433,
            database: "labdata".to_owned(),
            requires_tls: false,
        }),
        is_shared: true,
    }
}

/// Services over an empty store in memory.
pub(crate) fn in_memory(clock: Arc<dyn Clock>) -> Services {
    let mut services = Services::unlimited(ports(&Memory::new(), clock));
    services.ids = Arc::new(SystemIds);
    services.sql = sql_access();
    // Hostile files would end the process of the tests.
    services.table_reader = Arc::new(table_reader(env!("CARGO_BIN_EXE_labdata").into()));
    services
}

/// Calls the server with one key, or none.
#[derive(Clone)]
pub(crate) struct Client {
    base: String,
    authorization: Option<String>,
    http: reqwest::Client,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Client {
    /// The same client, with another Authorization header.
    pub(crate) fn authorized(mut self, header: &str) -> Self {
        self.authorization = Some(header.to_owned());
        self
    }

    /// The server's URL and the header `Authorization`, for clients that are other programs.
    pub(crate) fn as_others_need_it(&self) -> (String, String) {
        let authorization = self.authorization.clone();
        (self.base.clone(), authorization.unwrap_or_default())
    }

    /// A request to build on. Paths may be whole URLs.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let url = if path.starts_with('/') {
            format!("{}{path}", self.base)
        } else {
            path.to_owned()
        };
        let request = self.http.request(method, url);
        match &self.authorization {
            Some(header) => request.header("authorization", header),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        send(self.request(Method::DELETE, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        send(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Reply {
        send(self.request(Method::PATCH, path).json(body)).await
    }

    /// Posts bytes as JSON, be they JSON or not.
    pub(crate) async fn post_raw(&self, path: &str, body: impl Into<reqwest::Body>) -> Reply {
        let request = self
            .request(Method::POST, path)
            .header(CONTENT_TYPE, "application/json");
        send(request.body(body)).await
    }
}

/// Sends a request and reads the whole answer.
pub(crate) async fn send(request: reqwest::RequestBuilder) -> Reply {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    // The stream of all events has no end.
    let is_endless = status.is_success() && response.url().path() == crate::events::PATH;
    let text = if is_endless {
        String::new()
    } else {
        response.text().await.unwrap()
    };
    Reply {
        status,
        headers,
        text,
    }
}

impl Reply {
    /// The JSON of an answer that must have this status.
    #[track_caller]
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        serde_json::from_str(&self.text).expect(&self.text)
    }

    /// The code of an error that must have this status. Every error body but that of shape has one.
    #[track_caller]
    pub(crate) fn code(&self, status: u16) -> String {
        let body = self.json(status);
        let code = body["code"].as_str().unwrap_or_else(|| panic!("{body}"));
        let is_known = ErrorCode::ALL.iter().any(|known| known.as_str() == code);
        assert!(is_known, "{body}");
        code.to_owned()
    }

    /// The detail of an error that must have this status.
    #[track_caller]
    pub(crate) fn detail(&self, status: u16) -> String {
        let body = self.json(status);
        self.code(status);
        body["detail"]
            .as_str()
            .unwrap_or_else(|| panic!("{body}"))
            .to_owned()
    }

    /// The type and place of each problem of shape.
    #[track_caller]
    pub(crate) fn problems(&self) -> Vec<(String, String)> {
        let body = self.json(422);
        let problems = body["detail"]
            .as_array()
            .unwrap_or_else(|| panic!("{body}"));
        let place = |step: &Value| {
            step.as_str()
                .map_or_else(|| step.to_string(), str::to_owned)
        };
        problems
            .iter()
            .map(|problem| {
                let loc: Vec<String> = problem["loc"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(place)
                    .collect();
                (problem["type"].as_str().unwrap().to_owned(), loc.join("."))
            })
            .collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The URL of the next page.
    pub(crate) fn next(&self) -> Option<String> {
        let (url, rel) = self.header("link")?.strip_prefix('<')?.split_once('>')?;
        assert_eq!(rel, "; rel=\"next\"");
        Some(url.to_owned())
    }
}
