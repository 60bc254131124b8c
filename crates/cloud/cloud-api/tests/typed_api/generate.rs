//! Writes the types of a service's requests and answers as Rust.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use uturn_cloud_api::schema::{Member, MemberKind, Service};

/// The code for these actions and every object they use.
pub(crate) fn service(service: &Service, actions: &[&str]) -> String {
    let mut code = format!(
        "//! Requests and answers of the service `{}`, version {}. Written by the test `typed_api` \
         from\n//! the schema; change that instead.\n\n\
         use serde::{{Deserialize, Serialize}};\n\nuse super::Action;\n\n",
        service.name, service.version
    );
    for action in actions {
        let request = service.request(action).expect("the schema has the action");
        let response = service.response(action).expect("the schema has the action");
        writeln!(
            code,
            "impl Action for {request} {{\n\
             const SERVICE: &'static str = {:?};\n\
             const VERSION: &'static str = {:?};\n\
             const NAME: &'static str = {action:?};\n\
             type Response = {response};\n}}\n",
            service.name, service.version
        )
        .expect("a String takes every text");
    }
    for name in used(service, actions) {
        object(&mut code, service, name);
    }
    code
}

/// The objects that the actions use, themselves or through others, by name.
fn used<'a>(service: &'a Service, actions: &[&str]) -> BTreeSet<&'a str> {
    let mut open: Vec<&str> = actions
        .iter()
        .flat_map(|action| [service.request(action), service.response(action)])
        .flatten()
        .collect();
    let mut used = BTreeSet::new();
    while let Some(name) = open.pop() {
        if used.insert(name) {
            let kinds = service.objects[name].members.iter().map(|member| &member.kind);
            open.extend(kinds.filter_map(|kind| object_in(kind)));
        }
    }
    used
}

fn object_in(kind: &MemberKind) -> Option<&str> {
    match kind {
        MemberKind::Object(name) => Some(name),
        MemberKind::List(item) => object_in(item),
        _ => None,
    }
}

fn object(code: &mut String, service: &Service, name: &str) {
    let members = &service.objects[name].members;
    let derives = "Clone, Debug, Default, PartialEq, Serialize, Deserialize";
    writeln!(
        code,
        "#[derive({derives})]\n#[serde(default, rename_all = \"PascalCase\")]\n\
         pub struct {name} {{"
    )
    .expect("a String takes every text");
    for member in members {
        // An answer's id is the envelope's.
        if name.ends_with("Response") && member.name == "RequestId" {
            continue;
        }
        field(code, member);
    }
    code.push_str("}\n\n");
}

fn field(code: &mut String, member: &Member) {
    let name = snake_case(&member.name);
    if pascal_case(&name) != member.name {
        writeln!(code, "#[serde(rename = {:?})]", member.name).expect("a String takes every text");
    }
    let name = if name == "type" { "r#type".to_owned() } else { name };
    let kind = rust_type(&member.kind);
    let kind = if member.required { kind } else { format!("Option<{kind}>") };
    writeln!(code, "pub {name}: {kind},").expect("a String takes every text");
}

fn rust_type(kind: &MemberKind) -> String {
    match kind {
        MemberKind::String => "String".to_owned(),
        MemberKind::Integer => "i64".to_owned(),
        MemberKind::Unsigned => "u64".to_owned(),
        MemberKind::Boolean => "bool".to_owned(),
        MemberKind::Float => "f64".to_owned(),
        MemberKind::Object(name) => name.clone(),
        MemberKind::List(item) => format!("Vec<{}>", rust_type(item)),
    }
}

/// `LoadBalancerId` → `load_balancer_id`, `IPv6Mode` → `ipv6_mode`, `SSLVerifyClient` →
/// `ssl_verify_client`: a capital begins a word unless capitals surround it.
fn snake_case(name: &str) -> String {
    let name = name.replace("IPv", "Ipv");
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (position, letter) in letters.iter().enumerate() {
        let before = position.checked_sub(1).map(|position| letters[position]);
        let after = letters.get(position + 1);
        let begins_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase)
            });
        if begins_word {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// What serde makes of a field's name.
fn pascal_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}
