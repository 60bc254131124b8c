//! Names of objects that may leave out the namespace, as `-n` gives it: `pod/web-0`, `svc/front:80`.

use std::fmt::Display;
use std::str::FromStr;

/// What names an object in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named<T> {
    /// All that is needed.
    Whole(T),
    /// The text, without the namespace.
    Short(String),
}

impl<T: FromStr> FromStr for Named<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        match text.parse() {
            Ok(whole) => Ok(Self::Whole(whole)),
            Err(_) if within(text, "default").parse::<T>().is_ok() => Ok(Self::Short(text.into())),
            Err(why) => Err(why),
        }
    }
}

impl<T: FromStr<Err: Display> + Clone> Named<T> {
    /// What it names, in a namespace if it names none itself.
    ///
    /// # Errors
    /// Says what the text is not.
    pub(crate) fn within(&self, namespace: Option<&str>) -> Result<T, String> {
        let text = match self {
            Self::Whole(whole) => return Ok(whole.clone()),
            Self::Short(text) => text,
        };
        match namespace {
            Some(namespace) => {
                within(text, namespace).parse().map_err(|why: T::Err| why.to_string())
            }
            None => text.parse().map_err(|why| format!("{why}; or give the namespace with -n")),
        }
    }
}

/// The text with a namespace before the name: `svc/front` becomes `svc/shop/front`, and `front`
/// becomes `shop/front`.
fn within(text: &str, namespace: &str) -> String {
    match text.split_once('/') {
        Some((kind, rest)) => format!("{kind}/{namespace}/{rest}"),
        None => format!("{namespace}/{text}"),
    }
}

#[cfg(test)]
mod tests {
    use uturn_model::{Client, Destination};

    use super::*;

    fn client(text: &str, namespace: Option<&str>) -> Option<String> {
        let named = text.parse::<Named<Client>>().ok()?;
        named.within(namespace).ok().map(|client| client.to_string())
    }

    fn target(text: &str, namespace: Option<&str>) -> Option<String> {
        let named = text.parse::<Named<Destination>>().ok()?;
        named.within(namespace).ok().map(|target| target.to_string())
    }

    #[test]
    fn a_namespace_is_added_where_none_is_named() {
        let shop = Some("shop");
        assert_eq!(client("pod/web-0", shop).unwrap(), "pod/shop/web-0");
        assert_eq!(client("pod/front/web-0", shop).unwrap(), "pod/front/web-0");
        assert_eq!(client("node/n1", shop).unwrap(), "node/n1");
        assert_eq!(client("outside", shop).unwrap(), "outside");
        assert_eq!(target("svc/front:http", shop).unwrap(), "svc/shop/front:http");
        assert_eq!(target("pod/web-0:8080", shop).unwrap(), "pod/shop/web-0:8080");
        assert_eq!(target("ingress/front", shop).unwrap(), "ingress/shop/front");
        assert_eq!(target("http://front/", shop).unwrap(), "http://front/");
        assert_eq!(target("front:80", shop).unwrap(), "front:80");
    }

    #[test]
    fn without_a_namespace_it_is_no_name() {
        for text in ["pod/web-0", "deploy/web", "web"] {
            assert_eq!(client(text, None), None, "{text}");
        }
        assert_eq!(target("svc/front", None), None);
        assert_eq!(client("pod/web-0", Some("no/namespace")), None);
    }
}
