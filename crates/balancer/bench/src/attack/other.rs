//! Clients that wait, give up halfway, or do ordinary things far too often.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::dripping::{LARGE, NARROW};
use super::{Attackers, ending};
use crate::ports::{HTTP, UDP};
use crate::socket::connect;

/// The number of datagrams that are sent from one port.
const DATAGRAMS: usize = 20;

/// Sends the bytes, and waits for the connection to end.
pub(super) async fn wait(mut stream: TcpStream, bytes: &[u8]) -> io::Result<String> {
    stream.write_all(bytes).await?;
    Ok(ending::of(&mut stream).await)
}

/// Sends the bytes, closes this side, and reads what comes.
pub(super) async fn half_close(mut stream: TcpStream, bytes: &[u8]) -> io::Result<String> {
    stream.write_all(bytes).await?;
    stream.shutdown().await?;
    Ok(ending::of(&mut stream).await)
}

/// Sends the first message of a TLS handshake, reads the server's messages, and waits for the
/// connection to end.
pub(super) async fn hello(mut stream: TcpStream) -> io::Result<String> {
    let config = uturn_testing::tls::any_server(&[&rustls::version::TLS13]);
    let config = Arc::new(config.map_err(io::Error::other)?);
    let name = ServerName::try_from("bench.example").map_err(io::Error::other)?;
    let mut client = ClientConnection::new(config, name).map_err(io::Error::other)?;
    let mut hello = Vec::new();
    client.write_tls(&mut hello)?;
    stream.write_all(&hello).await?;
    let mut part = [0; 4096];
    while stream.read(&mut part).await? > 0 {}
    Ok("closed".to_owned())
}

/// Asks for a large answer and reads nothing of it until the connection has ended.
pub(super) async fn read_nothing(attackers: &Attackers) -> io::Result<String> {
    let mut stream = attackers.hold(HTTP, Some(NARROW)).await?;
    stream.write_all(LARGE).await?;
    // Only a reset would wake a client that does not read; a close behind unread bytes does not.
    // Sending shows that the connection has ended.
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if stream.write_all(b"\r\n").await.is_err() {
            return Ok("cut".to_owned());
        }
    }
}

/// Sends a thousand requests and reads no answer until the connection has ended.
pub(super) async fn pipeline(mut stream: TcpStream) -> io::Result<String> {
    let many = LARGE.repeat(1000);
    match stream.write_all(&many).await {
        Err(_) => Ok("cut".to_owned()),
        Ok(()) => loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if stream.write_all(LARGE).await.is_err() {
                return Ok("cut".to_owned());
            }
        },
    }
}

/// Resets a connection that was just opened.
#[expect(clippy::needless_pass_by_value, reason = "the connection ends here")]
pub(super) fn reset(stream: TcpStream) -> io::Result<String> {
    stream.set_zero_linger()?;
    Ok("opened".to_owned())
}

/// Sends a request from an address that is not allowed to call.
pub(super) async fn refused(attackers: &Attackers) -> io::Result<String> {
    let to = SocketAddr::new(attackers.vip_for(attackers.refused), HTTP);
    let mut stream = connect(Some(attackers.refused), to, None).await?;
    // The connection may have been reset already.
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    Ok(ending::of(&mut stream).await)
}

/// Sends some datagrams from a new port.
pub(super) async fn datagrams(attackers: &Attackers) -> io::Result<String> {
    let from = attackers.passing.next();
    let socket = UdpSocket::bind((from, 0)).await?;
    socket.connect((attackers.vip_for(from), UDP)).await?;
    for _ in 0..DATAGRAMS {
        // An error here is an answer that nothing listens on the port.
        let _ = socket.send(&[0xff; 512]).await;
    }
    Ok(format!("{DATAGRAMS} sent"))
}
