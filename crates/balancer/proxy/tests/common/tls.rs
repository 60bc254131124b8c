//! A client of TLS.

use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, DEFAULT_VERSIONS};

pub(crate) type Stream = rustls::StreamOwned<ClientConnection, TcpStream>;

pub(crate) fn connect(stream: TcpStream) -> Stream {
    let config = uturn_testing::tls::any_server(DEFAULT_VERSIONS).unwrap();
    let name = ServerName::try_from("uturn-lb").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    Stream::new(connection, stream)
}
