//! Changes of single objects: `--delete`, `--set`, `--annotate`.

use uturn_document::edit::{At, Tree};
use uturn_model::{ObjectKind, ObjectRef};

use super::{Change, What, kind, path};

/// Parses `--delete KIND/NS/NAME`.
///
/// # Errors
/// Returns an error if the text names no object.
pub fn delete(text: &str, namespace: Option<&str>) -> Result<Change, String> {
    let object = kind::object(text, namespace)?;
    Ok(Change::new("--delete", text, What::Delete(object)))
}

/// Parses `--set KIND/NS/NAME:PATH=VALUE`.
///
/// # Errors
/// Returns an error if the object, the path or the value is missing or cannot be read.
pub fn set(text: &str, namespace: Option<&str>) -> Result<Change, String> {
    let form = || {
        format!(
            "{text:?}: expected KIND/NS/NAME:PATH=VALUE, such as \
             svc/shop/front:spec.externalTrafficPolicy=Local"
        )
    };
    let (named, rest) = text.split_once(':').ok_or_else(form)?;
    let (place, value) = path::assignment(rest).ok_or_else(form)?;
    let object = object_or_facts(named, namespace)?;
    let path = path::path(place)?;
    let value = path::value(value);
    Ok(Change::new("--set", text, What::Set { object, path, value }))
}

/// Parses the object of `--set`; `facts` is the Facts, whose paths begin below `spec`.
fn object_or_facts(text: &str, namespace: Option<&str>) -> Result<ObjectRef, String> {
    if text.eq_ignore_ascii_case("facts") {
        return Ok(ObjectRef::global(ObjectKind::Facts, "Facts"));
    }
    kind::object(text, namespace)
}

/// Parses `--annotate KIND/NS/NAME:KEY=VALUE`, or `KIND/NS/NAME:KEY-`, which removes the annotation.
///
/// # Errors
/// Returns an error if the object, the key or the value is missing.
pub fn annotate(text: &str, namespace: Option<&str>) -> Result<Change, String> {
    let form =
        || format!("{text:?}: expected KIND/NS/NAME:KEY=VALUE, or KIND/NS/NAME:KEY- to remove it");
    let (named, rest) = text.split_once(':').ok_or_else(form)?;
    let (key, value) = match rest.split_once('=') {
        Some((key, value)) => (key, Some(Tree::text(value))),
        None => (rest.strip_suffix('-').ok_or_else(form)?, None),
    };
    if key.is_empty() {
        return Err(form());
    }
    let object = kind::object(named, namespace)?;
    let path = ["metadata", "annotations", key].map(At::from).to_vec();
    Ok(Change::new("--annotate", text, What::Set { object, path, value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_typed_as_a_line() {
        let change = set("svc/shop/front:spec.externalTrafficPolicy=Local", None).unwrap();
        let What::Set { object, path, value } = change.what else { panic!() };
        assert_eq!(object.short(), "svc/shop/front");
        assert_eq!(path::shown(&path), "spec.externalTrafficPolicy");
        assert_eq!(value, Some(Tree::text("Local")));
        let change = annotate("svc/front:a.b/c=1", Some("shop")).unwrap();
        let What::Set { path, value, .. } = change.what else { panic!() };
        assert_eq!(path::shown(&path), "metadata.annotations[a.b/c]");
        assert_eq!(value, Some(Tree::text("1")));
        let change = annotate("svc/shop/front:a.b/c-", None).unwrap();
        assert!(matches!(change.what, What::Set { value: None, .. }));
        assert!(delete("svc/shop/front", None).unwrap().deletes().is_some());
        for wrong in ["svc/shop/front", "svc/shop/front:spec.type", "svc/shop/front:=x"] {
            assert!(set(wrong, None).is_err(), "{wrong}");
        }
        assert!(annotate("svc/shop/front:key", None).is_err());
    }
}
