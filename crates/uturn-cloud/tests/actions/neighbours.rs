//! The actions of neighbour services that controllers call beside those of clb.

mod certificates;
mod networks;
mod tags;

use serde_json::{Value, json};

use crate::harness::Harness;

#[test]
fn an_account_has_the_same_numbers_each_time() {
    let cloud = Harness::new();
    let numbers = cloud.ok("GetUserAppId", json!({}));
    assert_eq!(numbers["Uin"], numbers["OwnerUin"]);
    assert!(numbers["AppId"].as_u64().unwrap() >= 1_250_000_000, "{numbers}");
    let again = Harness::new().ok("GetUserAppId", json!({}));
    assert_eq!(again["Uin"], numbers["Uin"]);
}

/// What a member of each item of a list is.
fn each<'v>(list: &'v Value, member: &str) -> Vec<&'v str> {
    let items = list.as_array().unwrap_or_else(|| panic!("{list} is no list"));
    items.iter().map(|item| item[member].as_str().unwrap()).collect()
}
