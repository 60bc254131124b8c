//! The HTTP pages for administrators and the kubelet: `/healthz`, `/readyz` and `/metrics`.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::metrics::Metrics;
use crate::watch::Shared;

/// The time after which a request is cut off.
const LIMIT: Duration = Duration::from_secs(10);
/// The most bytes of a request that are read.
const MAX_REQUEST: usize = 8192;

/// Answers requests for ever.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>, shared: Shared) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            let (metrics, shared) = (Arc::clone(&metrics), shared.clone());
            tokio::spawn(async move {
                // A client that disconnects is not an error.
                let _ = timeout(LIMIT, answer(stream, &metrics, &shared)).await;
            });
        }
    }
}

async fn answer(mut stream: TcpStream, metrics: &Metrics, shared: &Shared) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_REQUEST {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request);
    let mut words = request.split_ascii_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, body) = match (method, path) {
        ("GET", "/healthz") => ("200 OK", "ok\n".to_owned()),
        ("GET", "/readyz") => readiness(metrics, shared),
        ("GET", "/metrics") => ("200 OK", metrics.text()),
        ("GET", _) => ("404 Not Found", "not found\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET is answered\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// Returns the status and the page of `/readyz`: OK if all kinds are listed, all operations succeed
/// and all objects are served; otherwise the problems.
pub fn readiness(metrics: &Metrics, shared: &Shared) -> (&'static str, String) {
    let missing = shared.with(|store| store.missing());
    let failures = metrics.watch_failures();
    let line = |kind: &&str| match failures.get(kind) {
        Some(why) => format!("{kind} is not listed: {why}\n"),
        None => format!("{kind} is not listed\n"),
    };
    let mut body: String = missing.iter().map(line).collect();
    for (what, why) in metrics.troubles() {
        let _ = writeln!(body, "cannot {what}: {why}");
    }
    for line in metrics.unserved.troubles() {
        let _ = writeln!(body, "{line}");
    }
    if body.is_empty() { ("200 OK", "ok\n".to_owned()) } else { ("503 Service Unavailable", body) }
}
