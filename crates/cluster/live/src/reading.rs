//! The objects that an API server returned, as manifests and as files of a bundle.

use std::sync::Arc;

use uturn_model::cluster::{ReadTime, Unread};
use uturn_model::{Extent, Text};
use uturn_snapshot::bundle::{self, BundleWriter, KindRead, ObjectsManifest};
use uturn_snapshot::{Listing, Manifests, Source};

use crate::form::{Form, Kept, documents_of, list_of};
use crate::plan::has_namespaces;
use crate::server::Refusal;

/// The number of compact objects in one text.
const SOME: usize = 500;

/// The objects that an API server returned, and what could not be read.
#[derive(Clone, Debug)]
pub struct Reading {
    kinds: Vec<Kind>,
    server: Option<String>,
    begun: String,
    ended: String,
    unread: Vec<Unread>,
    /// Whether a right is missing.
    lacks_rights: bool,
}

/// The ConfigMaps that the server refuses to return.
#[derive(Clone, Debug)]
pub(crate) struct RefusedMaps {
    pub(crate) unread: Unread,
    /// Whether a right is missing.
    pub(crate) is_forbidden: bool,
}

/// The objects of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) kind: &'static str,
    pub(crate) called: String,
    pub(crate) api_version: Option<&'static str>,
    pub(crate) form: Form,
    pub(crate) objects: Vec<Arc<Kept>>,
    pub(crate) resource_version: Option<String>,
    pub(crate) extent: KindExtent,
}

/// The part of a kind that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KindExtent {
    /// All objects; none, if the server does not have the kind.
    All,
    /// The objects of one namespace, since the server refuses the rest.
    Namespace(String, Refusal),
    /// No object, since the server refuses the kind.
    Nothing(Refusal),
}

impl KindExtent {
    /// Returns whether a right is missing.
    fn is_forbidden(&self) -> bool {
        match self {
            Self::All => false,
            Self::Namespace(_, refusal) | Self::Nothing(refusal) => refusal.is_forbidden,
        }
    }
}

/// The number of kinds that are named for one reason, and the number of reasons.
const NAMED: usize = 3;

/// Returns the first reasons why kinds could not be read, each once. Missing rights count as one
/// reason, although the server's messages name the kind.
fn reasons(unread: &[Unread]) -> String {
    let mut groups: Vec<(Vec<&str>, &Unread)> = Vec::new();
    for one in unread {
        let is_alike =
            |known: &Unread| known.why == one.why || known.is_forbidden() && one.is_forbidden();
        match groups.iter_mut().find(|(_, known)| is_alike(known)) {
            Some((all, _)) => all.push(&one.what),
            None => groups.push((vec![&one.what], one)),
        }
    }
    let said = groups.iter().take(NAMED).map(|(all, Unread { why, .. })| {
        let names = all.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        match all.len().saturating_sub(NAMED) {
            0 => format!("{names}: {why}"),
            more => format!("{names} and {more} more: {why}"),
        }
    });
    let mut said: Vec<String> = said.collect();
    if groups.len() > NAMED {
        said.push(format!("and {} more reasons", groups.len() - NAMED));
    }
    said.join("; ")
}

impl Kind {
    /// Returns whether these are all slices of the cluster. Endpoints then add nothing.
    pub(crate) fn is_all_slices(&self) -> bool {
        self.kind == "EndpointSlice" && self.extent == KindExtent::All && self.api_version.is_some()
    }

    pub(crate) fn unread(&self) -> Option<Unread> {
        let (known, why) = match &self.extent {
            KindExtent::All => return None,
            KindExtent::Namespace(namespace, refusal) => {
                (format!("only those of namespace {namespace} are known"), &refusal.why)
            }
            KindExtent::Nothing(refusal) => ("none are known".to_owned(), &refusal.why),
        };
        let (what, why) = (self.called.as_str().into(), why.as_str().into());
        Some(Unread { what, known: known.into(), why })
    }

    fn entry(&self) -> KindRead {
        let namespace = match &self.extent {
            KindExtent::Namespace(namespace, _) => Some(namespace.clone()),
            KindExtent::All | KindExtent::Nothing(_) => None,
        };
        KindRead {
            kind: self.kind.to_owned(),
            api_version: self.api_version.map(str::to_owned),
            count: self.objects.len(),
            resource_version: self.resource_version.clone(),
            namespace,
        }
    }
}

impl Reading {
    /// Returns the reading of these kinds, the ConfigMaps last. `refused` are the ConfigMaps that
    /// the server refused.
    pub(crate) fn new(
        kinds: Vec<Kind>,
        refused: Option<RefusedMaps>,
        server: Option<String>,
        begun: String,
    ) -> Self {
        let mut unread: Vec<Unread> = kinds.iter().filter_map(Kind::unread).collect();
        let lacks_rights = kinds.iter().any(|kind| kind.extent.is_forbidden())
            || refused.as_ref().is_some_and(|refused| refused.is_forbidden);
        unread.extend(refused.map(|refused| refused.unread));
        Self { kinds, server, begun, ended: now(), unread, lacks_rights }
    }

    /// Returns whether something could not be read because a right is missing.
    pub fn lacks_rights(&self) -> bool {
        self.lacks_rights
    }

    /// Returns whether the right to list some kind in all namespaces is missing, while a single
    /// namespace may be readable.
    pub fn lacks_namespaces(&self) -> bool {
        let mut kinds = self.kinds.iter();
        kinds.any(|kind| has_namespaces(kind.kind) && kind.extent.is_forbidden())
    }

    /// Returns why nothing could be read, if no kind could be listed.
    pub fn nothing_read(&self) -> Option<String> {
        let mut listed = self.kinds.iter().filter(|kind| kind.kind != "ConfigMap");
        let is_read = |kind: &Kind| {
            kind.api_version.is_some() && !matches!(kind.extent, KindExtent::Nothing(_))
        };
        if listed.any(is_read) {
            return None;
        }
        let unread: Vec<Unread> = self.kinds.iter().filter_map(Kind::unread).collect();
        Some(match unread.as_slice() {
            [] => "the server has none of the kinds that are read (404)".to_owned(),
            unread => reasons(unread),
        })
    }

    /// Returns the objects that could not be read.
    pub fn unread(&self) -> &[Unread] {
        &self.unread
    }

    /// Returns the number of objects that were read.
    pub fn len(&self) -> usize {
        self.kinds.iter().map(|kind| kind.objects.len()).sum()
    }

    /// Returns the texts of a kind's objects, as they are kept.
    pub(crate) fn texts(&self, kind: &str) -> impl Iterator<Item = &str> {
        let kinds = self.kinds.iter().filter(move |own| own.kind == kind);
        kinds.flat_map(|own| own.objects.iter().map(|kept| &*kept.text))
    }

    /// Returns whether no object was read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns which kinds were read in full, as far as conclusions depend on it. Objects of a kind
    /// that could not be read may have any address.
    fn extent(&self) -> Extent {
        let all = |name: &str| {
            let mut kinds = self.kinds.iter().filter(|kind| kind.kind == name);
            kinds.any(|kind| kind.extent == KindExtent::All)
        };
        Extent {
            pods: all("Pod") && all("Node"),
            services: all("Service") && all("Ingress"),
            endpoints: all("EndpointSlice") || all("Endpoints"),
            listeners: false,
        }
    }

    /// Returns the objects as texts that can be edited and read again, together with `others`.
    pub fn manifests(self, others: Manifests) -> Manifests {
        let read_at = ReadTime { begun: (&*self.begun).into(), ended: (&*self.ended).into() };
        let listing = Listing::new(self.extent(), self.unread, read_at);
        let mut sources = Vec::new();
        for kind in self.kinds.into_iter().filter(|kind| !kind.objects.is_empty()) {
            match kind.form {
                Form::Compact => {
                    let name: Text = kind.called.to_lowercase().into();
                    let mut objects = kind.objects.into_iter();
                    // Several texts are made, as a single one would have to be in memory beside the
                    // objects.
                    while !objects.as_slice().is_empty() {
                        let some: Vec<Arc<Kept>> = objects.by_ref().take(SOME).collect();
                        let text = list_of(some.iter().map(|kept| &*kept.text)).concat();
                        sources.push(Source { name: name.clone(), text });
                    }
                }
                Form::Whole => sources.extend(kind.objects.into_iter().map(|object| Source {
                    name: format!("{}/{}", kind.kind.to_lowercase(), object.name).into(),
                    text: object.text.clone(),
                })),
            }
        }
        others.with_live(sources, listing)
    }

    /// Writes the objects into a bundle. Returns the part of the bundle's manifest about them.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, bundle: &mut BundleWriter) -> std::io::Result<ObjectsManifest> {
        for kind in self.kinds.iter().filter(|kind| !kind.objects.is_empty()) {
            let texts = kind.objects.iter().map(|kept| &*kept.text);
            let (ending, parts) = match kind.form {
                Form::Compact => ("json", list_of(texts)),
                Form::Whole => ("yaml", documents_of(texts)),
            };
            let name = format!("{}/{}.{ending}", bundle::OBJECTS, kind.called.to_lowercase());
            let parts: Vec<&[u8]> = parts.into_iter().map(str::as_bytes).collect();
            bundle.add_parts(&name, &parts)?;
        }
        let mut manifest = ObjectsManifest {
            server: self.server.clone(),
            begun: self.begun.clone(),
            ended: self.ended.clone(),
            kinds: self.kinds.iter().map(Kind::entry).collect(),
            ..ObjectsManifest::default()
        };
        manifest.set_listing(self.extent(), &self.unread);
        Ok(manifest)
    }
}

pub(crate) fn now() -> String {
    jiff::Timestamp::now().to_string()
}
