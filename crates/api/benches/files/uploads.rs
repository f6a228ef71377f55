//! 500 MB through the gateway, beside `cp` and fsync, and beside `s3s-fs`.

use std::{
    fs::File,
    process::Command,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, future::join_all, stream};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use crate::{Bench, median};

const BYTES: usize = 524_288_000;
const PIECE: usize = 1 << 20;
const ROUNDS: usize = 3;

pub(crate) async fn run(bench: &Bench) {
    let instrument = bench.instrument("uploads").await;
    let root = bench.server.directory();
    let source = root.join("source");
    let chunk: Vec<u8> = (0..PIECE).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let chunks = vec![chunk.as_slice(); BYTES / PIECE];
    std::fs::write(&source, chunks.concat()).unwrap();
    File::open(&source).unwrap().sync_all().unwrap();
    let s3 = s3(root.join("s3")).await;
    let chunk = Bytes::from(chunk);

    put(bench, &instrument, "warm", &chunk, PIECE).await;
    let resting = bench.server.memory("VmRSS");
    let (mut copied, mut gateway, mut other) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let copy = root.join("copy");
        let start = Instant::now();
        let cp = Command::new("cp")
            .arg("--reflink=never")
            .arg(&source)
            .arg(&copy)
            .status();
        assert!(cp.unwrap().success());
        File::open(&copy).unwrap().sync_all().unwrap();
        copied.push(start.elapsed());
        std::fs::remove_file(copy).unwrap();
        gateway.push(put(bench, &instrument, &round.to_string(), &chunk, BYTES).await);
        let start = Instant::now();
        let request = reqwest::Client::new().put(format!("{s3}/lab/{round}"));
        let request = request.header("content-length", BYTES);
        let response = request.body(body(&chunk, BYTES)).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        other.push(start.elapsed());
    }
    let one = bench.server.memory("VmHWM") - resting;
    let (copied, gateway, other) = (median(&copied), median(&gateway), median(&other));
    println!(
        "500 MB: cp + fsync {copied:.0} ms, gateway {gateway:.0} ms = {:.2} of it (<= 1.6), s3s-fs \
         {other:.0} ms = {:.2} of the gateway (>= 2; it does not sync)",
        gateway / copied,
        other / gateway,
    );
    let eight = (0..8).map(|number| {
        let (instrument, chunk) = (&instrument, &chunk);
        async move { put(bench, instrument, &format!("eight {number}"), chunk, BYTES).await }
    });
    let eight = median(&join_all(eight).await);
    println!(
        "memory of the server: {resting:.0} MB at rest, grew by {one:.0} MB in uploads one by one and \
         by {:.0} MB with eight at once ({eight:.0} ms) (< 64)",
        bench.server.memory("VmHWM") - resting
    );
}

fn body(chunk: &Bytes, length: usize) -> reqwest::Body {
    let chunks = std::iter::repeat_n(chunk.clone(), length / PIECE).map(Ok::<_, std::io::Error>);
    reqwest::Body::wrap_stream(stream::iter(chunks).boxed())
}

/// Duration of the PUT of a whole upload, which is then confirmed.
async fn put(
    bench: &Bench,
    instrument: &str,
    name: &str,
    chunk: &Bytes,
    length: usize,
) -> Duration {
    let wanted = json!({ "file_name": format!("{name}.bin"), "instrument_id": instrument });
    let begun = bench.post("/files/upload-url", wanted).await;
    let mut request = reqwest::Client::new().put(begun["upload_url"].as_str().unwrap());
    for (header, value) in begun["headers"].as_object().unwrap() {
        request = request.header(header, value.as_str().unwrap());
    }
    let request = request.header("content-length", length);
    let start = Instant::now();
    let response = request.body(body(chunk, length)).send().await.unwrap();
    let taken = start.elapsed();
    assert_eq!(response.status().as_u16(), 200);
    let id = begun["file_id"].as_str().unwrap();
    bench
        .post(&format!("/files/{id}/confirm-upload"), json!({}))
        .await;
    taken
}

/// An S3 server in this process, on the same disk; its URL.
async fn s3(root: std::path::PathBuf) -> String {
    std::fs::create_dir_all(root.join("lab")).unwrap();
    let service =
        s3s::service::S3ServiceBuilder::new(s3s_fs::FileSystem::new(root).unwrap()).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service.clone());
            tokio::spawn(connection);
        }
    });
    url
}
