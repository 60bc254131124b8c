//! A connection that is passed on as it is, after TLS or a PROXY header.

use std::io;
use std::rc::Rc;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use uturn_lb::config::ProxyVersion;
use uturn_lb::event::Event;
use uturn_lb::proxy_header;

use crate::exchange::Client;
use crate::upstream::{ConnectError, connect};

/// Passes a connection on to a target. Only one is tried: layer 4 has no way to say that another
/// was meant.
pub(super) async fn forward<S>(client: &Rc<Client>, mut stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let listener = &client.listener;
    let Some(rule) = listener.rules.first() else {
        return Err(io::Error::other("no rule"));
    };
    let Some(picked) = rule.pick(client.address.ip()) else {
        return Err(io::Error::other("no target may be picked"));
    };
    let (connection, target) = (client.connection, rule.targets[picked.target].address);
    client.report(|| Event::Pick {
        connection,
        client: client.address,
        listener: listener.address,
        target,
        turn: picked.turn,
    });
    let open = rule.open(picked.target);
    let limit = listener.settings.timeouts.read;
    let reached = connect(target, &listener.profile.source, client.address.ip(), limit).await;
    rule.record(picked.target, reached.is_ok());
    let mut upstream = match reached {
        Ok(upstream) => upstream,
        Err(ConnectError::Timeout) => {
            client.report(|| Event::Timeout { connection, target });
            return Err(io::Error::other(format!("{target} does not answer")));
        }
        Err(ConnectError::Refused(error)) => {
            let why = error.to_string();
            client.report(|| Event::Refused { connection, target, why });
            return Err(io::Error::other(format!("{target}: {error}")));
        }
    };
    let header = match listener.settings.proxy_to {
        None => Vec::new(),
        Some(ProxyVersion::V1) => proxy_header::v1(client.address, listener.address),
        Some(ProxyVersion::V2) => proxy_header::v2(client.address, listener.address),
    };
    upstream.write_all(&header).await?;
    let phase = client.phase.begin();
    copy_bidirectional(&mut stream, &mut upstream).await?;
    drop((open, phase));
    client.report(|| Event::Passed { connection, target });
    Ok(())
}
