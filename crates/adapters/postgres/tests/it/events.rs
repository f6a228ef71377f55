//! Those who wait for events are woken.

use futures::{StreamExt, stream};
use labdata_domain::storage::StorageQuota;
use labdata_port_contracts::{
    Harness, Subject,
    files::{confirmed, of},
    fixtures::{Instruments, Tenants},
    given::at,
};
use labdata_ports::files::FileRepository;
use tokio_postgres::AsyncMessage;

use crate::contracts::Postgres;

#[tokio::test]
async fn a_confirmed_file_wakes_those_who_listen() {
    let postgres = Postgres::fresh().await;
    let (client, mut connection) = tokio_postgres::connect(postgres.url(), tokio_postgres::NoTls)
        .await
        .expect("a connection");
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                drop(sender.send(notification.channel().to_owned()));
            }
        }
    });
    client
        .batch_execute("LISTEN labdata_event")
        .await
        .expect("listening");
    let lab = postgres.organization("lab").await.id;
    let instrument = postgres.instrument(lab, "reader").await.id;
    let files = Subject::<dyn FileRepository>::subject(&postgres);
    let file = confirmed("a.csv", of(Some(instrument), None), at(0));
    files
        .add(lab, &file, StorageQuota::UNLIMITED, at(0))
        .await
        .expect("recorded");
    assert_eq!(heard.recv().await.as_deref(), Some("labdata_event"));
}
