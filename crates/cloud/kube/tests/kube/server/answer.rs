//! Requests, and their answers.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use serde_json::{Value, json};

use super::Server;
use super::patch::{keep_conditions, merge};
use super::target::Target;

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

impl Server {
    pub(crate) async fn answer(&self, request: Request<Body>) -> Answer {
        let (parts, body) = request.into_parts();
        let target = Target::of(parts.uri.path());
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let body = body.collect().await.unwrap().to_bytes();
        let verb = match (&parts.method, &target.name) {
            (&Method::GET, _) if query.contains("watch=true") => "watch",
            (&Method::GET, None) => "list",
            (&Method::GET, Some(_)) => "get",
            (&Method::PATCH, _) => "patch",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            _ => "other",
        };
        let status = if target.is_status { "/status" } else { "" };
        let resource = format!("{}{status}", target.plural);
        let is_write = ["patch", "create", "update"].contains(&verb);
        {
            let mut state = self.state();
            if state.is_gone {
                return failure(StatusCode::BAD_GATEWAY, "BadGateway");
            }
            state.used.insert((verb.to_owned(), target.group.clone(), resource.clone()));
            if state.is_busy {
                return failure(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests");
            }
            if state.forbidden.contains(&(verb.to_owned(), resource.clone())) {
                return forbidden(verb, &resource, &target);
            }
            if is_write && state.stop.is_some_and(|stop| state.writes >= stop) {
                return failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
            }
            state.writes += usize::from(is_write);
        }
        if verb == "watch" {
            return self.watch(&target, &query);
        }
        let content = parts.headers.get("content-type");
        let is_strategic = content.is_some_and(|content| {
            content.as_bytes().starts_with(b"application/strategic-merge-patch")
        });
        let value = || serde_json::from_slice::<Value>(&body).unwrap();
        match verb {
            "list" => {
                let version = self.state().version.to_string();
                let items = self.objects(&target.plural);
                success(&json!({ "kind": "List", "apiVersion": "v1",
                    "metadata": { "resourceVersion": version }, "items": items }))
            }
            "get" => match self.state().objects.get(&target.key()) {
                Some(object) => success(object),
                None => failure(StatusCode::NOT_FOUND, "NotFound"),
            },
            "patch" => self.patch(&target, &value(), is_strategic),
            "create" => self.create(&target, value()),
            "update" => self.update(&target, value()),
            _ => failure(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
        }
    }

    fn patch(&self, target: &Target, patch: &Value, is_strategic: bool) -> Answer {
        let key = target.key();
        let Some(before) = self.state().objects.get(&key).cloned() else {
            return failure(StatusCode::NOT_FOUND, "NotFound");
        };
        if patch.get("metadata").is_some_and(Value::is_null) {
            // It would take the object's name.
            return failure(StatusCode::BAD_REQUEST, "BadRequest");
        }
        let stated = &patch["metadata"]["resourceVersion"];
        if !stated.is_null() && *stated != before["metadata"]["resourceVersion"] {
            return failure(StatusCode::CONFLICT, "Conflict");
        }
        let mut after = before.clone();
        let mut patch = patch.clone();
        if is_strategic {
            keep_conditions(&before["status"], &mut patch["status"]);
        }
        if target.is_status {
            merge(&mut after["status"], &patch["status"]);
        } else {
            patch.as_object_mut().unwrap().remove("status");
            merge(&mut after, &patch);
        }
        if after == before {
            return success(&before);
        }
        let after = self.put(key, after);
        success(&after)
    }

    fn create(&self, target: &Target, mut object: Value) -> Answer {
        if let Some(prefix) = object["metadata"]["generateName"].as_str() {
            object["metadata"]["name"] = format!("{prefix}{}", self.state().version).into();
        }
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let key = Target { name: Some(name), ..target.clone() }.key();
        if self.state().objects.contains_key(&key) {
            return failure(StatusCode::CONFLICT, "AlreadyExists");
        }
        success(&self.put(key, object))
    }

    fn update(&self, target: &Target, object: Value) -> Answer {
        let key = target.key();
        let Some(before) = self.state().objects.get(&key).cloned() else {
            return failure(StatusCode::NOT_FOUND, "NotFound");
        };
        if object["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"] {
            return failure(StatusCode::CONFLICT, "Conflict");
        }
        success(&self.put(key, object))
    }
}

fn success(value: &Value) -> Answer {
    Response::new(Full::from(value.to_string()).boxed_unsync())
}

/// As the real server says it.
fn forbidden(verb: &str, resource: &str, target: &Target) -> Answer {
    let Target { group, plural, namespace, .. } = target;
    let name = target.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let scope = match namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{namespace}\""),
    };
    let message = format!(
        "{plural}{name} is forbidden: User \"uturn-operator\" cannot {verb} resource \
         \"{resource}\" in API group \"{group}\" {scope}"
    );
    refusal(StatusCode::FORBIDDEN, "Forbidden", &message)
}

fn failure(status: StatusCode, reason: &str) -> Answer {
    refusal(status, reason, reason)
}

fn refusal(status: StatusCode, reason: &str, message: &str) -> Answer {
    let value = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "code": status.as_u16(), "message": message });
    let mut answer = success(&value);
    *answer.status_mut() = status;
    answer
}
