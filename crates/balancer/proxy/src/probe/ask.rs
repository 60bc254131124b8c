//! A single probe of a target.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout, timeout_at};
use uturn_lb::event::ProbeResult;
use uturn_model::Protocol as Transport;

use super::icmp;
use crate::dial;
use crate::local_error::SocketError;

/// Checks whether probes can be sent from an address.
///
/// # Errors
/// When the address does not belong to this machine, or a privilege is missing.
pub(super) fn can_ask_from(source: IpAddr, transport: Transport) -> io::Result<()> {
    match transport {
        Transport::Udp => icmp::socket(source).map(drop),
        Transport::Tcp | Transport::Sctp => {
            let at = SocketAddr::new(source, 0);
            let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
            socket.bind(&at.into())
        }
    }
}

/// Connects. The target is alive if it accepts the connection.
pub(super) async fn tcp(
    source: IpAddr,
    target: SocketAddr,
    limit: Duration,
) -> Result<ProbeResult, SocketError> {
    timeout(limit, connect(source, target)).await??;
    Ok(ProbeResult::Answered)
}

/// Sends a datagram and an echo request. The target is alive if its machine answers the echo
/// request and nothing reports the port as closed; more cannot be known of a protocol without
/// answers.
pub(super) async fn udp(
    source: IpAddr,
    target: SocketAddr,
    limit: Duration,
) -> Result<ProbeResult, SocketError> {
    let until = Instant::now() + limit;
    let socket = datagram(source, target).await?;
    send(&socket, b"uturn health check\n").await?;
    let is_echoed = match timeout_at(until, icmp::echo(source, target.ip())).await {
        Ok(echoed) => {
            echoed?;
            true
        }
        Err(_) => false,
    };
    // A refusal arrives no later than the answer to an echo request that was sent afterwards. The
    // kernel keeps it as the socket's error, whether the runtime has noticed it or not.
    match socket.take_error()? {
        Some(error) => Ok(result_of(&error)),
        None if is_echoed => Ok(ProbeResult::Answered),
        None => Ok(ProbeResult::TimedOut),
    }
}

/// Sends bytes. The target is alive if its answer begins as expected.
pub(super) async fn exchange(
    source: IpAddr,
    target: SocketAddr,
    transport: Transport,
    limit: Duration,
    send: &[u8],
    expect: &[u8],
) -> Result<ProbeResult, SocketError> {
    let answer = async {
        let mut answer = vec![0; expect.len()];
        if transport == Transport::Udp {
            let socket = datagram(source, target).await?;
            self::send(&socket, send).await?;
            // A longer answer is cut off, which makes no difference.
            let count = socket.recv(&mut answer).await?;
            answer.truncate(count);
        } else {
            let mut stream = connect(source, target).await?;
            stream.write_all(send).await?;
            stream.read_exact(&mut answer).await?;
        }
        Ok::<_, SocketError>(answer)
    };
    if timeout(limit, answer).await?? == expect {
        Ok(ProbeResult::Answered)
    } else {
        Ok(ProbeResult::Unexpected)
    }
}

/// Connects from an address.
pub(super) async fn connect(source: IpAddr, target: SocketAddr) -> Result<TcpStream, SocketError> {
    let socket = dial::socket(target)?;
    socket.bind(&SocketAddr::new(source, 0).into()).map_err(SocketError::at_once)?;
    dial::connect(socket, target).await
}

async fn datagram(source: IpAddr, target: SocketAddr) -> Result<UdpSocket, SocketError> {
    let at = SocketAddr::new(source, 0);
    let socket = UdpSocket::bind(at).await.map_err(SocketError::at_once)?;
    socket.connect(target).await.map_err(SocketError::at_once)?;
    Ok(socket)
}

/// Sends the first datagram of a socket. A datagram that a rule of this machine drops counts as
/// sent, as if it were lost on the way; a TCP socket sees no more of such a rule either.
pub(super) async fn send(socket: &UdpSocket, bytes: &[u8]) -> Result<(), SocketError> {
    match socket.send(bytes).await {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PERM) => {
            Err(SocketError::at_once(error))
        }
        _ => Ok(()),
    }
}

/// Returns the result that an error of the target or of the network amounts to.
pub(super) fn result_of(error: &io::Error) -> ProbeResult {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ProbeResult::TimedOut,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            ProbeResult::Unreachable
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => ProbeResult::Unexpected,
        _ => ProbeResult::Refused,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;
    use crate::local_error::Cause;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const PATIENCE: Duration = Duration::from_secs(5);

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn a_port_is_open_or_closed() {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(block_on(tcp(HERE, address, PATIENCE)).unwrap(), ProbeResult::Answered);
        drop(listener);
        let refused = block_on(tcp(HERE, address, PATIENCE)).unwrap_err();
        assert_eq!((refused.cause, result_of(&refused.source)), (None, ProbeResult::Refused));
    }

    #[test]
    fn what_this_machine_cannot_do_says_nothing_of_a_target() {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let good = listener.local_addr().unwrap();
        // Not an address of this machine; nothing that is called from here; another family.
        let elsewhere: IpAddr = "192.0.2.1".parse().unwrap();
        let (broadcast, other) = ("255.255.255.255:9".parse().unwrap(), "[::1]:9".parse().unwrap());
        for (source, target, cause) in [
            (elsewhere, good, Cause::Address),
            (HERE, broadcast, Cause::Route),
            (HERE, other, Cause::Other),
        ] {
            let tcp = block_on(tcp(source, target, PATIENCE)).unwrap_err();
            assert_eq!(tcp.cause, Some(cause), "{source} {target}: {}", tcp.source);
            let send = b"ping";
            let asked = exchange(source, target, Transport::Udp, PATIENCE, send, send);
            let udp = block_on(asked).unwrap_err();
            assert!(udp.cause.is_some(), "{source} {target}: {}", udp.source);
        }
    }

    #[test]
    fn an_answer_is_held_against_what_is_expected() {
        use std::io::{Read, Write};
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = [0; 4];
                stream.read_exact(&mut asked).unwrap();
                assert_eq!(&asked, b"ping");
                stream.write_all(b"pong and more").unwrap();
            }
        });
        let ask = |expect: &'static [u8]| {
            block_on(exchange(HERE, address, Transport::Tcp, PATIENCE, b"ping", expect)).unwrap()
        };
        assert_eq!(ask(b"pong"), ProbeResult::Answered);
        assert_eq!(ask(b"gong"), ProbeResult::Unexpected);
        server.join().unwrap();
    }
}
