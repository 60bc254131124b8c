//! A layer 4 target: it answers each request with as many bytes as the request asks for, over TCP
//! and UDP at the same ports.

use std::future::pending;
use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

use crate::arguments::TargetArguments;
use crate::failure::Failure;
use crate::wire::{ENDLESS, REQUEST, Request};

/// The largest number of bytes of an answer that are written at a time.
const PART: usize = 128 * 1024;

/// The longest answer in a datagram, which fits into an Ethernet frame without fragmentation.
const DATAGRAM: usize = 1400;

/// Serves until the process is ended.
///
/// # Errors
/// When the program cannot listen on an address.
pub(crate) fn run(arguments: &TargetArguments) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = runtime.map_err(Failure::of("start the runtime"))?;
    runtime.block_on(async {
        for address in &arguments.listen {
            let doing = || format!("listen on {address}");
            let listener = listen(*address).map_err(Failure::of(doing()))?;
            let socket = UdpSocket::bind(address).await.map_err(Failure::of(doing()))?;
            spawn_local(accept(listener));
            spawn_local(answer_datagrams(socket));
        }
        pending().await
    })
}

/// Returns a listener with a long backlog.
///
/// # Errors
/// When the program cannot listen on the address.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    TcpListener::from_std(socket.into())
}

async fn accept(listener: TcpListener) {
    loop {
        // An error here is that of a connection that its client gave up.
        if let Ok((stream, _)) = listener.accept().await {
            spawn_local(serve(stream));
        }
    }
}

/// Answers requests until one asks to close, or the client closes.
async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = [0; REQUEST];
    let mut answer = Vec::new();
    loop {
        stream.read_exact(&mut bytes).await?;
        let Some(request) = Request::from_bytes(&bytes) else { return Ok(()) };
        let mut left = request.length as usize;
        answer.resize(left.min(PART), b'.');
        while left > 0 {
            let part = left.min(PART);
            stream.write_all(&answer[..part]).await?;
            if request.length != ENDLESS {
                left -= part;
            }
        }
        if request.closes {
            return Ok(());
        }
    }
}

async fn answer_datagrams(socket: UdpSocket) {
    let mut bytes = [0; REQUEST + 1];
    let answer = [b'.'; DATAGRAM];
    loop {
        // An error here is that of an earlier answer to a client that is gone.
        let Ok((length, client)) = socket.recv_from(&mut bytes).await else { continue };
        if let Some(request) = Request::from_bytes(&bytes[..length]) {
            let _ = socket.send_to(&answer[..DATAGRAM.min(request.length as usize)], client).await;
        }
    }
}
