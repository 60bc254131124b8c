//! Changes that many people make, as data: a page of `presets/` has the flags of one and what to look at
//! besides.
//!
//! A page begins with its name and title, has flags as code, a line each, and two lists. A flag with one of
//! the words SERVICE, INGRESS and CONFIG stands for one flag for each such object, and `for` after it says
//! for which (`template`); `[*]` stands for each item of the list.

mod page;
mod template;

use uturn_model::{Cluster, ObjectRef};

pub use page::Check;
use template::Template;

/// A change that many people make.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Its name on the command line: `ipvs-to-nftables`.
    pub name: &'static str,
    /// What it does, in a few words.
    pub title: &'static str,
    /// Whether it needs new objects from the user (`-p`).
    pub needs_objects: bool,
    /// What to look at besides.
    pub checks: Vec<Check>,
    /// What is not modelled of it.
    pub not_modelled: Vec<&'static str>,
    /// The page.
    pub page: &'static str,
    templates: Vec<Template>,
}

/// A flag of `uturn whatif` with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag without dashes: `set`.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

/// The pages.
const PAGES: [&str; 10] = [
    include_str!("../presets/ipvs-to-nftables.md"),
    include_str!("../presets/iptables-to-nftables.md"),
    include_str!("../presets/kube-proxy-1.36.md"),
    include_str!("../presets/kube-proxy-to-cilium.md"),
    include_str!("../presets/ingress-nginx-to-gateway.md"),
    include_str!("../presets/policy-cluster-to-local.md"),
    include_str!("../presets/policy-local-to-cluster.md"),
    include_str!("../presets/ipmode-vip-to-proxy.md"),
    include_str!("../presets/keepalive-0-to-1.md"),
    include_str!("../presets/global-router-to-vpc-cni.md"),
];

/// Returns all presets.
pub fn all() -> impl ExactSizeIterator<Item = Preset> {
    PAGES.iter().map(|page| page::preset(page).expect("a test reads each page"))
}

/// Returns the preset with this name.
pub fn find(name: &str) -> Option<Preset> {
    all().find(|preset| preset.name == name)
}

impl Preset {
    /// Returns whether it is about some of the cluster's objects, so that `--only` can name some.
    pub fn is_of_objects(&self) -> bool {
        self.templates.iter().any(Template::is_of_objects)
    }

    /// Returns the flags for a cluster. `only` are the objects that are meant; all if it is empty.
    pub fn flags(&self, cluster: &Cluster, only: &[ObjectRef]) -> Vec<Flag> {
        self.templates.iter().flat_map(|template| template.flags(cluster, only)).collect()
    }

    /// Returns the objects among `only` to which it does not apply.
    pub fn not_meant<'o>(&self, cluster: &Cluster, only: &'o [ObjectRef]) -> Vec<&'o ObjectRef> {
        let meant = |object: &&ObjectRef| {
            let only = [(*object).clone()];
            self.templates
                .iter()
                .any(|own| own.is_of_objects() && !own.flags(cluster, &only).is_empty())
        };
        only.iter().filter(|object| !meant(object)).collect()
    }
}

#[cfg(test)]
mod tests {
    use uturn_snapshot::{Source, read};

    use super::*;

    fn cluster(text: &str) -> Cluster {
        read(vec![Source { name: "cluster.yaml".into(), text: text.into() }]).unwrap().cluster
    }

    fn flags(preset: &str, cluster: &Cluster, only: &[ObjectRef]) -> Vec<String> {
        let flags = find(preset).unwrap().flags(cluster, only);
        flags.iter().map(|flag| format!("--{} {}", flag.name, flag.value)).collect()
    }

    const CLUSTER: &str = "
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec: {type: LoadBalancer, clusterIP: 172.16.0.1, selector: {app: a}, ports: [{port: 80, nodePort: 30080}]}
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}, {ip: 10.0.0.101}]}}
---
apiVersion: v1
kind: Service
metadata: {name: back, namespace: shop}
spec: {type: NodePort, externalTrafficPolicy: Local, clusterIP: 172.16.0.2, selector: {app: a}, ports: [{port: 80, nodePort: 30081}]}
---
apiVersion: v1
kind: Service
metadata: {name: inside, namespace: shop}
spec: {type: ClusterIP, clusterIP: 172.16.0.3, selector: {app: a}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: front, port: {number: 80}}}}]}}]}
";

    #[test]
    fn every_page_is_a_preset_with_checks() {
        let mut names = Vec::new();
        for page in PAGES {
            let preset = page::preset(page).unwrap_or_else(|| panic!("no preset: {page}"));
            assert!(preset.checks.len() >= 4, "{}", preset.name);
            assert!(!preset.not_modelled.is_empty(), "{}", preset.name);
            assert!(preset.needs_objects == preset.templates.is_empty(), "{}", preset.name);
            assert!(page.lines().all(|line| line.len() < 1000), "{}", preset.name);
            names.push(preset.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PAGES.len());
    }

    #[test]
    fn a_preset_about_services_changes_those_that_it_is_for() {
        let cluster = cluster(CLUSTER);
        assert_eq!(
            flags("policy-cluster-to-local", &cluster, &[]),
            ["--set svc/shop/front:spec.externalTrafficPolicy=Local"]
        );
        assert_eq!(
            flags("policy-local-to-cluster", &cluster, &[]),
            ["--set svc/shop/back:spec.externalTrafficPolicy=Cluster"]
        );
        assert_eq!(
            flags("ipmode-vip-to-proxy", &cluster, &[]),
            [
                "--set svc/shop/front:status.loadBalancer.ingress[0].ipMode=Proxy",
                "--set svc/shop/front:status.loadBalancer.ingress[1].ipMode=Proxy",
            ]
        );
        let inside = cluster.services[&"shop/inside".parse().unwrap()].object();
        let only = std::slice::from_ref(&inside);
        assert!(flags("policy-cluster-to-local", &cluster, only).is_empty());
        let preset = find("policy-cluster-to-local").unwrap();
        assert_eq!(preset.not_meant(&cluster, only), [&inside]);
        assert!(preset.is_of_objects());
    }

    #[test]
    fn a_preset_about_the_data_plane_has_its_flags() {
        let cluster = cluster(CLUSTER);
        assert_eq!(flags("ipvs-to-nftables", &cluster, &[]), ["--kube-proxy-mode nftables"]);
        assert!(!find("ipvs-to-nftables").unwrap().is_of_objects());
        assert!(find("ingress-nginx-to-gateway").unwrap().needs_objects);
        let direct = flags("tke-global-router-to-vpc-cni", &cluster, &[]);
        assert_eq!(direct.len(), 3, "{direct:?}");
        assert!(direct[1].starts_with("--annotate svc/shop/front:"), "{direct:?}");
        assert!(direct[2].starts_with("--annotate ingress/shop/web:"), "{direct:?}");
    }
}
