//! Cures of Services whose selector has pods of more workloads than are meant: a label of its own for
//! the workload that declares the port.

use uturn_document::edit::{Change, Tree};
use uturn_model::{Labels, Pod, Selector, Service};

use super::super::template::Template;
use super::super::{Case, Proposal, endpoints, way};
use super::service_of;
use crate::Finding;
use crate::find::unlike_endpoints::unlike;

/// The label that tells parts of one application apart.
const COMPONENT: &str = "app.kubernetes.io/component";

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let service = service_of(case, fault);
    service.and_then(|service| of_service(case, service)).into_iter().collect()
}

fn of_service(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    let pods = case.cluster().selected(service);
    let apart = unlike(service, &pods)?;
    let mut declaring = apart.declaring.keys();
    let (owner, None) = (declaring.next()?, declaring.next()) else { return None };
    let meant: Vec<&Pod> =
        pods.iter().copied().filter(|pod| pod.owner.as_ref() == Some(owner)).collect();
    let others = || pods.iter().filter(|pod| pod.owner.as_ref() != Some(owner));
    // A label that only the meant pods have is enough.
    let own = meant.first()?.spec.labels.iter().find(|(key, value)| {
        !key.contains("template-hash")
            && meant.iter().all(|pod| pod.spec.labels.is(key, value))
            && !others().any(|pod| pod.spec.labels.is(key, value))
    });
    let (key, value) = own.unwrap_or((COMPONENT, &owner.name));
    let short = service.object().short();
    let mut selector = service.selector.clone()?;
    let labels = selector.labels.iter().filter(|(known, _)| *known != key);
    let labels: Labels = labels.chain([(key, value)]).collect();
    selector = Selector { labels, ..selector };
    let after = Service { selector: Some(selector), ..service.clone() };
    let title = match own {
        Some(_) => format!("select {key}={value} too, for {short}"),
        None => {
            format!("label {key}: {value} for the pods of {owner}, and in the selector of {short}")
        }
    };
    let mut made = Proposal::new("selector-apart", 11, title).edit(
        service.object(),
        way!["spec", "selector", key],
        Change::Set(Tree::text(value)),
    );
    if own.is_none() {
        let template = Template::of_object(owner.clone())?;
        let place = way!["metadata", "labels", key];
        made = template.edit(case, made, &place, &Change::Set(Tree::text(value)))?;
        made = made.costs(template.cost());
    }
    made = made.costs(format!("{short} leads to pods of {owner} only"));
    Some(endpoints::follow(case, made, &after, &meant))
}
