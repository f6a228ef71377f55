//! Network access.

use std::net::TcpListener;

use labdata_sandbox::{
    Isolation::{self, Landlock, Namespaces},
    Network,
};

use crate::support::Lab;

async fn connection(isolation: Isolation, network: Network) -> Option<String> {
    let lab = Lab::isolated(isolation).await?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 5)\n    print('connected')\nexcept OSError:\n    print('denied')\n"
    );
    let (_, log) = lab.run(&script, network).await;
    Some(log)
}

#[tokio::test]
async fn the_network_of_the_host_can_be_reached_by_default() {
    for isolation in [Namespaces, Landlock] {
        if let Some(log) = connection(isolation, Network::Host).await {
            assert_eq!(log, "connected\n", "{isolation:?}");
        }
    }
}

#[tokio::test]
async fn a_denied_network_cannot_be_reached_in_namespaces() {
    if let Some(log) = connection(Namespaces, Network::Denied).await {
        assert_eq!(log, "denied\n");
    }
}

#[tokio::test]
async fn a_denied_network_cannot_be_reached_by_tcp_under_landlock() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let numbers: Vec<u32> = release.split('.').map_while(|it| it.parse().ok()).collect();
    if numbers < vec![6, 7] {
        eprintln!("NOT TESTED: Landlock of Linux {release} does not restrict the network");
        return;
    }
    if let Some(log) = connection(Landlock, Network::Denied).await {
        assert_eq!(log, "denied\n");
    }
}
