//! `uturn cloud serve` is killed while it writes, or its disk is full: what it acknowledged is
//! there when it is started again.

mod served;

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Sender};
use std::thread;

use uturn_cloud_api::clb::{
    CreateListenerRequest, CreateLoadBalancerRequest, DeleteListenerRequest,
    DescribeListenersRequest, DescribeLoadBalancersRequest, DescribeTaskStatusRequest,
    ModifyListenerRequest,
};
use uturn_cloud_api::client::CallError;
use uturn_cloud_api::ssl::{DescribeCertificatesRequest, UploadCertificateRequest};
use uturn_cloud_api::wire::error::ErrorCode;
use uturn_dice::Dice;

use self::served::{Caller, Served, database_size, state};
use uturn_testing::commands::Folder;

/// How often the server is killed.
const ROUNDS: u64 = 10;
/// Clients that write at the same time, each to a load balancer of its own.
const WRITERS: usize = 6;

/// The listeners of a load balancer by their ports: their ids and names.
type Listeners = BTreeMap<i64, (String, String)>;

/// A client that writes to a load balancer, and what it knows of its listeners.
struct Writer {
    load_balancer: String,
    listeners: Listeners,
    /// The listeners after the request that was not answered. The id of one that it created is
    /// not known: it is the empty text.
    perhaps: Option<Listeners>,
    /// The id of the last request that was acknowledged.
    task: String,
    dice: Dice,
}

impl Writer {
    fn new(number: usize, caller: &Caller) -> Self {
        let request = CreateLoadBalancerRequest {
            load_balancer_type: "OPEN".to_owned(),
            ..Default::default()
        };
        let created = caller.call(&request).unwrap();
        let ids = created.response.load_balancer_ids.unwrap();
        Self {
            load_balancer: ids[0].clone(),
            listeners: Listeners::new(),
            perhaps: None,
            task: created.request_id,
            dice: Dice::new(number as u64),
        }
    }

    /// Writes until the server is gone. Reports every write that was acknowledged.
    fn write(&mut self, caller: &Caller, acknowledged: &Sender<()>) {
        for number in 0.. {
            let mut listeners = self.listeners.clone();
            match self.change(&mut listeners, &format!("name-{number}"), caller) {
                Ok(task) => {
                    (self.listeners, self.task) = (listeners, task);
                    // An error says that enough were counted.
                    let _ = acknowledged.send(());
                }
                Err(CallError::Connect(_) | CallError::Network(_)) => {
                    self.perhaps = Some(listeners);
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Creates, renames or deletes a listener. Returns the id of the request.
    fn change(
        &mut self,
        listeners: &mut Listeners,
        name: &str,
        caller: &Caller,
    ) -> Result<String, CallError> {
        let load_balancer_id = self.load_balancer.clone();
        let port = 1 + i64::try_from(self.dice.below(20)).unwrap();
        let Some((id, _)) = listeners.get(&port).cloned() else {
            listeners.insert(port, (String::new(), name.to_owned()));
            let created = caller.call(&CreateListenerRequest {
                load_balancer_id,
                ports: vec![port],
                protocol: "TCP".to_owned(),
                listener_names: Some(vec![name.to_owned()]),
                ..Default::default()
            })?;
            let ids = created.response.listener_ids.unwrap();
            listeners.insert(port, (ids[0].clone(), name.to_owned()));
            return Ok(created.request_id);
        };
        if self.dice.below(2) == 0 {
            listeners.remove(&port);
            let deleted =
                caller.call(&DeleteListenerRequest { load_balancer_id, listener_id: id })?;
            return Ok(deleted.request_id);
        }
        listeners.insert(port, (id.clone(), name.to_owned()));
        let renamed = caller.call(&ModifyListenerRequest {
            load_balancer_id,
            listener_id: id,
            listener_name: Some(name.to_owned()),
            ..Default::default()
        })?;
        Ok(renamed.request_id)
    }

    /// Compares what is there with what was acknowledged. The request that was not answered may
    /// have been performed.
    fn check(&mut self, round: u64, caller: &Caller) {
        let described = caller.call(&DescribeListenersRequest {
            load_balancer_id: self.load_balancer.clone(),
            ..Default::default()
        });
        let found: Listeners = described
            .unwrap()
            .response
            .listeners
            .unwrap()
            .into_iter()
            .map(|listener| {
                let id = listener.listener_id.unwrap();
                (listener.port.unwrap(), (id, listener.listener_name.unwrap()))
            })
            .collect();
        let is_perhaps = self.perhaps.take().is_some_and(|mut perhaps| {
            for (port, (id, _)) in &mut perhaps {
                if let Some((known, _)) = found.get(port).filter(|_| id.is_empty()) {
                    id.clone_from(known);
                }
            }
            perhaps == found
        });
        assert!(
            found == self.listeners || is_perhaps,
            "round {round}: {found:?} instead of {:?}",
            self.listeners
        );
        self.listeners = found;
        let task =
            DescribeTaskStatusRequest { task_id: Some(self.task.clone()), ..Default::default() };
        assert_eq!(caller.call(&task).unwrap().response.status, Some(0), "round {round}");
    }
}

#[test]
fn a_server_that_is_killed_while_it_writes_keeps_what_it_acknowledged() {
    let folder = Folder::new("cloud-killed");
    let mut served = Served::start(&folder);
    let mut writers: Vec<Writer> =
        (0..WRITERS).map(|number| Writer::new(number, &served.client())).collect();
    let mut dice = Dice::new(17);
    let mut unanswered = 0;
    for round in 0..ROUNDS {
        let (acknowledged, counted) = mpsc::channel();
        let enough = 1 + dice.below(60);
        thread::scope(|scope| {
            for writer in &mut writers {
                let (caller, acknowledged) = (served.client(), acknowledged.clone());
                scope.spawn(move || writer.write(&caller, &acknowledged));
            }
            counted.iter().take(enough).for_each(drop);
            served.kill();
        });
        unanswered += writers.iter().filter(|writer| writer.perhaps.is_some()).count();
        served = Served::start(&folder);
        let caller = served.client();
        for writer in &mut writers {
            writer.check(round, &caller);
        }
        let balancers = caller.call(&DescribeLoadBalancersRequest::default()).unwrap();
        assert_eq!(balancers.response.total_count, Some(WRITERS as u64));
    }
    assert!(unanswered > 0, "no request was cut off");
}

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    const SIZE: usize = 100_000;
    let folder = Folder::new("cloud-full");
    let upload = |caller: &Caller, number: usize| {
        let pem = |label: &str, text: &str| {
            format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
        };
        let request = UploadCertificateRequest {
            certificate_public_key: pem("CERTIFICATE", &"A".repeat(SIZE)),
            certificate_private_key: Some(pem("PRIVATE KEY", &number.to_string())),
            alias: Some(format!("certificate-{number}")),
            ..Default::default()
        };
        caller.call(&request).map(|answer| answer.response.certificate_id.unwrap())
    };
    let listed = |caller: &Caller| {
        let all = DescribeCertificatesRequest { limit: Some(1_000), ..Default::default() };
        let found = caller.call(&all).unwrap().response.certificates.unwrap();
        let mut ids: Vec<String> =
            found.into_iter().map(|found| found.certificate_id.unwrap()).collect();
        ids.sort_unstable();
        ids
    };

    let served = Served::start(&folder);
    let mut ids = vec![upload(&served.client(), 0).unwrap()];
    served.kill();
    let room = database_size(&folder) + 10 * SIZE as u64;
    let served = Served::start_with_files_up_to(room, &folder);
    let caller = served.client();
    let mut refused = 0;
    for number in 1..500 {
        match upload(&caller, number) {
            Ok(id) => ids.push(id),
            Err(error) => {
                assert!(error.is(ErrorCode::InternalError), "{error}");
                assert!(error.to_string().contains("could not be stored"), "{error}");
                refused += 1;
            }
        }
        if refused == 5 {
            break;
        }
    }
    ids.sort_unstable();
    assert!(refused == 5 && ids.len() > 3, "{refused} refused, {} stored", ids.len());
    assert_eq!(listed(&caller), ids, "what was refused is not there");
    served.kill();

    // A write that failed last may have reached the disk all the same: no other came after it
    // that would have taken it back.
    let served = Served::start(&folder);
    let caller = served.client();
    let found = listed(&caller);
    assert!(ids.iter().all(|id| found.contains(id)), "{ids:?} in {found:?}");
    assert!(found.len() <= ids.len() + 1, "{} and {}", found.len(), ids.len());
    upload(&caller, 1_000).unwrap();
}

#[test]
fn a_state_folder_has_one_server() {
    let folder = Folder::new("cloud-twice");
    let _served = Served::start(&folder);
    let path = state(&folder).to_string_lossy().into_owned();
    let said = folder.run(&[
        "cloud",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--state",
        &path,
        "--credentials",
        "credentials",
    ]);
    assert!(!said.starts_with("exit 0"), "{said}");
    assert!(said.contains("is open in another process"), "{said}");
}
