//! Server that stands for the platform: stores what is put, and serves it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

type Objects = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// Running server.
pub(crate) struct Platform {
    /// Its URL, without a slash at the end.
    pub(crate) url: String,
    objects: Objects,
    task: JoinHandle<()>,
}

impl Platform {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let objects = Objects::default();
        let stored = Arc::clone(&objects);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(response(client, Arc::clone(&stored)));
            }
        });
        Self { url, objects, task }
    }

    pub(crate) fn store(&self, path: &str, body: Vec<u8>) {
        self.objects.lock().unwrap().insert(path.to_owned(), body);
    }

    pub(crate) fn stored(&self, path: &str) -> Vec<u8> {
        self.objects.lock().unwrap()[path].clone()
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn response(client: TcpStream, objects: Objects) -> std::io::Result<()> {
    let mut client = BufReader::new(client);
    let mut request = String::new();
    client.read_line(&mut request).await?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        client.read_line(&mut line).await?;
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).await?;
    let mut parts = request.split(' ');
    let (method, path) = (parts.next().unwrap(), parts.next().unwrap());
    let (status, body) = if method == "PUT" {
        objects.lock().unwrap().insert(path.to_owned(), body);
        ("200 OK", Vec::new())
    } else {
        match objects.lock().unwrap().get(path) {
            Some(body) => ("200 OK", body.clone()),
            None => ("404 Not Found", Vec::new()),
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(&body).await
}
