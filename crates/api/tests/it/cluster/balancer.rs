//! A load balancer: forwards each connection to the next server that accepts it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};

/// Starts it; it runs as long as the runtime. Returns its URL.
pub(super) async fn start(ports: Vec<u16>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let ports = Arc::new(ports);
    let turn = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(forward(client, Arc::clone(&ports), Arc::clone(&turn)));
        }
    });
    url
}

async fn forward(mut client: TcpStream, ports: Arc<Vec<u16>>, turn: Arc<AtomicUsize>) {
    for _ in 0..ports.len() {
        let next = turn.fetch_add(1, Ordering::Relaxed) % ports.len();
        if let Ok(mut server) = TcpStream::connect(("127.0.0.1", ports[next])).await {
            // A connection that breaks is closed on the other side too.
            let _ = copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
}
