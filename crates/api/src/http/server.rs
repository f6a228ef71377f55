//! The HTTP server: limits, routes, shutdown.

use std::{
    collections::BTreeMap, io, net::TcpListener, num::NonZero, sync::Arc,
    thread::available_parallelism, time::Duration,
};

use actix_web::{
    App as ActixApp, HttpResponse, HttpServer,
    body::BoxBody,
    dev::{Server, ServerHandle, ServiceFactory, ServiceRequest, ServiceResponse},
    http::{Method, StatusCode, header::ALLOW},
    middleware::from_fn,
    web::{self, Bytes, Data, ServiceConfig},
};

use tokio::{net::TcpStream, sync::Semaphore};

use super::{endpoint::Endpoint, error::body_of_status, limits, observe::observe};
use crate::{
    app::App,
    routes::{self, maintenance::openapi::OpenApiJson},
};

/// Maximum number of worker threads. More only use memory: the database does the work.
const MAX_WORKERS: usize = 4;
/// Threads for blocking work per worker.
const BLOCKING_THREADS: usize = 8;
/// Maximum time to receive a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum idle time of a connection between requests.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// Files that the process may open besides connections of clients: those of the database, of the storage,
/// of uploads.
const OTHER_FILES: u64 = 512;
/// Maximum number of connections of clients.
const MAX_CONNECTIONS: u64 = 20_000;
/// Maximum duration of a graceful stop: requests, runs and e-mails in flight (contract §1).
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The HTTP workers, which begin with the server.
#[derive(Debug)]
pub struct Workers {
    number: u32,
    built: Arc<Semaphore>,
}

impl Workers {
    /// Waits until all have their routes.
    pub async fn ready(&self) {
        // Never closed, so it does not fail.
        drop(self.built.acquire_many(self.number).await);
    }
}

/// Serves the API on the listener. The server runs while it is awaited; it ends, gracefully, when
/// `handle.stop(true)` is called. It watches no signals: the program does.
///
/// # Errors
/// When the listener cannot be used.
pub fn bind(app: App, listener: TcpListener) -> io::Result<(Server, ServerHandle, Workers)> {
    let workers = available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_WORKERS);
    let stall = app.stall;
    // Outside of the factory: that runs once per thread, and all threads share one state.
    let app = Data::new(app);
    let document = Data::new(OpenApiJson::new(|| {
        serde_json::to_vec(&routes::openapi()).map(Bytes::from)
    }));
    let built = Arc::new(Semaphore::new(0));
    let ready = Workers {
        number: u32::try_from(workers).unwrap_or(u32::MAX),
        built: Arc::clone(&built),
    };
    let server = HttpServer::new(move || {
        let service = service(app.clone(), document.clone());
        built.add_permits(1);
        service
    })
    .workers(workers)
    // More wait in the listener's queue until others end, so that files are left for the database.
    .max_connections(limits::connections(MAX_CONNECTIONS, OTHER_FILES) / workers)
    .worker_max_blocking_threads(BLOCKING_THREADS)
    // Ends connections that send their head byte by byte (Slowloris).
    .client_request_timeout(HEAD_TIMEOUT)
    .keep_alive(KEEP_ALIVE)
    // With Nagle's algorithm, the last chunk of a streamed response would wait for the client's delayed
    // acknowledgment, some 40 ms.
    .tcp_nodelay(true)
    .on_connect(move |connection, _| {
        if let Some(stream) = connection.downcast_ref::<TcpStream>() {
            limits::end_when_stalled(stream, stall);
        }
    })
    .shutdown_timeout(DRAIN_TIMEOUT.as_secs())
    // A client that closes its side has left: cancel its request, including its database query.
    .h1_allow_half_closed(false)
    // The program handles them itself: it also has to stop the worker and the database.
    .disable_signals()
    .listen(listener)?
    .run();
    let handle = server.handle();
    Ok((server, handle, ready))
}

/// Creates the service of one thread, with every endpoint.
pub fn service(
    app: Data<App>,
    document: Data<OpenApiJson>,
) -> ActixApp<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<BoxBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    ActixApp::new()
        .app_data(app)
        .app_data(document)
        .configure(|config| configure(config, &routes::all()))
        .default_service(web::to(not_found))
        .wrap(from_fn(observe))
}

/// Adds the endpoints. Endpoints with the same path form one resource, which rejects other methods
/// with 405. Fixed paths match before patterns, because `{` sorts after every letter.
fn configure(config: &mut ServiceConfig, endpoints: &[Endpoint]) {
    let mut paths: BTreeMap<&str, Vec<&Endpoint>> = BTreeMap::new();
    for endpoint in endpoints {
        paths.entry(&endpoint.path).or_default().push(endpoint);
    }
    for (path, endpoints) in paths {
        let allowed = allow(&endpoints);
        let mut resource = web::resource(path);
        for route in endpoints.iter().flat_map(|endpoint| endpoint.routes()) {
            resource = resource.route(route);
        }
        config.service(resource.default_service(web::to(move || {
            let response = HttpResponse::MethodNotAllowed()
                .insert_header((ALLOW, allowed.clone()))
                .json(body_of_status(StatusCode::METHOD_NOT_ALLOWED));
            async { response }
        })));
    }
}

fn allow(endpoints: &[&Endpoint]) -> String {
    let methods: Vec<Method> = endpoints
        .iter()
        .flat_map(|endpoint| endpoint.methods())
        .collect();
    methods
        .iter()
        .map(Method::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

async fn not_found() -> HttpResponse {
    HttpResponse::NotFound().json(body_of_status(StatusCode::NOT_FOUND))
}
