//! HTTP/2 in front and behind, as gRPC uses it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, Version};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::http2 as client;
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use uturn_lb::config::Forward;

use crate::frames::{END_HEADERS, END_STREAM, HEADERS, Http2, RST_STREAM, SETTINGS, frame};
use crate::support::{Balancer, Host, settings};

/// A body of these frames.
#[derive(Debug, Default)]
struct Frames(VecDeque<Frame<Bytes>>);

impl Frames {
    fn new(parts: &[&'static str], trailers: HeaderMap) -> Self {
        let data = parts.iter().map(|part| Frame::data(Bytes::from_static(part.as_bytes())));
        Self(data.chain([Frame::trailers(trailers)]).collect())
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads a body: its bytes and its trailers.
async fn read(mut body: Incoming) -> Result<(Vec<u8>, Option<HeaderMap>), hyper::Error> {
    let (mut bytes, mut trailers) = (Vec::new(), None);
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame?.into_data() {
            Ok(data) => bytes.extend(data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    Ok((bytes, trailers))
}

fn grpc_status(status: &'static str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    trailers
}

/// A server without TLS that answers in the manner of gRPC, and counts its connections.
fn grpc_server() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&accepted);
    thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let service = service_fn(|request: Request<Incoming>| async {
                    assert_eq!(request.version(), Version::HTTP_2);
                    assert_eq!(request.uri().authority().unwrap(), "shop.example.com");
                    assert_eq!(request.headers()["te"], "trailers");
                    let (bytes, trailers) = read(request.into_body()).await?;
                    let checked = trailers.is_some_and(|trailers| trailers["x-check"] == "1");
                    assert!(checked && bytes == b"question");
                    let body = Frames::new(&["an", "swer"], grpc_status("0"));
                    Ok::<_, hyper::Error>(Response::new(body))
                });
                let builder = server::Builder::new(TokioExecutor::new());
                tokio::spawn(async move {
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
    });
    (address, accepted)
}

fn question() -> Request<Frames> {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-check", HeaderValue::from_static("1"));
    Request::post("http://shop.example.com/Shop/Ask")
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .body(Frames::new(&["quest", "ion"], trailers))
        .unwrap()
}

#[test]
fn calls_pass_with_their_trailers_over_one_connection_to_the_target() {
    let (target, accepted) = grpc_server();
    let balancer = Balancer::with(&[target], |config| {
        config.process.workers = Some(1);
        settings(config).rules[0].forward = Forward::H2c;
    });
    Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let stream = TcpStream::connect(balancer.address).await.unwrap();
        let builder = client::Builder::new(TokioExecutor::new());
        let (send, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        // One first, so that its connection is there for the others.
        let first = send.clone().send_request(question()).await.unwrap();
        read(first.into_body()).await.unwrap();
        let calls: Vec<_> = (0..100)
            .map(|_| {
                let mut send = send.clone();
                tokio::spawn(async move {
                    let answer = send.send_request(question()).await.unwrap();
                    assert_eq!(answer.status(), 200);
                    read(answer.into_body()).await.unwrap()
                })
            })
            .collect();
        for call in calls {
            let (bytes, trailers) = call.await.unwrap();
            assert_eq!(bytes, b"answer");
            assert_eq!(trailers.unwrap()["grpc-status"], "0");
        }
    });
    assert_eq!(accepted.load(Ordering::SeqCst), 1);
}

#[test]
fn a_target_that_resets_every_stream_is_not_asked_for_ever() {
    let streams = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&streams);
    let host = Host::start(move |mut wire| {
        if wire.bytes(24).is_err() {
            return;
        }
        let mut target = Http2::accepted(wire);
        let _ = target.send(frame(SETTINGS, 0, 0, &[]));
        while let Ok(received) = target.receive() {
            if received.kind == HEADERS {
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let stream = received.stream;
                let _ = match number {
                    // The first is answered, so that the connection is one to be used again.
                    0 => target.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, &[0x88])),
                    _ => target.send(frame(RST_STREAM, 0, stream, &[0, 0, 0, 2])),
                };
            }
        }
    });
    let balancer = Balancer::with(&[host.address], |config| {
        config.process.workers = Some(1);
        settings(config).rules[0].forward = Forward::H2c;
    });
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut client = balancer.client();
    assert_eq!(client.ask(get).unwrap().status(), 200);
    assert_eq!(client.ask(get).unwrap().status(), 502);
    let asked = streams.load(Ordering::SeqCst);
    assert!(asked <= 3, "{asked} streams for two requests");
}
