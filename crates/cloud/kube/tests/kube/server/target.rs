//! What a request is for.

/// A resource, and perhaps one object of it.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) namespace: String,
    pub(super) name: Option<String>,
    pub(super) is_status: bool,
}

impl Target {
    /// What a path names.
    pub(super) fn of(path: &str) -> Self {
        let mut words: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let group = match words.remove(0) {
            "api" => String::new(),
            _ => words.remove(0).to_owned(),
        };
        words.remove(0);
        let namespace = match words.first() {
            Some(&"namespaces") => {
                let namespace = words[1].to_owned();
                words.drain(..2);
                namespace
            }
            _ => String::new(),
        };
        Self {
            group,
            plural: words[0].to_owned(),
            namespace,
            name: words.get(1).map(|name| (*name).to_owned()),
            is_status: words.get(2) == Some(&"status"),
        }
    }

    pub(super) fn key(&self) -> (String, String, String) {
        (self.plural.clone(), self.namespace.clone(), self.name.clone().unwrap_or_default())
    }
}
