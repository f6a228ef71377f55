//! One running server: listener, database, HTTP, worker.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Instant,
};

use actix_web::dev::ServerHandle;
use anyhow::Context;
use labdata_application::{
    Error, Services,
    people::{
        first_start::{ADMINISTRATOR, ORGANIZATION, first_start},
        sessions::sign_in_link,
    },
    work::check_backend::{CheckBackendError, check_backend},
};
use labdata_domain::{people::PlainApiKey, work::WorkKind};
use labdata_worker::{Background, TaskObserver, WorkerSettings};
use tokio::task::JoinHandle;

use super::sign_in;
use crate::{
    app::App,
    compose::{
        DatabaseServer, Relay, backend_policy, remove_leftovers, upload_origin, worker_settings,
    },
    dependencies::ServerDependencies,
    http::{
        self, public_url::PublicUrl, rate_limit::RateLimit, security_headers::ContentPolicy,
        server::DRAIN_TIMEOUT,
    },
    settings::{Settings, SettingsError, url_of},
};

/// A server that accepts requests.
pub(super) struct RunningServer {
    /// URL of the server on this machine.
    pub(super) url: String,
    /// The admin key, if this start created it.
    pub(super) first_key: Option<PlainApiKey>,
    services: Services,
    public_url: String,
    handle: ServerHandle,
    http: JoinHandle<io::Result<()>>,
    background: Background,
    relay: Option<Relay>,
    database: DatabaseServer,
}

impl RunningServer {
    /// Starts everything, cheap steps that may fail first.
    pub(super) async fn start(settings: &Settings, with_worker: bool) -> anyhow::Result<Self> {
        // An occupied port is found before a database is started.
        let (listener, address) = listen(settings.bind)?;
        let mut mark = Instant::now();
        let database = DatabaseServer::open(settings).await?;
        tracing::debug!(milliseconds = lap(&mut mark), "the database responds");
        match Self::start_on(&database, listener, address, settings, with_worker).await {
            Ok(Started {
                first_key,
                services,
                public_url,
                handle,
                http,
                background,
                relay,
            }) => {
                tracing::debug!(milliseconds = lap(&mut mark), "the server responds");
                let url = url_of(address);
                Ok(Self {
                    url,
                    first_key,
                    services,
                    public_url,
                    handle,
                    http,
                    background,
                    relay,
                    database,
                })
            }
            // Without this, the embedded PostgreSQL of a failed start would run on.
            Err(error) => {
                if let Err(error) = database.close().await {
                    tracing::warn!(%error, "could not stop PostgreSQL");
                }
                Err(error)
            }
        }
    }

    async fn start_on(
        database: &DatabaseServer,
        listener: TcpListener,
        address: SocketAddr,
        settings: &Settings,
        with_worker: bool,
    ) -> anyhow::Result<Started> {
        let public_url = settings.public_url(address);
        let redacted_url = if settings.follows_host() {
            PublicUrl::of_host(&public_url)
        } else {
            PublicUrl::fixed(&public_url)
        };
        let mut services = database
            .services(settings, &public_url, ServerDependencies::of(settings))
            .await?;
        if settings.sql.bind.is_some() {
            // What PostgreSQL grants to everyone is revoked before people can log in to it.
            services.queries.prepare().await?;
        }
        let (relay, sql) = database.serve_sql(settings).await?;
        services.sql = sql;
        // Before requests are served, so that the first one finds an organization.
        let first_key = first_start(&services, settings.bootstrap_key.clone()).await?;
        let worker = if with_worker {
            Some(checked_worker_settings(&services, settings, &public_url).await?)
        } else {
            None
        };
        remove_leftovers(settings);
        let agent = database.agent(settings, &services)?;
        let mut app = App::new(services.clone(), agent, redacted_url)?;
        app.stall = settings.stall;
        app.request_timeout = settings.request_timeout;
        app.rate_limit = RateLimit::per_minute(settings.rate_limit_per_minute);
        if let Some(origin) = upload_origin(&services).await? {
            app.content_policy = ContentPolicy::with_uploads_to(&origin).unwrap_or_default();
        }
        let observer: Arc<dyn TaskObserver> = Arc::new(app.metrics.clone());
        // The listener queues connections from its creation on, so early clients wait instead of failing.
        let (server, handle, workers) = http::server::bind(app, listener)?;
        let mut http = tokio::spawn(server);
        // Before the background work, whose connections would hold up the first responses.
        tokio::select! {
            () = workers.ready() => {}
            ended = &mut http => {
                ended.context("the server's task")?.context("the HTTP server")?;
                anyhow::bail!("the HTTP server ended during the start");
            }
        }
        let background = Background::start(&services, worker, &observer);
        prepare_queries(&services);
        Ok(Started {
            first_key,
            services,
            public_url,
            handle,
            http,
            background,
            relay,
        })
    }

    /// Makes a link to the console that signs the first administrator in; `None` where there is none, or a
    /// disabled one.
    pub(super) async fn console_link(&self) -> anyhow::Result<Option<String>> {
        match sign_in_link(&self.services, ORGANIZATION, ADMINISTRATOR).await {
            Ok(token) => Ok(Some(sign_in::link(&self.public_url, &token))),
            Err(Error::Refused(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the HTTP server ends without being stopped, which is always an error.
    pub(super) async fn ended(&mut self) -> anyhow::Result<()> {
        (&mut self.http)
            .await
            .context("the server's task")?
            .context("the HTTP server")
    }

    /// Stops accepting requests and claiming work, waits for requests, runs and e-mails in flight side
    /// by side for at most [`DRAIN_TIMEOUT`], then stops the models and the embedded PostgreSQL.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        // Side by side, so that a stop takes the longer of the two drains and not their sum.
        tokio::join!(self.handle.stop(true), self.background.stop(DRAIN_TIMEOUT));
        // SQL clients would hold up the shutdown of PostgreSQL.
        drop(self.relay);
        // After the requests in flight, which may still predict.
        self.services.predictor.close().await;
        drop(self.services);
        self.database.close().await
    }
}

/// Parts of a server that was started on a database.
struct Started {
    first_key: Option<PlainApiKey>,
    services: Services,
    public_url: String,
    handle: ServerHandle,
    http: JoinHandle<io::Result<()>>,
    background: Background,
    relay: Option<Relay>,
}

/// Begins the checks of the first query, which take PostgreSQL longer than the rest of a start. A query
/// that comes before they end waits for them.
fn prepare_queries(services: &Services) {
    let queries = Arc::clone(&services.queries);
    tokio::spawn(async move {
        if let Err(error) = queries.prepare().await {
            tracing::warn!(%error, "the first query makes its checks itself");
        }
    });
}

/// Creates the settings of a worker, whose job backend must fit the organizations that exist.
pub(super) async fn checked_worker_settings(
    services: &Services,
    settings: &Settings,
    public_url: &str,
) -> anyhow::Result<WorkerSettings> {
    match check_backend(services, backend_policy(settings, WorkKind::Run)).await {
        Ok(()) => worker_settings(settings, services.mailer.clone(), public_url),
        Err(CheckBackendError::Shared(refusal)) => Err(SettingsError::from(refusal).into()),
        Err(CheckBackendError::Failed(error)) => Err(error.into()),
    }
}

/// Opens the listener; returns it with its address, which holds the actual port.
fn listen(bind: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let fails = || format!("cannot listen on {bind} (LABDATA_BIND)");
    let listener = TcpListener::bind(bind).with_context(fails)?;
    listener.set_nonblocking(true).with_context(fails)?;
    let address = listener.local_addr().with_context(fails)?;
    Ok((listener, address))
}

fn lap(mark: &mut Instant) -> u64 {
    let passed = mark.elapsed();
    *mark = Instant::now();
    u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
}
