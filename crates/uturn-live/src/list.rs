//! All objects of a kind, page by page.

use serde::Deserialize;
use serde_json::Value;

use crate::error::LiveError;
use crate::form::{Form, Kept, keep};
use crate::server::{Answer, Server};

/// How often a list is begun anew that the API server did not keep long enough.
const MAX_STARTS: usize = 4;

/// What is listed.
pub(crate) struct Wanted<'w> {
    pub(crate) path: String,
    pub(crate) api_version: &'w str,
    pub(crate) kind: &'w str,
    /// What several are called.
    pub(crate) called: &'w str,
    pub(crate) form: Form,
    /// How many a page may have.
    pub(crate) page: usize,
}

/// How a list ends.
#[derive(Debug)]
pub(crate) enum Listed {
    /// All of it.
    All { objects: Vec<Kept>, resource_version: Option<String> },
    /// The server has no such kind in this version.
    Missing,
    /// The server refuses it.
    Refused(String),
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(default)]
    items: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    r#continue: String,
    resource_version: Option<String>,
}

/// Lists objects. `progress` hears how many there are so far.
pub(crate) async fn list(
    server: &Server,
    wanted: &Wanted<'_>,
    progress: &dyn Fn(usize),
) -> Result<Listed, LiveError> {
    let Wanted { path, api_version, kind, called, form, page } = wanted;
    let during = format!("reading {called}");
    let mut objects = Vec::new();
    let mut token = String::new();
    let mut starts = 1;
    loop {
        let mut url = format!("{path}?limit={page}");
        if !token.is_empty() {
            url.push_str(&format!("&continue={}", encoded(&token)));
        }
        let text = match server.ask(&url, &during).await? {
            Answer::Text(text) => text,
            Answer::Missing => return Ok(Listed::Missing),
            Answer::Refused(why) => return Ok(Listed::Refused(why)),
            // The rest is as the objects are now: the order is that of names, so that no object
            // comes twice.
            Answer::Expired(Some(next)) if !token.is_empty() && next != token => {
                token = next;
                continue;
            }
            Answer::Expired(_) if starts < MAX_STARTS => {
                starts += 1;
                objects.clear();
                token.clear();
                continue;
            }
            Answer::Expired(_) => {
                let why = "the list changed too often while it was read".to_owned();
                return Ok(Listed::Refused(why));
            }
        };
        let read: Page = match serde_json::from_str(&text) {
            Ok(read) => read,
            Err(error) => return Ok(Listed::Refused(format!("the answer is no list: {error}"))),
        };
        drop(text);
        let items = read.items.unwrap_or_default();
        objects.extend(items.into_iter().map(|item| keep(item, api_version, kind, *form)));
        progress(objects.len());
        if read.metadata.r#continue.is_empty() {
            let resource_version = read.metadata.resource_version;
            return Ok(Listed::All { objects, resource_version });
        }
        token = read.metadata.r#continue;
    }
}

/// A text as a value in a URL.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}
