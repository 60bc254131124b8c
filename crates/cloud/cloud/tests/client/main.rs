//! The client against the server, over a socket on loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use uturn_cloud::cloud::{Batch, Cloud, Settings, Storage, StorageError};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::ids::IdSource;
use uturn_cloud::inventory::Inventory;
use uturn_cloud::server::{Server, Stop};
use uturn_cloud_api::SecretKey;
use uturn_cloud_api::clb::DescribeTaskStatusRequest;
use uturn_cloud_api::client::{CallError, Client, ClientSettings, Endpoint, Retries};

/// Keeps nothing: what the server has in memory is enough here.
struct Forgetful;

impl Storage for Forgetful {
    fn commit(&self, _: &Batch) -> Result<(), StorageError> {
        Ok(())
    }
}

struct Running {
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start() -> Self {
        let credentials = Credentials::parse("id1 key1").unwrap();
        let cloud = Cloud::new(
            credentials,
            Inventory::Open,
            Settings { task_time: Some(Duration::ZERO), ..Settings::default() },
            Box::new(Forgetful),
            IdSource::random(),
            HashMap::new(),
        );
        let server = Server::bind(([127, 0, 0, 1], 0).into(), Arc::new(cloud)).unwrap();
        let (address, stop) = (server.address().unwrap(), Stop::new());
        let stopping = stop.clone();
        let thread = thread::spawn(move || server.run(&stopping).unwrap());
        Self { address, stop, thread: Some(thread) }
    }

    fn client(&self, key: &str) -> Client {
        Client::new(ClientSettings {
            endpoint: format!("http://{}", self.address).parse().unwrap(),
            secret_id: "id1".to_owned(),
            secret_key: SecretKey::from(key.to_owned()),
            region: "ap-guangzhou".to_owned(),
            retries: Retries { most: 0, ..Retries::default() },
            rate: None,
        })
        .unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the server panicked");
        }
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

fn task(id: &str) -> DescribeTaskStatusRequest {
    DescribeTaskStatusRequest { task_id: Some(id.to_owned()), ..Default::default() }
}

fn code(error: CallError) -> String {
    match error {
        CallError::Api { code, .. } => code,
        other => panic!("{other}"),
    }
}

#[test]
fn errors_of_the_api_are_told_apart() {
    let server = Running::start();
    let unknown = block_on(server.client("key1").call(&task("none"))).unwrap_err();
    assert_eq!(code(unknown), "InvalidParameter");
    let forged = block_on(server.client("key2").call(&task("none"))).unwrap_err();
    assert_eq!(code(forged), "AuthFailure.SignatureFailure");
}

#[test]
fn a_server_that_is_not_there_is_no_connection() {
    let server = Running::start();
    let client = server.client("key1");
    drop(server);
    let error = block_on(client.call(&task("none"))).unwrap_err();
    assert!(matches!(error, CallError::Connect(_)), "{error}");
}

#[test]
fn an_address_without_a_scheme_is_refused() {
    assert!("127.0.0.1:80".parse::<Endpoint>().is_err());
}
