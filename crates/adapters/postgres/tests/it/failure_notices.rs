//! Notices of failed executions survive crashes.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use labdata_domain::{executions::FinalStatus, ids::NotificationId, notifications::Ended};
use labdata_port_contracts::{
    Harness, Subject,
    fixtures::{Executions, Tenants},
    given::{self, at},
    paging::ALL,
};
use labdata_ports::{
    executions::ExecutionRepository,
    notifications::{NewNotification, NotificationRepository},
};
use labdata_postgres::{Database, DatabaseSettings, PgNotificationRepository};

use crate::{contracts::Postgres, look_behind, texts};

fn notice_of(ended: &Ended) -> Option<NewNotification> {
    Some(NewNotification {
        id: NotificationId::new(given::uuid()),
        draft: ended.notice()?,
        api_key: None,
        now: at(9),
    })
}

#[tokio::test]
async fn a_notice_survives_a_crash_between_the_end_and_its_delivery() {
    let postgres = Postgres::fresh().await;
    let lab = postgres.organization("lab").await.id;
    // The user of the harness's executions.
    let user = postgres.user(lab, "somebody@example.org").await.id;
    let execution = postgres.execution(lab, at(0), None).await;
    let executions = Subject::<dyn ExecutionRepository>::subject(&postgres);
    executions
        .close(lab, execution.id, FinalStatus::Failed, at(1))
        .await
        .expect("closed");

    // The server that ended the execution dies: the database cuts off all of its connections.
    let client = look_behind(postgres.url()).await;
    let all = "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    assert!(!texts(&client, all).await.is_empty());

    // The next server dies too, while it delivers.
    let settings = DatabaseSettings::default();
    let dying = Database::new(postgres.url(), settings).expect("a pool");
    let dying = PgNotificationRepository::new(dying);
    let failing = |_: &Ended| -> Option<NewNotification> { panic!("the server dies") };
    let delivery = dying.deliver_notices(10, &failing);
    let died = AssertUnwindSafe(delivery).catch_unwind().await;
    assert!(died.is_err(), "{died:?}");
    drop(dying);

    let settings = DatabaseSettings::default();
    let database = Database::new(postgres.url(), settings).expect("a pool");
    let notifications = PgNotificationRepository::new(database);
    let deliver = async || {
        // The dead server's transaction may hold the record for a moment.
        let handled = notifications.deliver_notices(10, &notice_of).await;
        handled.expect("delivered")
    };
    let mut handled = deliver().await;
    while handled == 0 {
        tokio::task::yield_now().await;
        handled = deliver().await;
    }
    assert_eq!((handled, deliver().await), (1, 0));
    let inbox = notifications.list(lab, user, None, ALL).await;
    let titles: Vec<String> = inbox
        .expect("an inbox")
        .items
        .into_iter()
        .map(|one| one.title)
        .collect();
    assert_eq!(titles, ["\"some job\" failed"]);
}
