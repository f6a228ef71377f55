//! E-mails of notifications, from the outbox in PostgreSQL to a mail server of the test's own.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration as StdDuration};

use futures::future::join_all;
use labdata_application::notifications::send_emails::{EMAIL_LEASE, send_emails};
use labdata_mail::SmtpMailer;
use labdata_memory::FixedClock;
use labdata_ports::Clock;
use labdata_postgres::{Database, DatabaseSettings, PgStore};
use labdata_test_database::TestDatabase;
use reqwest::Method;
use serde_json::{Value, json};
use time::Duration;

use crate::{
    process::{Program, directory},
    server::{Client, TestServer, in_memory},
    smtp_sink::{Behavior, Sink},
};

const PATH: &str = "/api/v1/notifications";
const PREFERENCES: &str = "/api/v1/notification-preferences";
const FROM: &str = "lab@example.org";
const URL: &str = "https://lab.example.org";
const KEY: &str = "ldk_mailtest_0123456789abcdefghijklmnopqrstuvwxyz";

/// A server on PostgreSQL whose only user wants e-mail. Nothing sends the outbox but the test.
struct Post {
    server: TestServer,
    client: Client,
    // Dropped after the server, whose connections it would cut off.
    own: TestDatabase,
}

impl Post {
    async fn start() -> Self {
        let own = TestDatabase::new().await;
        let database = Database::new(own.url(), DatabaseSettings::default()).unwrap();
        let clock = Arc::new(FixedClock::default());
        let displayed: Arc<dyn Clock> = clock.clone();
        let mut services = in_memory(displayed);
        services.repositories = PgStore::new(database.clone(), database).repositories();
        let server = TestServer::start_on(services, clock).await;
        let client = server.admin().await;
        client
            .patch(PREFERENCES, &json!({"message": {"email": true}}))
            .await
            .json(200);
        Self {
            server,
            client,
            own,
        }
    }

    async fn send(&self, key: &str) {
        let body =
            json!({"title": format!("About {key}"), "dedupe_key": key, "action_url": "/jobs/1"});
        let sent = self.client.post(PATH, &body).await.json(200);
        assert_eq!(sent["status"], "delivered");
    }

    /// One turn of a worker with that mail server; how many e-mails it claimed.
    async fn work(&self, mail_server: SocketAddr) -> usize {
        let mailer = SmtpMailer::new(&format!("smtp://{mail_server}"), FROM).unwrap();
        send_emails(&self.server.services, &mailer, URL)
            .await
            .unwrap()
    }

    /// Numbers of e-mails that are pending, sent and given up.
    async fn counts(&self) -> (i64, i64, i64) {
        let (database, connection) = tokio_postgres::connect(self.own.url(), tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let query = "SELECT count(*) FILTER (WHERE status = 'pending'), \
            count(*) FILTER (WHERE status = 'sent'), count(*) FILTER (WHERE status = 'dead') \
            FROM labdata.notification_email";
        let row = database.query_one(query, &[]).await.unwrap();
        (row.get(0), row.get(1), row.get(2))
    }

    fn later(&self, seconds: i64) {
        self.server.clock.advance(Duration::seconds(seconds));
    }
}

/// An address without a listener.
fn unknown_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// Waits until it holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..3_000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(StdDuration::from_millis(20)).await;
    }
    panic!("{what} never came true");
}

#[tokio::test]
async fn an_email_arrives_once_although_the_mail_server_was_down_at_first() {
    let post = Post::start().await;
    let address = unknown_address();
    post.send("run 7").await;
    assert_eq!(post.work(address).await, 1);
    assert_eq!(post.counts().await, (1, 0, 0));
    let sink = Sink::on(address, Behavior::Accepts).await;
    post.later(4);
    assert_eq!(
        post.work(address).await,
        0,
        "the next try is 5 s after the first"
    );
    post.later(1);
    assert_eq!(post.work(address).await, 1);
    assert_eq!(post.counts().await, (0, 1, 0));
    for _ in 0..3 {
        post.later(100_000);
        assert_eq!(post.work(address).await, 0);
    }
    let taken = sink.received();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].recipients, ["ada@example.org"]);
    assert_eq!(taken[0].header("Subject").as_deref(), Some("About run 7"));
    let unsubscribe = taken[0].header("List-Unsubscribe").unwrap();
    assert!(
        taken[0].content.contains("https://lab.example.org/jobs/1"),
        "{}",
        taken[0].content
    );

    let link = unsubscribe
        .strip_prefix(&format!("<{URL}"))
        .unwrap()
        .strip_suffix('>')
        .unwrap();
    let anybody = post.server.anonymous();
    let posted = anybody
        .request(Method::POST, link)
        .body("List-Unsubscribe=One-Click");
    assert_eq!(crate::server::send(posted).await.status, 200);
    post.send("run 8").await;
    assert_eq!(post.counts().await, (0, 1, 0), "no further e-mail waits");
}

#[tokio::test]
async fn an_email_whose_worker_died_before_sending_arrives_once_when_the_lease_has_ended() {
    let post = Post::start().await;
    let sink = Sink::start(Behavior::Accepts).await;
    post.send("a").await;
    let now = post.server.clock.now();
    let dead = post
        .server
        .services
        .notifications
        .claim_emails(now, EMAIL_LEASE, 8)
        .await
        .unwrap();
    assert_eq!(dead.len(), 1);
    post.later(59);
    assert_eq!(post.work(sink.address).await, 0);
    post.later(1);
    assert_eq!(post.work(sink.address).await, 1);
    assert_eq!((sink.received().len(), post.counts().await), (1, (0, 1, 0)));
}

#[tokio::test]
async fn of_many_workers_each_email_is_sent_by_one() {
    let post = Post::start().await;
    let sink = Sink::start(Behavior::Accepts).await;
    for number in 0..24 {
        post.send(&number.to_string()).await;
    }
    loop {
        let claimed = join_all((0..6).map(|_| post.work(sink.address))).await;
        if claimed.iter().sum::<usize>() == 0 {
            break;
        }
    }
    let ids: Vec<String> = sink
        .received()
        .iter()
        .map(|taken| taken.header("Message-ID").unwrap())
        .collect();
    assert_eq!(ids.len(), 24);
    assert_eq!(ids.into_iter().collect::<BTreeSet<_>>().len(), 24);
    assert_eq!(post.counts().await, (0, 24, 0));
}

#[tokio::test]
async fn an_email_is_tried_eight_times_and_then_dead() {
    let post = Post::start().await;
    let sink = Sink::start(Behavior::Rejects("451 greylisted")).await;
    post.send("a").await;
    for wait in [5, 10, 20, 40, 80, 160, 320] {
        assert_eq!(post.work(sink.address).await, 1);
        post.later(wait - 1);
        assert_eq!(post.work(sink.address).await, 0, "not before {wait} s");
        post.later(1);
    }
    assert_eq!(post.counts().await, (1, 0, 0));
    assert_eq!(post.work(sink.address).await, 1);
    assert_eq!((sink.connections(), post.counts().await), (8, (0, 0, 1)));
    post.later(1_000_000);
    assert_eq!(post.work(sink.address).await, 0);
}

#[tokio::test]
async fn an_email_that_is_refused_for_good_or_too_old_is_dead_at_once() {
    let post = Post::start().await;
    let sink = Sink::start(Behavior::Rejects("550 no such mailbox")).await;
    post.send("a").await;
    assert_eq!(post.work(sink.address).await, 1);
    assert_eq!((sink.connections(), post.counts().await), (1, (0, 0, 1)));
    post.send("b").await;
    post.later(86_401);
    assert_eq!(post.work(sink.address).await, 1);
    assert_eq!((sink.connections(), post.counts().await), (1, (0, 0, 2)));
}

/// Starts the program with that mail server.
fn serve(directory: &std::path::Path, database: &str, mail_server: &Sink) -> Program {
    let mail_server = mail_server.url();
    Program::serve(
        directory,
        &[
            ("DATABASE_URL", database),
            ("LABDATA_BOOTSTRAP_KEY", KEY),
            ("LABDATA_SMTP_URL", &mail_server),
            ("LABDATA_MAIL_FROM", FROM),
        ],
    )
}

async fn call(program: &Program, method: Method, path: &str, body: &Value) -> Value {
    let url = format!("{}{path}", program.url);
    let request = reqwest::Client::new()
        .request(method, url)
        .bearer_auth(KEY)
        .json(body);
    request.send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn kill_9_between_claim_and_send_loses_and_repeats_no_email() {
    let (directory, own) = (directory(), TestDatabase::new().await);
    let (database, connection) = tokio_postgres::connect(own.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let standing = async || {
        let query = "SELECT status, tries FROM labdata.notification_email";
        let row = database.query_one(query, &[]).await.unwrap();
        (row.get::<_, String>(0), row.get::<_, i64>(1))
    };

    // The mail server takes the connection and says nothing: the worker stands between the two.
    let silent = Sink::start(Behavior::Silent).await;
    let program = serve(directory.path(), own.url(), &silent);
    call(
        &program,
        Method::PATCH,
        PREFERENCES,
        &json!({"message": {"email": true}}),
    )
    .await;
    let body = json!({"title": "Run 7 done", "dedupe_key": "run-7"});
    let sent = call(&program, Method::POST, PATH, &body).await;
    assert_eq!(sent["status"], "delivered", "{sent}");
    until("the worker connects", async || silent.connections() > 0).await;
    assert_eq!(standing().await, ("pending".to_owned(), 1));
    program.end("KILL");
    assert_eq!(silent.received().len(), 0);

    let sink = Sink::start(Behavior::Accepts).await;
    let program = serve(directory.path(), own.url(), &sink);
    // The end of the lease is brought near, which is a minute away.
    let nearer = "UPDATE labdata.notification_email SET due_at = now()";
    database.execute(nearer, &[]).await.unwrap();
    until("the e-mail is sent", async || standing().await.0 == "sent").await;
    assert_eq!(standing().await.1, 2);
    let taken = sink.received();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].recipients, ["admin@localhost"]);
    let repeat = call(&program, Method::POST, PATH, &body).await;
    assert_eq!(repeat["status"], "deduplicated", "{repeat}");
    assert_eq!(program.end("TERM").0.code(), Some(0));
    assert_eq!(sink.received().len(), 1, "a stop sends nothing twice");
}
