//! Whatever makes pods from a template is a workload, and Services select its pods by the labels
//! that they will have.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

use uturn_model::{Cluster, Pod, WorkloadKind};
use uturn_snapshot::{Source, read};

fn cluster(text: &str) -> Cluster {
    let source = Source { name: "a.yaml".into(), text: text.to_owned() };
    match read(vec![source]) {
        Ok(loaded) => loaded.cluster,
        Err(faults) => panic!("{faults:?}\n{text}"),
    }
}

/// The endpoints of a Service, by the names of their pods.
fn endpoints(cluster: &Cluster, service: &str) -> Vec<String> {
    let slices = cluster.endpoints.iter().filter(|(name, _)| name.name.as_str() == service);
    let ready = slices
        .flat_map(|(_, all)| all)
        .flat_map(|slice| &slice.endpoints)
        .filter(|endpoint| endpoint.ready);
    let mut names: Vec<String> =
        ready.map(|endpoint| endpoint.pod.as_ref().unwrap().name.to_string()).collect();
    names.sort();
    names
}

fn workload(version: &str, kind: &str, spec: &str) -> String {
    format!("---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: web}}\nspec: {{{spec}}}\n")
}

fn service(name: &str, selector: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n\
         spec: {{selector: {{{selector}}}, ports: [{{port: 80}}]}}\n"
    )
}

const TEMPLATE: &str =
    "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}";

#[test]
fn every_owner_of_a_pod_template_makes_pods() {
    for (version, kind, selector, known) in [
        (
            "v1",
            "ReplicationController",
            "selector: {app: web}",
            WorkloadKind::ReplicationController,
        ),
        ("v1", "ReplicationController", "minReadySeconds: 0", WorkloadKind::ReplicationController),
        ("extensions/v1beta1", "Deployment", "paused: false", WorkloadKind::Deployment),
        ("apps/v1beta1", "StatefulSet", "serviceName: web", WorkloadKind::StatefulSet),
        (
            "apps/v1beta2",
            "ReplicaSet",
            "selector: {matchLabels: {app: web}}",
            WorkloadKind::ReplicaSet,
        ),
        (
            "argoproj.io/v1alpha1",
            "Rollout",
            "selector: {matchLabels: {app: web}}",
            WorkloadKind::Rollout,
        ),
        (
            "apps.openshift.io/v1",
            "DeploymentConfig",
            "selector: {app: web}",
            WorkloadKind::DeploymentConfig,
        ),
        (
            "apps.kruise.io/v1alpha1",
            "CloneSet",
            "selector: {matchLabels: {app: web}}",
            WorkloadKind::CloneSet,
        ),
        ("apps.kruise.io/v1beta1", "StatefulSet", "serviceName: web", WorkloadKind::StatefulSet),
        ("example.com/v1", "Fleet", "selector: everything", WorkloadKind::Other),
    ] {
        let text = workload(version, kind, &format!("replicas: 2, {selector}, {TEMPLATE}"));
        for text in [text.clone(), json(&text)] {
            let cluster = cluster(&(text + &service("web", "app: web")));
            let (found, _) = cluster.workloads.keys().next().unwrap();
            assert_eq!(*found, known, "{version} {kind}");
            assert_eq!(endpoints(&cluster, "web").len(), 2, "{version} {kind}");
        }
    }
}

/// The same as JSON, of which only what is wanted is kept. (Flow mappings need only quotes.)
fn json(text: &str) -> String {
    let mut quoted = String::new();
    let body = text.trim_start_matches("---\n").trim_end().replace('\n', ",");
    let mut word = String::new();
    for letter in format!("{{{body}}}").chars() {
        if matches!(letter, '{' | '}' | '[' | ']' | ',' | ' ') || letter == ':' {
            if !word.is_empty() {
                let bare = word.parse::<u32>().is_ok() || matches!(&*word, "true" | "false");
                quoted += &if bare { word.clone() } else { format!("{word:?}") };
                word.clear();
            }
            quoted.push(letter);
        } else {
            word.push(letter);
        }
    }
    quoted + "\n"
}

#[test]
fn what_has_no_template_of_a_pod_is_no_workload() {
    for (version, kind, spec) in [
        ("argoproj.io/v1alpha1", "ApplicationSet", "template: {spec: {project: default}}"),
        ("cert-manager.io/v1", "Certificate", "template: {metadata: {labels: {a: b}}}"),
        ("example.com/v1", "Odd", "template: {spec: {containers: [{name: 7}]}}"),
        ("example.com/v1", "Odd", "template: {spec: {containers: []}}"),
    ] {
        let cluster = cluster(&workload(version, kind, spec));
        assert!(cluster.workloads.is_empty(), "{kind}");
        assert_eq!(&*cluster.skipped[0].kind, format!("{version}/{kind}"));
    }
}

#[test]
fn labels_that_controllers_add_are_on_the_pods() {
    let set = workload(
        "apps/v1",
        "StatefulSet",
        &format!("replicas: 3, ordinals: {{start: 5}}, {TEMPLATE}"),
    );
    let job = workload(
        "batch/v1",
        "Job",
        &format!(
            "parallelism: 2, completionMode: Indexed, {}",
            TEMPLATE.replace("app: web", "app: job")
        ),
    );
    let cluster = cluster(
        &(set
            + &job
            + &service("second", "statefulset.kubernetes.io/pod-name: web-6")
            + &service("third", "app: web, apps.kubernetes.io/pod-index: \"7\"")
            + &service("gone", "statefulset.kubernetes.io/pod-name: web-0")
            + &service("job", "job-name: web")
            + &service(
                "index",
                "batch.kubernetes.io/job-name: web, batch.kubernetes.io/job-completion-index: \"0\"",
            )),
    );
    assert_eq!(endpoints(&cluster, "second"), ["web-6"]);
    assert_eq!(endpoints(&cluster, "third"), ["web-7"]);
    assert!(endpoints(&cluster, "gone").is_empty());
    assert_eq!(endpoints(&cluster, "job").len(), 2);
    assert_eq!(endpoints(&cluster, "index").len(), 1);
}

#[test]
fn hashes_that_services_select_by_are_those_of_the_pods() {
    let rollout = workload("argoproj.io/v1alpha1", "Rollout", &format!("replicas: 4, {TEMPLATE}"));
    let cluster = cluster(
        &(rollout
            + &service("stable", "app: web, rollouts-pod-template-hash: aaa")
            + &service("canary", "app: web, rollouts-pod-template-hash: bbb")
            + &service("other", "app: other, pod-template-hash: ccc")),
    );
    assert_eq!(endpoints(&cluster, "stable").len(), 2);
    assert_eq!(endpoints(&cluster, "canary").len(), 2);
    assert!(endpoints(&cluster, "other").is_empty());
    let supposed = cluster
        .supposed
        .iter()
        .find(|fact| fact.subject.to_string().contains("no manifest has"))
        .unwrap();
    assert!(supposed.subject.to_string().contains("2 Services select by"), "{supposed}");
}

#[test]
fn a_rollout_may_have_its_template_from_a_deployment() {
    let deployment = workload("apps/v1", "Deployment", &format!("replicas: 0, {TEMPLATE}"));
    let rollout = workload(
        "argoproj.io/v1alpha1",
        "Rollout",
        "replicas: 3, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}",
    );
    for text in [format!("{deployment}{rollout}"), format!("{rollout}{deployment}")] {
        let cluster = cluster(&(text + &service("web", "app: web")));
        assert_eq!(endpoints(&cluster, "web").len(), 3);
        let owner = |pod: &Pod| pod.owner.as_ref().unwrap().to_string();
        assert_eq!(owner(cluster.pods.values().next().unwrap()), "Rollout default/web");
    }
}

#[test]
fn an_autoscaler_says_how_many_there_are_at_least() {
    for (replicas, pods) in [("", 3), ("replicas: 2, ", 2)] {
        let deployment = workload("apps/v1", "Deployment", &format!("{replicas}{TEMPLATE}"));
        let scaler = workload(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 3, maxReplicas: 9",
        );
        assert_eq!(cluster(&(deployment + &scaler)).pods.len(), pods);
    }
}

/// It makes pods of a workload that has none, unless it is paused at that.
#[test]
fn what_keda_scales_is_judged_at_work() {
    let target = "scaleTargetRef: {name: web}, triggers: []";
    for (replicas, least, notes, pods) in [
        ("replicas: 0, ", "", "", 1),
        ("replicas: 0, ", "minReplicaCount: 2, ", "", 2),
        ("replicas: 4, ", "minReplicaCount: 2, ", "", 4),
        ("", "minReplicaCount: 2, ", "", 2),
        ("replicas: 0, ", "", "autoscaling.keda.sh/paused-replicas: '0'", 0),
    ] {
        let deployment = workload("apps/v1", "Deployment", &format!("{replicas}{TEMPLATE}"));
        let scaler = workload("keda.sh/v1alpha1", "ScaledObject", &format!("{least}{target}"));
        let scaler =
            scaler.replace("name: web}\n", &format!("name: web, annotations: {{{notes}}}}}\n"));
        assert_eq!(cluster(&(deployment + &scaler)).pods.len(), pods, "{replicas}{least}{notes}");
    }
}

#[test]
fn pods_of_jobs_are_endpoints_only_where_no_others_are() {
    let web = workload("apps/v1", "Deployment", &format!("replicas: 2, {TEMPLATE}"));
    let cron = workload("batch/v1", "CronJob", &format!("jobTemplate: {{spec: {{{TEMPLATE}}}}}"))
        .replace("name: web", "name: backup");
    let both = cluster(&format!("{web}{cron}{}", service("web", "app: web")));
    assert_eq!(both.pods.len(), 3);
    assert_eq!(endpoints(&both, "web").len(), 2);
    assert!(both.supposed.iter().any(|fact| fact.subject.to_string().contains("pods of Jobs")));
    let alone = cluster(&format!("{cron}{}", service("web", "app: web")));
    assert_eq!(endpoints(&alone, "web").len(), 1);
}

#[test]
fn knative_puts_its_names_on_pods() {
    let text = workload("serving.knative.dev/v1", "Service", TEMPLATE)
        + &service("mine", "serving.knative.dev/service: web");
    let cluster = cluster(&text);
    assert_eq!(cluster.services.len(), 1, "Knative's is none of Kubernetes'");
    assert_eq!(endpoints(&cluster, "mine").len(), 1);
}

#[test]
fn pods_that_are_given_belong_to_the_workload_at_the_top() {
    let rollout = workload("argoproj.io/v1alpha1", "Rollout", &format!("replicas: 1, {TEMPLATE}"));
    let config =
        workload("apps.openshift.io/v1", "DeploymentConfig", &format!("replicas: 1, {TEMPLATE}"))
            .replace("name: web", "name: old");
    let pod = |name: &str, kind: &str, owner: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  labels: {{app: web}}\n  \
             ownerReferences: [{{kind: {kind}, name: {owner}}}]\nspec: {{nodeName: n1}}\n"
        )
    };
    let text = rollout
        + &config
        + &pod("web-5f-x", "ReplicaSet", "web-5f")
        + &pod("old-1-x", "ReplicationController", "old-1");
    let cluster = cluster(&text);
    let owners: Vec<String> =
        cluster.pods.values().map(|pod| pod.owner.as_ref().unwrap().to_string()).collect();
    assert_eq!(owners, ["DeploymentConfig default/old", "Rollout default/web"]);
}

#[test]
fn ingresses_of_the_versions_before() {
    for version in ["extensions/v1beta1", "networking.k8s.io/v1beta1"] {
        let text = format!(
            "apiVersion: {version}\nkind: Ingress\nmetadata: {{name: front}}\nspec:\n  \
             backend: {{serviceName: web, servicePort: http}}\n  rules:\n  - http:\n      \
             paths: [{{path: /a, backend: {{serviceName: web, servicePort: 80}}}}]\n"
        );
        let cluster = cluster(&text);
        let ingress = cluster.ingresses.values().next().unwrap();
        assert!(ingress.default_backend.is_some());
        assert_eq!(ingress.rules[0].paths.len(), 1);
    }
}
