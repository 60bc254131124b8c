//! A layer 7 target: it reads each request to its end, then answers with a small body, or with a
//! large one at `/large`.

use std::convert::Infallible;
use std::future::pending;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

use crate::arguments::TargetArguments;
use crate::failure::Failure;
use crate::target::listen;
use crate::wire::{MEBIBYTE, SMALL};

/// The bodies of the two answers.
#[derive(Clone)]
struct Answers {
    small: Bytes,
    large: Bytes,
}

/// Serves until the process is ended.
///
/// # Errors
/// When the program cannot listen on an address.
pub(crate) fn run(arguments: &TargetArguments) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = runtime.map_err(Failure::of("start the runtime"))?;
    let body = |length| Bytes::from(vec![b'.'; length]);
    let answers = Answers { small: body(SMALL as usize), large: body(MEBIBYTE) };
    runtime.block_on(async {
        for address in &arguments.listen {
            let doing = format!("listen on {address}");
            let listener = listen(*address).map_err(Failure::of(doing))?;
            spawn_local(accept(listener, answers.clone()));
        }
        pending().await
    })
}

async fn accept(listener: TcpListener, answers: Answers) {
    loop {
        // An error here is that of a connection that its client gave up.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let answers = answers.clone();
        spawn_local(async move {
            let service = service_fn(|request| answer(&answers, request));
            // A connection that the client breaks off is no error of the target.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    answers: &Answers,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.uri().path() {
        "/large" => answers.large.clone(),
        _ => answers.small.clone(),
    };
    let mut received = request.into_body();
    while let Some(Ok(_)) = received.frame().await {}
    Ok(Response::new(Full::new(body)))
}
