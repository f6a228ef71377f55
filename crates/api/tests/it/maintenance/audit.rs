//! `labdata audit verify`, beside a running server.

use std::process::Output;

use labdata_test_database::TestDatabase;
use tokio_postgres::NoTls;

use crate::process::{Program, directory, labdata, run, text};

#[tokio::test]
async fn the_log_is_verified_beside_a_server_and_a_changed_entry_is_named() {
    let (directory, own) = (directory(), TestDatabase::new().await);
    let place = directory.path().to_owned();
    let server = Program::serve(&place, &[("DATABASE_URL", own.url())]);
    let verify = async || -> Output {
        let (place, url) = (place.clone(), own.url().to_owned());
        let verify = move || run(labdata(&place, &["audit", "verify"]).env("DATABASE_URL", url));
        tokio::task::spawn_blocking(verify).await.unwrap()
    };
    let good = verify().await;
    assert_eq!(good.status.code(), Some(0), "{good:?}");
    // The administrator of the first start, and the key.
    let printed = text(&good.stdout);
    assert!(
        printed.contains("default: 2 entries, each fits"),
        "{printed}"
    );
    // The owner of the database can switch its guard off, and is found out.
    let (client, connection) = tokio_postgres::connect(own.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let forged = "ALTER TABLE labdata.audit_entry DISABLE TRIGGER USER; \
        UPDATE labdata.audit_entry SET target_name = 'other'";
    client.batch_execute(forged).await.unwrap();
    let forged = verify().await;
    assert_eq!(forged.status.code(), Some(1), "{forged:?}");
    let refusal = text(&forged.stderr);
    assert!(refusal.contains("was changed: its hash"), "{refusal}");
    drop(server);
}
