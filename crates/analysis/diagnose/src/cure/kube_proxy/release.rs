//! Cures by a release of kube-proxy: one that lets in external IPs which its own filter rejects, and one
//! that limits node ports under policy Local to the node's endpoints.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::shell::Command;
use uturn_model::{Mechanism, Node, ObjectRef, ProxyMode, Version, image};

use super::{daemon_set, files};
use crate::cure::facts::facts;
use crate::cure::template::Template;
use crate::cure::{Case, Proposal, way};
use crate::find::api_server::server_pods;

/// The first releases that let in packets to external IPs under policy Local.
const MENDED: [Version; 2] = [Version::new(1, 28, 6), Version::new(1, 29, 1)];

/// The releases in whose IPVS mode a node port under policy Local has the endpoints of all nodes, whose
/// answers do not come back by the node, and the first release after them.
const ALL_ENDPOINTS: [Version; 2] = [Version::new(1, 11, 0), Version::new(1, 11, 4)];

/// Returns the first release that mends what stops a call.
fn mended(case: &Case<'_>, old: Version) -> Option<Version> {
    if case.has(Mechanism::ProxyFilter) {
        return MENDED.into_iter().find(|mended| *mended > old);
    }
    let [first, after] = ALL_ENDPOINTS;
    let is_ipvs = case.cluster().proxy.mode.value == ProxyMode::Ipvs;
    let is_it = is_ipvs && case.has(Mechanism::AsymmetricReturn) && (first..after).contains(&old);
    is_it.then_some(after)
}

/// Returns an API server whose image tells its release.
fn api_server(case: &Case<'_>) -> Option<(ObjectRef, Version)> {
    let mut pods = server_pods(case.cluster());
    pods.find_map(|pod| {
        let mut own = pod.spec.containers.iter();
        let own =
            own.find(|own| own.program() == "kube-apiserver" || &*own.name == "kube-apiserver")?;
        Some((pod.object(), image::tag(&own.image)?.parse().ok()?))
    })
}

/// The maximum number of nodes whose state is edited.
const MAX: usize = 50;

pub(super) fn propose(case: &Case<'_>) -> Option<Proposal> {
    let cluster = case.cluster();
    let old = cluster.proxy.version.value;
    let new = mended(case, old)?;
    let title = format!("kube-proxy {new} instead of {old}");
    let older = api_server(case).filter(|(_, release)| *release < new);
    let why = match &older {
        Some((pod, release)) => format!(
            "kube-proxy may not be newer than it, and {pod} is {release}: it has to be upgraded first"
        ),
        None => "kube-proxy may not be newer than it: kubectl version tells its release".to_owned(),
    };
    let mut made = Proposal::new("kube-proxy-image", 85, title)
        .ask(format!("the API server is {new} or newer"), why)
        .costs("kube-proxy restarts on every node, one after the other; open connections stay")
        .costs("all that changed between the two releases changes too")
        .trial();
    let edited = daemon_set(case).and_then(|daemon| {
        let own = daemon.template.containers.iter().find(|own| &*own.name == files::NAME)?;
        let template = Template::of_object(daemon.object())?;
        case.manifests.has(&template.object).then_some(())?;
        let named = At::Where("name".to_owned(), files::NAME.to_owned());
        let path = way!["spec", "containers", named, "image"];
        let value = Tree::text(format!("{}:{new}", image::repository(&own.image)));
        template.edit(case, made.clone(), &path, &Change::Set(value))
    });
    made = edited.unwrap_or_else(|| {
        made.types(
            Command::new("kubectl -n kube-system set image ds/kube-proxy")
                .words("kube-proxy=REPOSITORY/kube-proxy:")
                .joined(new),
        )
    });
    let to = || Change::Set(Tree::text(new.to_string()));
    let stated = way!["kubeProxy", "version"];
    if case.manifests.text_at(&facts(), &stated).is_some() {
        made = made.follow(facts(), stated, to());
    }
    let nodes = cluster.nodes.values().map(Node::object);
    for node in nodes.filter(|node| case.manifests.has(node)).take(MAX) {
        made = made.follow(node, way!["status", "nodeInfo", "kubeProxyVersion"], to());
    }
    Some(made)
}
