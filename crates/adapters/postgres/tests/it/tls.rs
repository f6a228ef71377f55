//! Encrypted connections, by a proxy in front of the test server that speaks TLS.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use labdata_domain::data::query::QueryText;
use labdata_ports::data::query::{Query, QueryRunner};
use labdata_postgres::{Database, DatabaseSettings};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream, UnixStream},
};
use tokio_rustls::TlsAcceptor;

use crate::query_lab::{LIMITS, QueryLab};

const AUTHORITY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/certificates/authority.pem"
);
const STRANGER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/certificates/stranger.pem"
);
const SERVER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/certificates/server.pem"
);
const KEY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/certificates/server.key"
);

/// Response of the proxy to the request for TLS.
#[derive(Clone, Copy, PartialEq)]
enum Response {
    /// With TLS, by a certificate for `localhost`.
    Tls,
    /// Without TLS.
    Plain,
    /// Without TLS, followed by a request for the password with this code.
    AskFor(u32),
}

/// The path of the server's socket.
fn socket_of(lab: &QueryLab) -> String {
    let (host, _) = lab.role_host.split_once('/').expect("a database");
    format!("{}/.s.PGSQL.5432", host.replace("%2F", "/"))
}

/// Starts a proxy in front of the socket.
async fn proxy(socket: String, response: Response) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let certificates: Vec<_> = CertificateDer::pem_file_iter(SERVER)
        .expect("the certificate")
        .collect::<Result<_, _>>()
        .expect("certificates");
    let key = PrivateKeyDer::from_pem_file(KEY).expect("the key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .expect("a server");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client, socket.clone(), acceptor.clone(), response));
        }
    });
    address
}

async fn serve(
    mut client: TcpStream,
    socket: String,
    acceptor: TlsAcceptor,
    response: Response,
) -> std::io::Result<()> {
    let mut request = [0; 8];
    client.read_exact(&mut request).await?;
    assert_eq!(request, [0, 0, 0, 8, 4, 210, 22, 47], "a request for TLS");
    let mut server = UnixStream::connect(socket).await?;
    match response {
        Response::Tls => {
            client.write_all(b"S").await?;
            let mut client = acceptor.accept(client).await?;
            copy_bidirectional(&mut client, &mut server).await?;
        }
        Response::Plain => {
            client.write_all(b"N").await?;
            copy_bidirectional(&mut client, &mut server).await?;
        }
        Response::AskFor(code) => {
            client.write_all(b"N").await?;
            let mut start = [0; 4];
            client.read_exact(&mut start).await?;
            let mut rest = vec![0; usize::try_from(u32::from_be_bytes(start)).unwrap_or(4) - 4];
            client.read_exact(&mut rest).await?;
            let length = if code == 5 { 12_u32 } else { 8 };
            client.write_all(b"R").await?;
            client.write_all(&length.to_be_bytes()).await?;
            client.write_all(&code.to_be_bytes()).await?;
            let salt = if code == 5 { &b"salt"[..] } else { b"" };
            client.write_all(salt).await?;
            let mut response = Vec::new();
            client.read_to_end(&mut response).await?;
            assert_eq!(response, b"", "the client shows nothing");
        }
    }
    Ok(())
}

/// The URL of the lab's database through these hosts, by the superuser.
fn through(lab: &QueryLab, hosts: &str, parameters: &str) -> String {
    let (_, database) = lab.role_host.split_once('/').expect("a database");
    format!("postgresql://labdata:hunter2@{hosts}/{database}?{parameters}")
}

/// Reaches the database that way.
async fn reach(url: &str) -> Result<(), String> {
    let database = Database::new(url, DatabaseSettings::default()).expect("a pool");
    database.wait_until_reachable(Duration::ZERO).await
}

#[tokio::test]
async fn sslmode_decides_who_may_listen_and_who_may_answer() {
    let lab = QueryLab::new().await;
    let socket = socket_of(&lab);
    let tls = proxy(socket.clone(), Response::Tls).await.port();
    let plain = proxy(socket, Response::Plain).await.port();
    let full = format!("sslmode=verify-full&sslrootcert={AUTHORITY}");
    let ca = format!("sslmode=verify-ca&sslrootcert={AUTHORITY}");
    let strange = format!("sslmode=verify-full&sslrootcert={STRANGER}");
    for (host, port, parameters, refusal) in [
        ("localhost", tls, "", None),
        ("localhost", tls, "sslmode=prefer", None),
        ("localhost", tls, "sslmode=require", None),
        ("localhost", tls, &full, None),
        ("127.0.0.1", tls, &ca, None),
        ("127.0.0.1", tls, &full, Some("not valid for name")),
        ("localhost", tls, &strange, Some("UnknownIssuer")),
        ("localhost", plain, "", None),
        ("localhost", plain, "sslmode=prefer", None),
        ("localhost", plain, "sslmode=require", Some("no TLS")),
        ("localhost", plain, &full, Some("no TLS")),
    ] {
        let url = through(&lab, &format!("{host}:{port}"), parameters);
        let outcome = reach(&url).await;
        let case = format!("{host} {parameters}: {outcome:?}");
        match (outcome, refusal) {
            (Ok(()), None) => {}
            (Err(line), Some(part)) => {
                assert!(line.contains(part) && !line.contains("hunter2"), "{case}");
            }
            _ => panic!("{case}"),
        }
    }
}

#[tokio::test]
async fn a_server_that_asks_for_the_password_or_its_md5_gets_nothing() {
    let lab = QueryLab::new().await;
    let socket = socket_of(&lab);
    for code in [3, 5] {
        let port = proxy(socket.clone(), Response::AskFor(code)).await.port();
        let refused = reach(&through(&lab, &format!("localhost:{port}"), "")).await;
        let line = refused.expect_err("refused");
        assert!(line.contains("scram-sha-256"), "{line}");
    }
}

#[tokio::test]
async fn pool_and_queries_follow_all_hosts_of_the_url_and_its_encryption() {
    let lab = QueryLab::new().await;
    // The role of the queries exists from now on.
    lab.ask("SELECT 1", serde_json::json!([])).await;
    let port = proxy(socket_of(&lab), Response::Tls).await.port();
    let parameters =
        format!("sslmode=verify-full&sslrootcert={AUTHORITY}&target_session_attrs=read-write");
    let hosts = format!("127.0.0.1:1,localhost:1,localhost:{port}");
    let url = through(&lab, &hosts, &parameters);
    let database = Database::new(&url, DatabaseSettings::default()).expect("a pool");
    database.probe().await.expect("an answer of the third host");
    let runner = labdata_postgres::PgQueryRunner::new(database, &[7; 32]);
    let query = Query {
        text: QueryText::parse("SELECT name FROM sample ORDER BY name LIMIT 1").expect("a query"),
        params: Vec::new(),
        limits: LIMITS,
        view: None,
    };
    let result = runner.run(lab.ours, &query).await.expect("a result");
    assert_eq!(result.rows, ["[\"ours 1\"]"]);
}
