//! An S3 server in this process: `s3s-fs`, which checks signatures and their expiry.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{Request, Response, StatusCode};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use s3s::{Body, auth::SimpleAuth, service::S3Service, service::S3ServiceBuilder};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::Mutex};

/// The server, running as long as the runtime.
pub(crate) struct S3Server {
    pub(crate) endpoint: String,
    down: Arc<AtomicBool>,
    _directory: TempDir,
}

impl S3Server {
    /// Starts a server with one bucket, `lab`.
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("lab")).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(directory.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single("lab", "secret"));
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let down = Arc::new(AtomicBool::new(false));
        tokio::spawn(serve(listener, service, down.clone()));
        Self {
            endpoint,
            down,
            _directory: directory,
        }
    }

    /// Lets every request fail from now on, or not any more.
    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// The variables that lead to it.
    pub(crate) fn environment(&self) -> [(&str, &str); 4] {
        [
            ("AWS_ENDPOINT", &self.endpoint),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "lab"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ]
    }
}

async fn serve(listener: TcpListener, service: S3Service, down: Arc<AtomicBool>) {
    // S3 looks whether an object exists and creates it in one step; this server in two.
    let creating = Arc::new(Mutex::new(()));
    while let Ok((socket, _)) = listener.accept().await {
        let (service, down, creating) = (service.clone(), down.clone(), creating.clone());
        let response = service_fn(move |request: Request<Incoming>| {
            let (service, down, creating) = (service.clone(), down.clone(), creating.clone());
            async move {
                if down.load(Ordering::SeqCst) {
                    let mut response = Response::new(Body::empty());
                    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                    return Ok::<_, Infallible>(response);
                }
                let _one = if request.headers().contains_key("if-none-match") {
                    Some(creating.lock().await)
                } else {
                    None
                };
                let response = hyper::service::Service::call(&service, request).await;
                Ok(response.unwrap_or_else(|error| {
                    let mut response = Response::new(Body::from(format!("{error:?}")));
                    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                    response
                }))
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(socket), response);
        tokio::spawn(connection);
    }
}
