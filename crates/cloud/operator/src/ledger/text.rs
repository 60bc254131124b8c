//! The JSON form in which a record is stored.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef, Protocol};

use super::{Held, Holder, Record};
use crate::clb::{ListenerKey, RuleKey};

/// The error for a record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

impl Record {
    /// Returns the record as JSON, with the id of the cluster that it belongs to.
    pub fn to_text(&self, cluster: &str) -> String {
        let listeners = self.listeners.iter().map(|(key, held)| {
            let mut value = json!({ "holder": of_holder(&held.holder) });
            if let Some(id) = &held.id {
                value["id"] = id.as_str().into();
            }
            if held.is_creating {
                value["creating"] = true.into();
            }
            let rules = held.rules.iter().map(|(rule, holder)| {
                json!({ "domain": rule.domain, "url": rule.url, "holder": of_holder(holder) })
            });
            if !held.rules.is_empty() {
                value["rules"] = rules.collect();
            }
            (key.to_string(), value)
        });
        let listeners: Map<String, Value> = listeners.collect();
        let mut value = json!({ "cluster": cluster, "listeners": listeners });
        if let Some(owner) = &self.owner {
            value["owner"] = of_holder(owner);
        }
        if self.is_adopting {
            value["adopting"] = true.into();
        }
        value.to_string()
    }

    /// Parses a record. Returns `None` for a record of another cluster.
    ///
    /// # Errors
    ///
    /// Returns which part cannot be read.
    pub fn from_text(text: &str, cluster: &str) -> Result<Option<Self>, Unreadable> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| Unreadable(error.to_string()))?;
        let members =
            value.as_object().ok_or_else(|| Unreadable("expected a JSON object".to_owned()))?;
        if value["cluster"].as_str() != Some(cluster) {
            return Ok(None);
        }
        let owner = members.get("owner").map(holder).transpose()?;
        let listeners = value["listeners"]
            .as_object()
            .ok_or_else(|| Unreadable("listeners: expected a JSON object".to_owned()))?;
        let listeners = listeners
            .iter()
            .map(|(text, value)| Ok((key(text)?, held(text, value)?)))
            .collect::<Result<BTreeMap<_, _>, Unreadable>>()?;
        let is_adopting = value["adopting"].as_bool().unwrap_or_default();
        Ok(Some(Self { owner, listeners, is_adopting }))
    }
}

fn of_holder(holder: &Holder) -> Value {
    let namespace = holder.object.namespace.as_ref().map(Name::as_str).unwrap_or_default();
    json!({ "kind": holder.object.kind.as_str(), "namespace": namespace,
        "name": holder.object.name.to_string(), "uid": holder.uid })
}

fn holder(value: &Value) -> Result<Holder, Unreadable> {
    let text = |member: &str| {
        let found = value[member].as_str().filter(|text| !text.is_empty());
        found.ok_or_else(|| Unreadable(format!("a holder without {member}: {value}")))
    };
    let kind = match text("kind")? {
        "Service" => ObjectKind::Service,
        "Ingress" => ObjectKind::Ingress,
        other => return Err(Unreadable(format!("a holder of the kind {other}"))),
    };
    let name = NamespacedName::new(text("namespace")?, text("name")?)
        .map_err(|error| Unreadable(format!("a holder's name: {error}")))?;
    Ok(Holder { object: ObjectRef::namespaced(kind, &name), uid: text("uid")?.to_owned() })
}

fn key(text: &str) -> Result<ListenerKey, Unreadable> {
    let parts = text.split_once('/').and_then(|(port, transport)| {
        let transport: Protocol = transport.parse().ok()?;
        Some(ListenerKey { port: port.parse().ok()?, transport })
    });
    parts.ok_or_else(|| Unreadable(format!("{text}: expected a port such as 80/TCP")))
}

fn held(at: &str, value: &Value) -> Result<Held, Unreadable> {
    let rules = value["rules"].as_array().into_iter().flatten().map(|rule| {
        let text = |member: &str| {
            let found = rule[member].as_str().map(str::to_owned);
            found.ok_or_else(|| Unreadable(format!("{at}: a rule without {member}: {rule}")))
        };
        let key = RuleKey { domain: text("domain")?, url: text("url")? };
        Ok((key, holder(&rule["holder"])?))
    });
    Ok(Held {
        holder: holder(&value["holder"])?,
        id: value["id"].as_str().map(str::to_owned),
        is_creating: value["creating"].as_bool().unwrap_or_default(),
        rules: rules.collect::<Result<_, Unreadable>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(kind: ObjectKind, name: &str, uid: &str) -> Holder {
        let name = NamespacedName::new("shop", name).unwrap();
        Holder { object: ObjectRef::namespaced(kind, &name), uid: uid.to_owned() }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let web = holder(ObjectKind::Service, "web", "u1");
        let front = holder(ObjectKind::Ingress, "front", "u2");
        let rule = RuleKey { domain: "a.example.com".to_owned(), url: "=/a".to_owned() };
        let of = |holder: &Holder, id: Option<&str>| Held {
            holder: holder.clone(),
            id: id.map(str::to_owned),
            is_creating: id.is_none(),
            rules: BTreeMap::new(),
        };
        let mut grouped = of(&front, Some("lbl-2"));
        grouped.rules.insert(rule, holder(ObjectKind::Ingress, "back", "u3"));
        let listeners = [("80/TCP", of(&web, Some("lbl-1"))), ("53/UDP", of(&web, None))];
        let listeners = listeners.into_iter().chain([("443/TCP", grouped)]);
        let record = Record {
            owner: Some(web),
            listeners: listeners.map(|(text, held)| (key(text).unwrap(), held)).collect(),
            is_adopting: true,
        };
        for record in [record, Record::default()] {
            let text = record.to_text("cls-a");
            assert_eq!(Record::from_text(&text, "cls-a"), Ok(Some(record)));
            assert_eq!(Record::from_text(&text, "cls-b"), Ok(None));
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (text, words) in [
            ("", "EOF"),
            ("[]", "expected a JSON object"),
            (r#"{"cluster":"c"}"#, "listeners"),
            (r#"{"cluster":"c","listeners":{"80":{}}}"#, "80: expected a port"),
            (r#"{"cluster":"c","listeners":{"80/TCP":{}}}"#, "a holder without kind"),
            (r#"{"cluster":"c","listeners":{},"owner":{"kind":"Pod"}}"#, "the kind Pod"),
            (
                r#"{"cluster":"c","listeners":{"0x/TCP":{}}}"#,
                "0x/TCP: expected a port such as 80/TCP",
            ),
        ] {
            let error = Record::from_text(text, "c").unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
