//! Forwards a connection's bytes unchanged, after TLS or a PROXY header.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use uturn_lb::event::Event;
use uturn_lb::proxy_header;

use super::counted::Counted;
use super::linger::linger;
use super::tunnel;
use crate::access_log::Entry;
use crate::exchange::Client;
use crate::local_error::Operation;
use crate::metrics::ConnectFailure;
use crate::upstream::{ConnectError, connect};

/// Forwards a connection to a target, and counts and logs it.
pub(super) async fn forward<S>(client: &Rc<Client>, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let began = Instant::now();
    let mut stream = Counted::new(stream);
    let mut tried = None;
    let passed = pass(client, &mut stream, &mut tried).await;
    let (received, sent) = (stream.counts.read.get(), stream.counts.written.get());
    client.shard().pass(received, sent);
    let log = &client.worker.process.access_log;
    if log.is_on() {
        log.log(Box::new(Entry {
            began,
            listener: client.listener.address,
            client: client.address,
            connection: client.connection,
            protocol: "TCP_SSL",
            head: None,
            status: None,
            received,
            sent,
            target: tried,
            attempts: tried.map_or(0, |_| 1),
            first_byte: None,
            total: began.elapsed(),
            why: passed.as_ref().err().map(ToString::to_string),
        }));
    }
    // Nobody reads what the client has sent meanwhile. Without lingering, closing the socket would
    // reset the connection or not, depending on which came first.
    if passed.is_err() && received == 0 {
        linger(&mut stream).await;
    }
    passed
}

/// Forwards a connection to the target whose turn it is, which is stored in `tried`. No other
/// target is tried, as layer 4 has no way to tell that another one was meant.
async fn pass<S>(
    client: &Rc<Client>,
    stream: &mut Counted<S>,
    tried: &mut Option<SocketAddr>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let listener = &client.listener;
    let Some(rule) = listener.rules.first() else {
        return Err(io::Error::other("no rule"));
    };
    let Some(picked) = rule.pick(client.address.ip(), None) else {
        return Err(io::Error::other("no target may be picked"));
    };
    let (connection, target) = (client.connection, rule.targets[picked.target].address);
    *tried = Some(target);
    client.report(|| Event::Pick {
        connection,
        client: client.address,
        listener: listener.address,
        target,
        turn: picked.turn,
    });
    let open = rule.open(picked.target);
    let limit = listener.profile.connect_timeout;
    let process = &client.worker.process;
    let (source, client_ip) = (&listener.profile.source, client.address.ip());
    let reached = connect(target, source, client_ip, limit, process.descriptors).await;
    if !matches!(reached, Err(ConnectError::Local(..))) {
        rule.record(picked.target, reached.is_ok());
    }
    if reached.is_ok() {
        rule.remember(client.address.ip(), picked.target);
    }
    let metrics = &rule.targets[picked.target].metrics;
    let mut upstream = match reached {
        Ok(upstream) => upstream,
        Err(ConnectError::Timeout) => {
            metrics.fail_to_connect(ConnectFailure::Timeout);
            client.report(|| Event::Timeout { connection, target });
            return Err(io::Error::other(format!("{target} does not answer")));
        }
        Err(ConnectError::Refused(error)) => {
            metrics.fail_to_connect(ConnectFailure::Refused);
            let why = error.to_string();
            client.report(|| Event::Refused { connection, target, why });
            return Err(io::Error::other(format!("{target}: {error}")));
        }
        Err(ConnectError::Local(cause, error)) => {
            process.local_errors.count(Operation::Connect, cause);
            let why = format!("this machine cannot connect to {target}: {error}");
            return Err(io::Error::other(why));
        }
    };
    if let Some(version) = listener.settings.proxy_to {
        upstream.write_all(&proxy_header::write(version, client.address, listener.address)).await?;
    }
    let phase = client.phase.begin(false);
    let idle = listener.settings.timeouts.idle;
    tunnel::pass(&client.worker, stream, &mut upstream, idle).await?;
    drop((open, phase));
    client.report(|| Event::Passed { connection, target });
    Ok(())
}
