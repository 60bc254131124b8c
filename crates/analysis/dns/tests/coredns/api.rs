//! A minimal API server: fixed lists, and watches without events.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};

const LISTS: [(&str, &str, &str); 4] = [
    ("/api/v1/namespaces", "v1", "Namespace"),
    ("/api/v1/services", "v1", "Service"),
    ("/api/v1/pods", "v1", "Pod"),
    ("/apis/discovery.k8s.io/v1/endpointslices", "discovery.k8s.io/v1", "EndpointSlice"),
];

pub(crate) struct Api(u16);

impl Api {
    pub(crate) fn port(&self) -> u16 {
        self.0
    }
}

/// Serves the objects until the test's process ends.
pub(crate) fn serve(objects: &[Value]) -> Api {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let lists: Arc<Vec<(&str, String)>> = Arc::new(
        LISTS
            .iter()
            .map(|(path, version, kind)| {
                let items: Vec<&Value> =
                    objects.iter().filter(|object| object["kind"] == *kind).collect();
                let list = json!({
                    "apiVersion": version,
                    "kind": format!("{kind}List"),
                    "metadata": {"resourceVersion": "1"},
                    "items": items,
                });
                (*path, list.to_string())
            })
            .collect(),
    );
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let lists = Arc::clone(&lists);
            // The thread ends with its client's connection.
            thread::spawn(move || drop(answer(stream, &lists)));
        }
    });
    Api(port)
}

fn answer(stream: TcpStream, lists: &[(&str, String)]) -> std::io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut header = String::new();
        while reader.read_line(&mut header)? > 2 {
            header.clear();
        }
        let target = request.split(' ').nth(1).unwrap_or("");
        let path = target.split('?').next().unwrap_or("");
        let list = lists.iter().find(|(known, _)| *known == path);
        match list {
            None => write!(writer, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")?,
            Some(_) if target.contains("watch=") => {
                write!(
                    writer,
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                     Transfer-Encoding: chunked\r\n\r\n"
                )?;
            }
            Some((_, body)) => write!(
                writer,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )?,
        }
        writer.flush()?;
    }
}
