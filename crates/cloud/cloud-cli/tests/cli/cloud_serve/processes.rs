//! A cloud and its data plane as processes, and calls of the cloud's API.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use uturn_cloud_api::SecretKey;
use uturn_cloud_api::client::{Answer, CallError, Client, ClientSettings, Retries};
use uturn_cloud_api::{Action, clb};

use crate::site::{Running, TOKEN, free_address, try_exchange};
use uturn_testing::commands::{Folder, uturn};

/// Longer than any task takes here.
const LONG: Duration = Duration::from_secs(600);

/// A cloud, what it keeps, and its data planes.
pub(super) struct Site {
    pub(super) folder: Folder,
    pub(super) drives: bool,
    /// The file with the certificate authorities that the cloud trusts.
    pub(super) authorities: Option<&'static str>,
    /// More options of the cloud.
    pub(super) options: Vec<&'static str>,
    /// Whether data planes are started with `--certificates`.
    pub(super) keeps_certificates: bool,
    api: SocketAddr,
    status: SocketAddr,
    cloud: Option<Process>,
    pub(super) planes: Vec<Plane>,
}

/// A data plane, which may run.
pub(super) struct Plane {
    pub(super) admin: SocketAddr,
    /// The address that the cloud has of it.
    pub(super) url: String,
    /// The file with the token that the cloud has.
    pub(super) token: &'static str,
    pub(super) file: String,
    pub(super) running: Option<Running>,
}

/// `uturn cloud serve`, killed when this is dropped.
struct Process {
    child: Child,
    errors: Arc<Mutex<Vec<String>>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Site {
    /// The files of both. Nothing runs yet.
    pub(super) fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let (api, status) = (free_address(), free_address());
        // Two addresses that only this process has, for load balancers.
        let IpAddr::V4(own) = api.ip() else { panic!("{api} is not IPv4") };
        let [first, second, third, fourth] = own.octets();
        let other = Ipv4Addr::new(first, second | 128, third, fourth);
        let inventory = json!({ "regions": [{
            "name": "ap-test", "publicAddresses": [format!("{own}/32"), format!("{other}/32")],
            "networks": [{ "id": "vpc-aaaaaaaa", "addresses": "10.0.0.0/16" }],
        }]});
        folder
            .secret("credentials", "id1 key1\n")
            .file("admin.token", TOKEN)
            .file("inventory.json", &inventory.to_string());
        let (cloud, planes) = (None, Vec::new());
        let mut site = Self {
            folder,
            drives: true,
            authorities: None,
            options: Vec::new(),
            keeps_certificates: true,
            api,
            status,
            cloud,
            planes,
        };
        site.add_plane();
        site
    }

    /// Another data plane. It does not run yet.
    pub(super) fn add_plane(&mut self) {
        let (admin, file) = (free_address(), format!("lb-{}.yaml", self.planes.len()));
        let plane = json!({
            "apiVersion": "uturn.dev/v1alpha1", "kind": "DataPlane",
            "spec": { "workers": 1, "admin": {
                "address": admin, "tokenFile": "admin.token", "localTargets": true,
            } },
        });
        self.folder.file(&file, &plane.to_string());
        let (url, token) = (format!("http://{admin}"), "admin.token");
        self.planes.push(Plane { admin, url, token, file, running: None });
    }

    /// Both run, and the cloud has reached the data plane.
    pub(super) fn start(name: &str) -> Self {
        let mut site = Self::new(name);
        site.start_data_plane();
        site.start_cloud();
        site.wait_for_status(|plane| plane["is_reached"] == true);
        site
    }

    pub(super) fn start_data_plane(&mut self) {
        self.start_plane(0);
    }

    pub(super) fn start_plane(&mut self, number: usize) {
        let plane = &mut self.planes[number];
        let keys = match number {
            0 => "keys".to_owned(),
            _ => format!("keys-{number}"),
        };
        let mut command = uturn(&["lb", "run", "-f", &plane.file]);
        if self.keeps_certificates {
            command.args(["--certificates", &keys]);
        }
        command.current_dir(&self.folder.0);
        plane.running = Some(Running::start(command));
    }

    /// Kills it, and waits until it is gone.
    pub(super) fn kill_data_plane(&mut self) {
        self.kill_plane(0);
    }

    /// Kills it, and waits until it is gone.
    pub(super) fn kill_plane(&mut self, number: usize) {
        drop(self.planes[number].running.take());
    }

    /// What a data plane serves, as JSON.
    pub(super) fn config(&self, number: usize) -> String {
        let (status, text) = self.page(self.planes[number].admin, "GET", "/config", "");
        assert_eq!(status, 200, "{text}");
        text
    }

    pub(super) fn start_cloud(&mut self) {
        let (api, status) = (self.api.to_string(), self.status.to_string());
        let planes: Vec<String> =
            self.planes.iter().map(|plane| format!("{}={}", plane.url, plane.token)).collect();
        let mut args = vec!["cloud", "serve", "--state", "state", "--credentials", "credentials"];
        args.extend(["--inventory", "inventory.json", "--listen", &api, "--admin", &status]);
        args.push("--allow-local-targets");
        args.extend(&self.options);
        if self.drives {
            planes.iter().for_each(|plane| args.extend(["--data-plane", plane]));
            args.extend(["--snat-range", "127.0.0.1/32"]);
        }
        let mut command = uturn(&args);
        command.envs(self.authorities.map(|file| ("SSL_CERT_FILE", file)));
        command.current_dir(&self.folder.0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let errors = Arc::new(Mutex::new(Vec::new()));
        let (kept, lines) = (Arc::clone(&errors), BufReader::new(child.stderr.take().unwrap()));
        thread::spawn(move || {
            lines.lines().map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line));
        });
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = output.find(|line| line.as_ref().unwrap().starts_with("serving the CLB API"));
        assert!(line.is_some(), "{:?}", errors.lock().unwrap());
        self.cloud = Some(Process { child, errors });
    }

    /// Kills it, and waits until it is gone.
    pub(super) fn kill_cloud(&mut self) {
        drop(self.cloud.take());
    }

    /// Waits until the cloud has printed this on standard error.
    pub(super) fn wait_for_error(&self, part: &str) {
        let errors = &self.cloud.as_ref().unwrap().errors;
        while !errors.lock().unwrap().iter().any(|line| line.contains(part)) {
            thread::yield_now();
        }
    }

    /// A port that nothing else has.
    pub(super) fn port(&self) -> u16 {
        free_address().port()
    }

    /// The files of certificates that the data plane keeps.
    pub(super) fn certificates(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.0.join("keys")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Has the data plane serve these documents beside its own.
    pub(super) fn put_config(&self, more: &str) {
        let own = fs::read_to_string(self.folder.0.join(&self.planes[0].file)).unwrap();
        let body = format!("{own}\n{more}");
        let (status, answer) = self.page(self.planes[0].admin, "PUT", "/config", &body);
        assert_eq!(status, 200, "{answer}");
    }

    /// What the cloud says of its data planes.
    pub(super) fn status(&self) -> Value {
        let (status, text) = self.page(self.status, "GET", "/status", "");
        assert_eq!(status, 200);
        serde_json::from_str(&text).unwrap()
    }

    /// Waits until this is true of the data plane.
    pub(super) fn wait_for_status(&self, is_so: impl Fn(&Value) -> bool) {
        while !is_so(&self.status()["data_planes"][0]) {
            thread::yield_now();
        }
    }

    /// Waits until a data plane serves the latest change.
    pub(super) fn wait_until_driven(&self, number: usize) {
        loop {
            let status = self.status();
            let plane = &status["data_planes"][number];
            if plane["is_reached"] == true && plane["change"] == status["change"] {
                return;
            }
            thread::yield_now();
        }
    }

    /// `/readyz`.
    pub(super) fn readiness(&self) -> (u16, String) {
        assert_eq!(self.page(self.status, "GET", "/healthz", ""), (200, "ok\n".to_owned()));
        self.page(self.status, "GET", "/readyz", "")
    }

    /// `/metrics` of the cloud.
    pub(super) fn metrics(&self) -> String {
        let (status, text) = self.page(self.status, "GET", "/metrics", "");
        assert_eq!(status, 200);
        text
    }

    pub(super) fn page(
        &self,
        from: SocketAddr,
        method: &str,
        path: &str,
        body: &str,
    ) -> (u16, String) {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
             Authorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n\r\n"
        );
        let answer = try_exchange(from, &format!("{head}{body}")).unwrap();
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), text.to_owned())
    }

    /// A public load balancer, and its address.
    pub(super) fn load_balancer(&self) -> (String, IpAddr) {
        let order = json!({ "LoadBalancerType": "OPEN" });
        let made = self.ok::<clb::CreateLoadBalancerRequest>(order);
        let id = made.load_balancer_ids.unwrap().remove(0);
        let query = json!({ "LoadBalancerIds": [id] });
        let described = self.ok::<clb::DescribeLoadBalancersRequest>(query);
        let vips = described.load_balancer_set.unwrap().remove(0).load_balancer_vips.unwrap();
        (id, vips[0].parse().unwrap())
    }

    /// The answer to a request that succeeds. Its task, if it leaves one, is done.
    pub(super) fn ok<A: Action>(&self, parameters: Value) -> A::Response {
        let shown = parameters.to_string();
        self.call::<A>(parameters).unwrap_or_else(|error| panic!("{} {shown}: {error}", A::NAME))
    }

    /// The answer to a request whose task is done.
    pub(super) fn call<A: Action>(&self, parameters: Value) -> Result<A::Response, CallError> {
        let request: A = serde_json::from_value(parameters).unwrap();
        let client = self.client();
        // What belongs to no region leaves no task.
        let has_task = !A::NAME.starts_with("Describe") && A::NAME != "UploadCertificate";
        let answer = if has_task {
            block_on(client.call_and_wait(&request, LONG))
        } else {
            block_on(client.call(&request))
        };
        answer.map(|answer| answer.response)
    }

    /// The id of a request that is accepted; its task may still run.
    pub(super) fn request_id<A: Action>(&self, parameters: Value) -> String {
        let request: A = serde_json::from_value(parameters).unwrap();
        let answer: Answer<A::Response> = block_on(self.client().call(&request)).unwrap();
        answer.request_id
    }

    /// The status of a task, and what it says.
    pub(super) fn task(&self, id: &str) -> (i64, Option<String>) {
        let task = self.ok::<clb::DescribeTaskStatusRequest>(json!({ "TaskId": id }));
        (task.status.unwrap(), task.message)
    }

    /// Waits until a task is done.
    pub(super) fn wait_for_task(&self, id: &str) {
        loop {
            match self.task(id) {
                (2, _) => thread::yield_now(),
                ended => return assert_eq!(ended, (0, None)),
            }
        }
    }

    /// Where the API is.
    pub(super) fn api(&self) -> SocketAddr {
        self.api
    }

    fn client(&self) -> Client {
        Client::new(ClientSettings {
            endpoint: format!("http://{}", self.api).parse().unwrap(),
            secret_id: "id1".to_owned(),
            secret_key: SecretKey::from("key1".to_owned()),
            region: "ap-test".to_owned(),
            retries: Retries { most: 0, ..Retries::default() },
            rate: None,
        })
        .unwrap()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}
