//! Targets for the CLB API: the requests of clients, the answers, and the files.

mod exchange;

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Map, Value};
use uturn_cloud::authorization::{Received, verify};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::inventory::Inventory;
use uturn_cloud_api::client::{Answer, CallError};
use uturn_cloud_api::schema::{Service, query, services};
use uturn_cloud_api::wire::error::ErrorCode;
use uturn_cloud_api::{Action, clb};

use self::exchange::{Exchange, Lines};
use crate::text;

/// The largest number of requests of an input: the cost of each grows with what earlier ones
/// created.
const MAX_REQUESTS: usize = 12;

/// The largest number of subnets and instances of a region that are looked up: each is searched for
/// among all.
const MAX_FOUND: usize = 20;

/// Returns the time of the server's clock.
fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).expect("a time of this century")
}

/// Reads a request as the server receives it: `METHOD QUERY`, headers, an empty line, the body. An
/// accepted request is refused with another key.
pub fn cloud_authorization(data: &[u8]) -> bool {
    let Lines { first, headers, body } = Lines::of(data);
    let (method, query) = first.split_once(' ').unwrap_or((&first, ""));
    let request = Received { method, query, headers: &headers, body };
    let verify = |text: &str| {
        let credentials = Credentials::parse(text).expect("written here");
        verify(&request, &credentials, now())
    };
    match verify("id1 key1 account1\n") {
        Ok(caller) => {
            assert_eq!((&*caller.secret_id, &*caller.account), ("id1", "account1"));
            let refused = verify("id1 key2 account1\n").expect_err("a signature is for one key");
            assert_eq!(refused.code, ErrorCode::SignatureFailure);
            true
        }
        Err(error) => {
            assert!(!error.message.is_empty(), "a refusal says why");
            false
        }
    }
}

/// Reads the parameters of a GET, after a first line with the action. The value that is read is the
/// one that would be written, and no other value has the same meaning.
pub fn cloud_query(data: &[u8]) -> bool {
    let text = text(data);
    let (action, query) = text.split_once('\n').unwrap_or((&text, ""));
    let Some((service, object)) = request_of(action) else { return false };
    let read = |query: &str| query::parameters(service, object, query);
    match read(query) {
        Ok(value) => {
            let written = flattened(&value);
            assert_eq!(read(&written).as_ref(), Ok(&value), "written as {written:?}");
            service.check(object, &value).is_ok()
        }
        Err(error) => {
            assert!(!error.message.is_empty(), "a refusal says why");
            false
        }
    }
}

/// Sends requests of two accounts, a line each: an action and its body. Each is answered in the
/// form of the API, a failing request changes nothing, and neither account changes the other.
pub fn cloud_requests(data: &[u8]) -> bool {
    let exchange = Exchange::new(now());
    let mut succeeded = false;
    for line in data.split(|byte| *byte == b'\n').take(MAX_REQUESTS) {
        succeeded |= exchange.send(line);
    }
    succeeded
}

/// Reads an answer as the client does. An accepted answer is accepted again when it is written.
pub fn cloud_answer(data: &[u8]) -> bool {
    let results = [
        read_back::<clb::DescribeLoadBalancersRequest>(data),
        read_back::<clb::DescribeListenersRequest>(data),
        read_back::<clb::DescribeTargetsRequest>(data),
        read_back::<clb::DescribeTaskStatusRequest>(data),
    ];
    results.contains(&true)
}

fn read_back<A: Action>(data: &[u8]) -> bool {
    match Answer::<A::Response>::read(data) {
        Ok(answer) => {
            let mut members = match serde_json::to_value(&answer.response) {
                Ok(Value::Object(members)) => members,
                other => panic!("an answer is an object: {other:?}"),
            };
            let written = Value::Object(members.clone());
            members.insert("RequestId".to_owned(), answer.request_id.clone().into());
            let body = Value::from(Map::from_iter([("Response".to_owned(), members.into())]));
            let again = Answer::<A::Response>::read(body.to_string().as_bytes())
                .unwrap_or_else(|error| panic!("written as {body} and refused: {error}"));
            assert_eq!(again.request_id, answer.request_id);
            let again = serde_json::to_value(&again.response).expect("as before");
            assert_eq!(again, written);
            true
        }
        Err(error) => {
            let is_the_servers = matches!(error, CallError::Api { .. } | CallError::Answer(_));
            assert!(is_the_servers && !error.to_string().is_empty(), "{error:?}");
            false
        }
    }
}

/// Reads a file of credentials. Each line that counts is found by its id, and keys are not printed.
pub fn cloud_credentials(data: &[u8]) -> bool {
    let text = text(data);
    let lines = || {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<&str>>());
        lines.filter(|words| words.first().is_some_and(|word| !word.starts_with('#')))
    };
    match Credentials::parse(&text) {
        Ok(credentials) => {
            let mut known: HashMap<&str, &str> = HashMap::new();
            for words in lines() {
                let found = credentials.get(words[0]).expect("each line is kept");
                assert_eq!(found.secret_key.reveal(), words[1]);
                assert_eq!(found.account, *words.get(2).unwrap_or(&words[0]));
                assert_eq!(known.insert(words[0], words[1]), None, "an id stands once");
            }
            assert!(!known.is_empty(), "a file without a credential is refused");
            true
        }
        Err(error) => {
            assert!(!error.problem.is_empty(), "a refusal says why");
            assert!(error.line <= text.lines().count(), "line {} of the file", error.line);
            false
        }
    }
}

/// Reads an inventory. The addresses that it gives are its own, and none is in use.
pub fn cloud_inventory(data: &[u8]) -> bool {
    let text = text(data);
    let inventory = match Inventory::parse(&text) {
        Ok(inventory) => inventory,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "a refusal says why");
            return false;
        }
    };
    let Inventory::Stated(stated) = &inventory else { panic!("a file states what there is") };
    for region in &stated.regions {
        assert!(inventory.has_region(&region.name));
        for is_v6 in [false, true] {
            let public =
                |taken| inventory.public_address(&region.name, is_v6, |ip| Some(ip) == taken);
            if let Some(first) = public(None) {
                let ranges = &region.public_addresses;
                assert!(ranges.iter().any(|range| range.contains(&first)), "{first}");
                assert_ne!(public(Some(first)), Some(first));
            }
        }
        let subnets = region.networks.iter().flat_map(|network| &network.subnets);
        for subnet in subnets.take(MAX_FOUND) {
            let is_v6 = subnet.addresses.addr().is_ipv6();
            let found = inventory.private_address(&region.name, &subnet.id, is_v6, |_| false);
            let taken = found.and_then(|found| inventory.instance_at(&region.name, found));
            assert!(taken.is_none(), "{found:?} is an instance's");
            assert!(found.is_none_or(|found| subnet.addresses.contains(&found)), "{found:?}");
        }
        for instance in region.instances.iter().take(MAX_FOUND) {
            let found = inventory.instance(&region.name, &instance.id);
            assert_eq!(found.as_deref(), Some(instance), "ids stand once");
        }
    }
    true
}

/// Returns the service that has this action, and the object of its request.
fn request_of(action: &str) -> Option<(&'static Service, &'static str)> {
    services().iter().find_map(|service| Some((service, service.request(action)?)))
}

/// Returns a value as a query string.
fn flattened(value: &Value) -> String {
    let mut pairs = Vec::new();
    flatten(value, "", &mut pairs);
    pairs.join("&")
}

fn flatten(value: &Value, name: &str, pairs: &mut Vec<String>) {
    let within = |part: &str| match name {
        "" => encoded(part),
        _ => format!("{name}.{}", encoded(part)),
    };
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(part, value)| flatten(value, &within(part), pairs));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(part, value)| flatten(value, &within(&part.to_string()), pairs));
        }
        Value::String(text) => pairs.push(format!("{name}={}", encoded(text))),
        other => pairs.push(format!("{name}={other}")),
    }
}

fn encoded(text: &str) -> String {
    let bytes = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    bytes.collect()
}
