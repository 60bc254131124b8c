//! Every exchange that the API is documented with is one that the schema has: requests pass the
//! check that each request passes here, and answers have the members and types of the schema. What
//! departs from it is listed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod form;

use serde_json::Value;
use uturn_cloud_api::schema::{MemberKind, Service, query, services};

use form::Form;

/// How many exchanges are documented.
const EXCHANGES: usize = 210;

/// What the documented requests lack: both are of GETs.
const FAULTY_REQUESTS: &[(&str, &str)] = &[
    ("AssociateCustomizedConfig", "BindList.0.ListenerId"),
    ("DisassociateCustomizedConfig", "BindList.0.ListenerId"),
];

/// What the documented answers lack: all are prices.
const FAULTY_ANSWERS: &[(&str, &str)] = &[
    ("InquirePriceCreateModelRouterResourcePackage", "ModelRouterResourcePackagePrice.UnitPrice"),
    ("InquiryPriceCreateLoadBalancer", "Price.BandwidthPrice.UnitPrice"),
    ("InquiryPriceCreateLoadBalancer", "Price.InstancePrice.OriginalPrice"),
    ("InquiryPriceCreateLoadBalancer", "Price.InstancePrice.OriginalPrice"),
    ("InquiryPriceCreateLoadBalancer", "Price.InstancePrice.OriginalPrice"),
    ("InquiryPriceModifyLoadBalancer", "Price.BandwidthPrice.UnitPrice"),
    ("InquiryPriceRefundLoadBalancer", "Price.InstancePrice.UnitPrice"),
    ("InquiryPriceRenewLoadBalancer", "Price.BandwidthPrice.UnitPrice"),
];

/// An exchange: its action, the request and the answer.
struct Exchange {
    action: &'static str,
    request: Request,
    answer: Form,
}

enum Request {
    Post(Form),
    Get(Vec<&'static str>),
}

fn exchanges() -> Vec<Exchange> {
    let lines = include_str!("exchanges.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(exchange).collect()
}

fn exchange(line: &'static str) -> Exchange {
    let (request, answer) = line.split_once(" -> ").unwrap();
    let mut words = request.split(' ');
    let (action, method) = (words.next().unwrap(), words.next().unwrap());
    let parameters = words.next().unwrap_or_default();
    let request = match method {
        "POST" => Request::Post(Form::parse(parameters)),
        "GET" => Request::Get(parameters.split('&').filter(|name| !name.is_empty()).collect()),
        _ => panic!("{line}"),
    };
    Exchange { action, request, answer: Form::parse(answer) }
}

fn clb() -> &'static Service {
    services().iter().find(|service| service.name == "clb").unwrap()
}

#[test]
fn every_documented_request_passes_the_check() {
    let clb = clb();
    let exchanges = exchanges();
    assert_eq!(exchanges.len(), EXCHANGES);
    let (mut of_get, mut faults) = (0, Vec::new());
    for Exchange { action, request, .. } in exchanges {
        let object = clb.request(action).unwrap_or_else(|| panic!("there is no {action}"));
        let parameters = match request {
            Request::Post(form) => form.value(),
            Request::Get(names) => {
                of_get += 1;
                parsed(clb, object, &names)
            }
        };
        faults
            .extend(clb.check(object, &parameters).err().map(|error| format!("{action}: {error}")));
    }
    assert_eq!(of_get, 73);
    assert_eq!(faults, messages(FAULTY_REQUESTS));
}

/// How a document departs from the schema.
fn fault(clb: &Service, action: &str, object: &str, document: &Value) -> Option<String> {
    clb.check(object, document).err().map(|error| format!("{action}: {error}"))
}

fn messages(lacking: &[(&str, &str)]) -> Vec<String> {
    let message = |(action, member): &(&str, &str)| {
        format!("{action}: MissingParameter: the parameter `{member}` is missing")
    };
    lacking.iter().map(message).collect()
}

/// What the server makes of a query string with these parameters.
fn parsed(clb: &Service, object: &str, names: &[&str]) -> Value {
    let pairs = names.iter().map(|name| format!("{name}={}", text_of(clb, object, name)));
    let text = pairs.collect::<Vec<_>>().join("&");
    query::parameters(clb, object, &text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A value that a parameter of a query string can have.
fn text_of(clb: &Service, object: &str, name: &str) -> &'static str {
    let mut kind = MemberKind::Object(object.to_owned());
    for part in name.split('.') {
        kind = match kind {
            MemberKind::Object(object) => {
                let member = clb.objects[&object].member(part);
                member.unwrap_or_else(|| panic!("{object} has no {part}")).kind.clone()
            }
            MemberKind::List(item) => *item,
            _ => panic!("{name} is no part of {object}"),
        };
    }
    match kind {
        MemberKind::Boolean => "true",
        MemberKind::Float => "0.5",
        _ => "1",
    }
}

#[test]
fn every_documented_answer_has_the_members_of_the_schema() {
    let (clb, mut faults) = (clb(), Vec::new());
    for Exchange { action, answer, .. } in exchanges() {
        let object = clb.response(action).unwrap_or_else(|| panic!("there is no {action}"));
        let answer = answer.value();
        assert_eq!(answer["RequestId"], "s", "{action}");
        faults.extend(fault(clb, action, object, &answer));
    }
    assert_eq!(faults, messages(FAULTY_ANSWERS));
}

/// Every action of the schema is documented with an exchange, so none was left out here.
#[test]
fn every_action_has_an_exchange() {
    let exchanges = exchanges();
    for action in &clb().actions {
        assert!(exchanges.iter().any(|exchange| exchange.action == action), "{action}");
    }
}
