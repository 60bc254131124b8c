//! Removes objects from the texts, and puts others in their places.

use std::ops::Range;

use uturn_document::Source;
use uturn_document::edit::{self, Change, Tree};
use uturn_model::{NamespacedName, ObjectRef};

use super::site::{Site, joined};
use super::{CannotEdit, Known, Manifests};

impl Manifests {
    /// Returns the manifests without an object, wherever it is written. Other objects keep their
    /// lines. Returns the manifests as they are if no text has the object.
    ///
    /// # Errors
    /// Returns an error if the object cannot be cut out of its document.
    pub fn without_object(&self, object: &ObjectRef) -> Result<Self, CannotEdit> {
        let mut new = self.clone();
        while let Some(site) = new.site(object) {
            new.cut(site, object)?;
        }
        Ok(new)
    }

    /// Returns the manifests with another object of the same identity in the place of an object,
    /// or in a file of its own if no text has the object.
    ///
    /// # Errors
    /// Returns an error if the object cannot be cut out of its document.
    pub fn with_replaced(
        &self,
        file: &str,
        object: &ObjectRef,
        tree: &Tree,
    ) -> Result<Self, CannotEdit> {
        let Some(site) = self.site(object) else { return Ok(self.with_object(file, tree)) };
        let text = &self.sources[site.source].text;
        if !site.path.is_empty() || is_item(text, &site.document) {
            let file = self.sources[site.source].name.to_string();
            return Ok(self.without_object(object)?.with_object(&file, tree));
        }
        let mut new = self.clone();
        let old = &text[site.document.clone()];
        let start = document_start(old);
        let document = tree.document();
        let lines = |text: &str| text.matches('\n').count();
        // The documents behind it keep their lines as far as possible.
        let missing = lines(old).saturating_sub(lines(start) + lines(&document));
        let document = [start, &document, &"\n".repeat(missing)].concat();
        new.text_mut(site.source).replace_range(site.document, &document);
        Ok(new)
    }

    /// Returns the names of the Scenario and of its case that is the cluster, if the cluster is one.
    pub fn case(&self) -> Option<(&str, &str)> {
        self.case.as_ref().map(|(name, label)| (&**name, label.as_str()))
    }

    /// Returns the manifests with a text after all others.
    #[must_use]
    pub fn with_source(&self, source: Source) -> Self {
        let mut new = self.clone();
        new.sources_mut().push(source);
        new
    }

    /// Returns the manifests of a cluster that was changed: what was there before and is not any more
    /// does not exist elsewhere. If `is_short` a Service is gone; these Services lost their endpoints.
    #[must_use]
    pub fn with_losses(&self, is_short: bool, services: Vec<NamespacedName>) -> Self {
        let mut new = self.clone();
        new.known = Known::default();
        new.listing.has_all_services |= is_short;
        new.listing.without_endpoints.extend(services);
        new
    }

    fn cut(&mut self, site: Site, object: &ObjectRef) -> Result<(), CannotEdit> {
        if let Some((last, above)) = site.path.split_last() {
            let path = joined(above, std::slice::from_ref(last));
            let document =
                edit::apply(&self.document(&site), &path, &Change::Remove).map_err(|why| {
                    CannotEdit::Place(object.clone(), "the whole object".to_owned(), why.0)
                })?;
            self.replace(site, &document);
            return Ok(());
        }
        let text = self.text_mut(site.source);
        let mut range = site.document;
        let is_json_item = is_item(text, &range) && !text[range.clone()].starts_with('-');
        if is_json_item {
            range = with_comma(text, range);
        }
        let lines = text[range.clone()].matches('\n').count();
        let is_dashed_item = text[range.clone()].starts_with("- ");
        text.replace_range(range, &"\n".repeat(lines));
        // A list without items is null, which is no list.
        if is_dashed_item && !text.lines().any(|line| line.starts_with("- ")) {
            *text = text.replacen("items:", "items: []", 1);
        }
        Ok(())
    }
}

/// Returns whether a document is an item of a List, of which the text has more.
fn is_item(text: &str, document: &Range<usize>) -> bool {
    let before = text[..document.start].trim_end();
    let own = &text[document.clone()];
    own.starts_with("- ") || own.starts_with('{') && before.ends_with(['[', ','])
}

/// Returns the range of a JSON item with the comma behind it, or else the one before it.
fn with_comma(text: &str, item: Range<usize>) -> Range<usize> {
    let behind = text[item.end..].trim_start();
    if behind.starts_with(',') {
        let end = text.len() - behind.len() + 1;
        return item.start..end;
    }
    match text[..item.start].trim_end().strip_suffix(',') {
        Some(before) => before.len()..item.end,
        None => item,
    }
}

/// Returns the line of dashes with which a document begins; empty if there is none.
fn document_start(document: &str) -> &str {
    match document.find('\n') {
        Some(end) if document.starts_with("---") => &document[..=end],
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use uturn_model::ObjectKind;

    use super::*;

    fn service(name: &str) -> ObjectRef {
        let name = NamespacedName::new("shop", name).unwrap();
        ObjectRef::namespaced(ObjectKind::Service, &name)
    }

    fn written(name: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  namespace: shop\nspec:\n  \
             ports:\n  - port: 80\n"
        )
    }

    fn forms() -> Vec<String> {
        let (a, b) = (written("a"), written("b"));
        let indented = |text: &str| text.replace('\n', "\n  ").trim_end().to_owned();
        let json = |name: &str| {
            format!(
                r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{name}","namespace":"shop"}},"spec":{{"ports":[{{"port":80}}]}}}}"#
            )
        };
        vec![
            format!("# first\n{a}---\n# second\n{b}"),
            format!("---\n{a}---\n{b}"),
            format!("apiVersion: v1\nkind: List\nitems:\n- {}\n- {}\n", indented(&a), indented(&b)),
            format!(r#"{{"apiVersion":"v1","kind":"List","items":[{},{}]}}"#, json("a"), json("b")),
        ]
    }

    fn services(manifests: &Manifests) -> Vec<String> {
        let loaded = manifests.load().unwrap();
        loaded
            .cluster
            .services
            .values()
            .map(|own| format!("{}:{}", own.name, own.ports[0].port))
            .collect()
    }

    #[test]
    fn an_object_goes_from_any_form_of_text_and_leaves_the_others() {
        for text in forms() {
            let all = Manifests::of(vec![Source { name: "all".into(), text: text.clone() }]);
            assert_eq!(services(&all), ["shop/a:80", "shop/b:80"], "{text}");
            for (gone, left) in [("a", "shop/b:80"), ("b", "shop/a:80")] {
                let rest = all.without_object(&service(gone)).unwrap();
                assert_eq!(services(&rest), [left], "{text}");
            }
            let none = all.without_object(&service("a")).unwrap();
            let none = none.without_object(&service("b")).unwrap();
            assert!(!none.has(&service("a")) && !none.has(&service("b")), "{text}");
        }
    }

    #[test]
    fn an_object_takes_the_place_of_another() {
        for text in forms() {
            let all = Manifests::of(vec![Source { name: "all".into(), text: text.clone() }]);
            for (name, expected) in
                [("a", ["shop/a:81", "shop/b:80"]), ("b", ["shop/a:80", "shop/b:81"])]
            {
                let document = written(name).replace("80", "81");
                let other = Manifests::of(vec![Source { name: "x".into(), text: document }]);
                let tree = other.object(&service(name)).unwrap();
                let new = all.with_replaced("x", &service(name), &tree).unwrap();
                assert_eq!(services(&new), expected, "{text}");
            }
        }
    }
}
