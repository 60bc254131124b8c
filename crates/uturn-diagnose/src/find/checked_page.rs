//! Health checks that ask targets for a page which is not there: a controller in the cluster has no
//! rule for calls without a host, and answers them with 404.

use std::net::IpAddr;

use uturn_lb::cloud::{self, Maker, PageCheck};
use uturn_model::service::ServicePort;
use uturn_model::{Client, Destination, Flow, Outcome, Service};
use uturn_path::{Engine, WalkError};

use super::MOST_PAIRS;
use super::object_faults::about;
use crate::Code;
use crate::finding::Finding;

pub(crate) fn find(engine: &Engine<'_>) -> Result<Vec<Finding>, WalkError> {
    let cluster = engine.cluster();
    if cluster.nodes.len() * cluster.services.len() > MOST_PAIRS {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for service in cluster.services.values() {
        let Maker::Product(product, _) = cloud::maker_of(service, &cluster.provider) else {
            continue;
        };
        let Some(address) = service.load_balancer.iter().find_map(|entry| entry.ip) else {
            continue;
        };
        for port in &service.ports {
            let Some(check) = product.page_check(service, port) else { continue };
            if let Some(code) = answer(engine, address, port, &check)? {
                all.push(finding(service, port, &check, code));
                break;
            }
        }
    }
    Ok(all)
}

/// The status other than 200 that a check of a port gets. Returns `None` if that is not certain.
fn answer(
    engine: &Engine<'_>,
    address: IpAddr,
    port: &ServicePort,
    check: &PageCheck,
) -> Result<Option<u16>, WalkError> {
    let flow = Flow {
        from: Client::Outside(None),
        to: Destination::Url {
            tls: port.app_protocol.as_deref() == Some("https"),
            host: address.to_string().into(),
            port: port.port,
            path: check.path.into(),
        },
        protocol: port.protocol,
    };
    let verdicts = match engine.verdicts(&flow) {
        Ok(verdicts) => verdicts,
        Err(WalkError::Later(_)) => return Ok(None),
        Err(why) => return Err(why),
    };
    let mut ends = verdicts.iter().flat_map(|verdict| &verdict.outcomes);
    let Some((Outcome::Status { code, .. }, _)) = ends.next() else { return Ok(None) };
    let is_same =
        |end: &(Outcome, _)| matches!(end.0, Outcome::Status { code: other, .. } if other == *code);
    Ok((*code != 200 && ends.all(is_same)).then_some(*code))
}

fn finding(service: &Service, port: &ServicePort, check: &PageCheck, code: u16) -> Finding {
    let (key, path) = check.cure;
    let what = format!(
        "health checks of port {} ask for {} and get {code} from every node: {}; {key}: {path:?} names one \
         that is there",
        port.port, check.path, check.because
    );
    let mut finding = about(Code::CheckCannotPass, service.object(), &service.origin, what);
    finding.targets = vec![format!("health checks of :{}", port.port)];
    finding.conditions.push(check.condition.into());
    finding
}
