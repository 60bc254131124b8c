//! A target for Corefiles: a valid one answers every question, an invalid one is refused with a
//! place.

use std::sync::LazyLock;

use uturn_dns::client::{Library, ResolvConf, resolve};
use uturn_dns::{Answer, Corefile, NoUpstream, QueryContext, Question, RecordType};
use uturn_model::{Cluster, Origin, dns};
use uturn_snapshot::{Source, read};

use crate::text;

/// A cluster with some objects that names can resolve to.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let text = r#"
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 172.16.0.80, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: other, namespace: shop}
spec: {type: ExternalName, externalName: web.shop.svc.cluster.local}
"#;
    let source = Source { name: "cluster".into(), text: text.into() };
    read(vec![source]).expect("the cluster above is well formed").cluster
});

const HOSTS: [&str; 6] = [
    "web",
    "web.shop",
    "other.shop.svc.cluster.local.",
    "shop.example.com",
    "1-2-3-4.shop.pod.cluster.local.",
    "localhost",
];

/// Reads a Corefile. Every question has an answer, the same when it is asked twice, and every step
/// names a place in the text.
pub fn corefile(data: &[u8]) -> bool {
    let text = text(data);
    let lines = text.split('\n').count() as u32;
    let main = || dns::Corefile {
        text: (&*text).into(),
        origin: Origin::line_of("input", 1),
        beside: Vec::new(),
        release: None,
    };
    let read = match Corefile::read("coredns", &main()) {
        Ok(read) => read,
        Err(faults) => {
            assert!(!faults.is_empty(), "a refusal says why");
            for fault in faults {
                assert!(!fault.message.is_empty(), "a fault says what");
                assert!((1..=lines).contains(&fault.origin.line()), "of {lines} lines: {fault}");
            }
            return false;
        }
    };
    let world = QueryContext {
        cluster: &CLUSTER,
        client: Some([10, 1, 1, 10].into()),
        upstream_servers: &NoUpstream,
    };
    let conf = ResolvConf {
        servers: Vec::new(),
        of_node: false,
        search: vec!["shop.svc.cluster.local".into(), "svc.cluster.local".into()],
        ndots: 5,
    };
    let mut asked = Vec::new();
    for host in HOSTS {
        for library in [Library::Glibc, Library::Musl] {
            resolve(library, &conf, host, &mut |question| {
                let (answer, steps) = read.ask(&world, None, 53, question.clone());
                for step in steps {
                    let source = step.by.origin();
                    assert!(source.line() <= lines || source.path() != Some("input"));
                }
                asked.push((question, answer.clone()));
                answer
            });
        }
    }
    let again = Corefile::read("coredns", &main()).expect("it was taken once");
    for (question, answer) in asked {
        let silent = Question::new(&question.name, RecordType::Other("HINFO".into()));
        again.ask(&world, None, 53, silent);
        let same: Answer = again.ask(&world, None, 53, question).0;
        assert_eq!(same, answer);
    }
    true
}
