//! `uturn operator run --dry-run` against `uturn cloud serve`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use insta::assert_snapshot;
use serde_json::Value;
use uturn_cloud_api::SecretKey;
use uturn_cloud_api::clb::{
    DeleteListenerRequest, DescribeListenersRequest, DescribeLoadBalancersRequest,
    ModifyListenerRequest,
};
use uturn_cloud_api::client::{Client, ClientSettings, Retries};
use uturn_operator::api::Api;
use uturn_operator::environment::Environment;
use uturn_operator::ledger::Ledger;
use uturn_operator::{run as perform, wanted};

use uturn_testing::commands::{Folder, root, run, transcript, uturn};

const REGION: &str = "ap-guangzhou";
const CLUSTER: &str = "cls-aaaaaaaa";

/// The API of a cloud, which ends with its standard input.
struct Cloud {
    child: Child,
    endpoint: String,
    folder: Folder,
}

impl Cloud {
    fn start(test: &str) -> Self {
        let folder = Folder::new(test);
        folder.secret("credentials", "id key\n");
        let (state, credentials) = (folder.0.join("state"), folder.0.join("credentials"));
        let mut child =
            uturn(&["cloud", "serve", "--listen", "127.0.0.1:0", "--until-stdin-closes"])
                .arg("--state")
                .arg(state)
                .arg("--credentials")
                .arg(credentials)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let endpoint = line.trim().rsplit(' ').next().unwrap().to_owned();
        Self { child, endpoint, folder }
    }

    fn dry_run(&self, manifests: &Path, more: &[&str]) -> String {
        let output = uturn(&["operator", "run", "--dry-run", "--cluster-id", CLUSTER])
            .args(["--endpoint", &self.endpoint, "--network", "vpc-aaaaaaaa"])
            .arg("--credentials")
            .arg(self.folder.0.join("credentials"))
            .arg("-f")
            .arg(manifests)
            .args(more)
            .output()
            .unwrap();
        transcript(&output)
    }

    fn client(&self) -> Client {
        let settings = ClientSettings {
            endpoint: self.endpoint.parse().unwrap(),
            secret_id: "id".to_owned(),
            secret_key: SecretKey::from("key".to_owned()),
            region: REGION.to_owned(),
            retries: Retries::default(),
            rate: None,
        };
        Client::new(settings).unwrap()
    }

    /// Makes the load balancers as the manifests want them.
    async fn apply(&self, client: &Client, manifests: &Path) {
        let loaded = uturn_snapshot::load(&[manifests.to_owned()]).unwrap();
        let environment = Environment {
            cluster: CLUSTER.to_owned(),
            network: "vpc-aaaaaaaa".to_owned(),
            ..Environment::default()
        };
        let wanted = wanted::wanted(&loaded.cluster, &environment).unwrap();
        let (plan, _) = perform::reconcile(client, &wanted, &environment, &mut Ledger::default())
            .await
            .unwrap();
        assert!(plan.is_empty(), "{plan}");
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn shop() -> std::path::PathBuf {
    root().join("examples/shop")
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn the_shop_has_to_be_created() {
    let cloud = Cloud::start("operator-created");
    let printed = cloud.dry_run(&shop(), &[]);
    assert_snapshot!("created", printed);
    assert_snapshot!("created_wide", cloud.dry_run(&shop(), &["-o", "wide"]));
    assert_eq!(cloud.dry_run(&shop(), &[]), printed, "a dry run creates nothing");
}

#[test]
fn what_differs_is_shown_and_what_is_the_users_is_told() {
    let cloud = Cloud::start("operator-differs");
    block_on(async {
        let client = cloud.client();
        cloud.apply(&client, &shop()).await;
        assert_eq!(cloud.dry_run(&shop(), &[]), "exit 0\n--- stdout\nNo API call is needed.\n");
        let all = client.call(&DescribeLoadBalancersRequest::default()).await.unwrap().response;
        let balancers = all.load_balancer_set.unwrap();
        let id = |name: &str| {
            let found = balancers.iter().find(|balancer| {
                balancer.load_balancer_name.as_deref() == Some(&format!("{CLUSTER}_shop_{name}"))
            });
            found.and_then(|balancer| balancer.load_balancer_id.clone()).unwrap()
        };
        let listener = async |lb: &str| {
            let request = DescribeListenersRequest {
                load_balancer_id: lb.to_owned(),
                ..DescribeListenersRequest::default()
            };
            let found = client.call(&request).await.unwrap().response.listeners.unwrap();
            found[0].listener_id.clone().unwrap()
        };
        let (api, front) = (id("api"), id("front"));
        let request = DeleteListenerRequest {
            listener_id: listener(&api).await,
            load_balancer_id: api.clone(),
        };
        Api::call(&client, &request).await.unwrap();
        let renamed = listener(&front).await;
        let request = ModifyListenerRequest {
            load_balancer_id: front.clone(),
            listener_id: renamed.clone(),
            listener_name: Some("mine".to_owned()),
            ..ModifyListenerRequest::default()
        };
        Api::call(&client, &request).await.unwrap();
        let printed = cloud.dry_run(&shop(), &[]);
        let printed = printed.replace(&api, "lb-api").replace(&front, "lb-front");
        assert_snapshot!("differs", printed.replace(&renamed, "lbl-renamed"));
    });
}

/// Certificates come from Secrets among the manifests; what cannot be made is told with its code.
#[test]
fn as_json() {
    let cloud = Cloud::start("operator-json");
    cloud.folder.file(
        "front.yaml",
        "apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: NodePort, clusterIP: 172.16.0.4, ports: [{port: 80, nodePort: 30080}]}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24, providerID: 'qcloud:///100003/ins-aaaaaaaa'}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: v1
kind: Secret
metadata: {name: cert, namespace: shop}
data: {qcloud_cert_id: QWJjZDEyMzQ=}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop, uid: 3f0c}
spec:
  tls: [{secretName: cert}]
  rules:
  - {host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: bare, namespace: shop}
spec:
  tls: [{secretName: lost}]
  rules:
  - {host: b.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: gone, port: {number: 80}}}}]}}
",
    );
    let printed = cloud.dry_run(&cloud.folder.0.join("front.yaml"), &["-o", "json"]);
    assert_snapshot!("json", printed);
    let (_, json) = printed.split_once("stdout\n").unwrap();
    let value: Value = serde_json::from_str(json).unwrap();
    let certificate = &value["loadBalancers"][1]["calls"][1]["parameters"]["Certificate"];
    assert_eq!(certificate["CertId"], "Abcd1234");
}

#[test]
fn what_is_wrong_is_said() {
    let dry = ["operator", "run", "--dry-run", "--cluster-id", CLUSTER, "-f", "examples/shop"];
    let without = uturn(&dry)
        .env_remove("TENCENTCLOUD_SECRET_ID")
        .env_remove("TENCENTCLOUD_SECRET_KEY")
        .output()
        .unwrap();
    assert_snapshot!("no_credential", transcript(&without));
    let folder = Folder::new("operator-wrong");
    folder.secret("credentials", "id key\nother key\n");
    let file = folder.0.join("credentials");
    let file = file.to_str().unwrap();
    let printed = run(&[&dry[..], &["--credentials", file]].concat());
    assert!(printed.starts_with("exit 2\n"), "{printed}");
    assert!(printed.contains("expected a single line SECRET_ID SECRET_KEY"), "{printed}");
    folder.secret("credentials", "id key\n");
    let printed = run(&[&dry[..], &["--credentials", file, "--endpoint", "nowhere"]].concat());
    assert!(printed.starts_with("exit 2\n") && printed.contains("--endpoint"), "{printed}");
    // Nothing listens there, since the cloud that did has ended.
    let gone = Cloud::start("operator-gone").endpoint.clone();
    let printed = run(&[&dry[..], &["--credentials", file, "--endpoint", &gone]].concat());
    assert!(printed.starts_with("exit 3\n") && printed.contains("no connection"), "{printed}");
    // Another key than the server's.
    let cloud = Cloud::start("operator-foreign");
    folder.secret("credentials", "id wrong\n");
    let printed =
        run(&[&dry[..], &["--credentials", file, "--endpoint", &cloud.endpoint]].concat());
    assert!(printed.starts_with("exit 3\n"), "{printed}");
    assert!(printed.contains("AuthFailure.SignatureFailure"), "{printed}");
}

#[test]
fn secrets_may_be_read_in_single_namespaces() {
    let all = run(&["operator", "manifests"]);
    let some = run(&["operator", "manifests", "--secrets-of", "prod,shop"]);
    let rules = |text: &str| text.matches("resources: [secrets]").count();
    assert_eq!((rules(&all), rules(&some)), (1, 2));
    for namespace in ["prod", "shop"] {
        let role = format!("{{name: uturn-operator-secrets, namespace: {namespace}}}");
        assert_eq!((all.matches(&role).count(), some.matches(&role).count()), (0, 2));
    }
    let wrong = run(&["operator", "manifests", "--secrets-of", "Prod"]);
    assert!(wrong.starts_with("exit 2\n"), "{wrong}");
}

#[test]
fn who_may_share_a_load_balancer_is_read_strictly() {
    for text in ["lb-aaaaaaaa", "lb-aaaaaaaa=", "lb-aaaaaaaa=Prod", "=prod"] {
        let args = ["operator", "run", "--cluster-id", CLUSTER, "--share-load-balancer", text];
        let printed = run(&args);
        assert!(printed.starts_with("exit 2\n"), "{printed}");
        assert!(printed.contains("expected LB=NAMESPACE"), "{printed}");
    }
}

/// Whoever can change the credential decides whose load balancers are changed.
#[test]
#[cfg(unix)]
fn a_credential_that_others_may_use_is_refused_or_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::new("operator-modes");
    folder.file("credentials", "id key\n");
    let file = folder.0.join("credentials");
    let dry = ["operator", "run", "--dry-run", "--cluster-id", CLUSTER, "-f", "examples/shop"];
    let said = |mode: u32| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        // Nothing listens there: the credential is looked at first.
        let more = ["--credentials", file.to_str().unwrap(), "--endpoint", "http://127.0.0.1:1"];
        run(&[&dry[..], &more].concat())
    };
    for mode in [0o600, 0o400, 0o640] {
        let said = said(mode);
        assert!(said.starts_with("exit 3\n") && !said.contains("others may"), "{mode:o} {said}");
    }
    let read = said(0o644);
    assert!(read.starts_with("exit 3\n"), "{read}");
    assert!(read.contains("whose mode is 644: chmod o-r it"), "{read}");
    for mode in [0o666, 0o602] {
        let said = said(mode);
        assert!(said.starts_with("exit 2\n") && said.contains("others may write "), "{said}");
    }
}
