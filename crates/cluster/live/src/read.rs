//! Reads a cluster: all kinds, several at a time, and notes what is refused.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;
use uturn_model::cluster::Unread;

use crate::access::Access;
use crate::error::LiveError;
use crate::form::{Form, Kept, Purpose, keep};
use crate::list::{Listed, Wanted, list};
use crate::plan::{Groups, ListedKind, listed_kinds};
use crate::reading::{Kind, KindExtent, Reading, RefusedMaps, now};
use crate::server::{Answer, Refusal, Server, said};

/// The settings for reading a cluster.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The most objects on a page of a list.
    pub page: usize,
    /// The most requests under way at once.
    pub parallel: usize,
    /// The namespace that is read if the whole cluster may not be. Without one, that of the
    /// kubeconfig's context.
    pub namespace: Option<String>,
    /// The purpose of the reading.
    pub purpose: Purpose,
}

impl Settings {
    /// Returns the usual settings.
    pub fn new(purpose: Purpose) -> Self {
        Self { page: 500, parallel: 4, namespace: None, purpose }
    }
}

/// Reads a cluster. `progress` is called with what is being read, such as `Pods` or `1200 Pods`,
/// and the number of these objects so far.
///
/// # Errors
/// If no cluster is named, or its API server cannot be reached, or does not accept the credentials.
/// A missing right is no error.
pub fn read(
    access: &Access,
    settings: &Settings,
    progress: &dyn Fn(&str, usize),
) -> Result<Reading, LiveError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(LiveError::Runtime)?;
    runtime.block_on(async {
        let server = Server::find(access).await?;
        read_from(&server, settings, progress).await
    })
}

/// Reads the cluster of a server.
///
/// # Errors
/// If the server cannot be reached, or does not accept the credentials.
pub async fn read_from(
    server: &Server,
    settings: &Settings,
    progress: &dyn Fn(&str, usize),
) -> Result<Reading, LiveError> {
    let begun = now();
    let version = version(server).await?;
    let groups = groups(server).await?;
    let reader = Reader { server, settings, groups, progress };
    let (endpoints, others): (Vec<ListedKind>, Vec<ListedKind>) =
        listed_kinds().into_iter().partition(|kind| kind.kind == "Endpoints");
    let mut requests = stream::iter(others.into_iter().map(|kind| reader.kind(kind)))
        .buffered(settings.parallel.max(1));
    let mut kinds = Vec::new();
    while let Some(kind) = requests.next().await {
        kinds.push(kind?);
    }
    drop(requests);
    if !kinds.iter().any(Kind::is_all_slices) {
        for kind in endpoints {
            kinds.push(reader.kind(kind).await?);
        }
    }
    let (config_maps, refused) = reader.config_maps().await?;
    kinds.push(config_maps);
    Ok(Reading::new(kinds, refused, version, begun))
}

/// Reads the versions of API groups that a server has.
pub(crate) async fn groups(server: &Server) -> Result<Groups, LiveError> {
    Ok(match server.ask("/apis", "reading which kinds there are").await? {
        Answer::Text(text) => Groups::read(&text),
        _ => Groups::default(),
    })
}

/// Reads the server's version, if the server reports it.
pub(crate) async fn version(server: &Server) -> Result<Option<String>, LiveError> {
    let Answer::Text(text) = server.ask_first("/version").await? else { return Ok(None) };
    let version: Option<Value> = serde_json::from_str(&text).ok();
    Ok(version.and_then(|version| version["gitVersion"].as_str().map(str::to_owned)))
}

/// Reads objects, kind by kind.
pub(crate) struct Reader<'r> {
    pub(crate) server: &'r Server,
    pub(crate) settings: &'r Settings,
    pub(crate) groups: Groups,
    pub(crate) progress: &'r dyn Fn(&str, usize),
}

/// The result of reading a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConfigMapRead {
    Object(Arc<Kept>),
    Missing,
    Refused(Refusal),
}

impl Reader<'_> {
    /// Lists a kind in the first version that the server has.
    pub(crate) async fn kind(&self, listed: ListedKind) -> Result<Kind, LiveError> {
        let mut kind = Kind {
            kind: listed.kind,
            called: listed.called(),
            api_version: None,
            form: Form::of(listed.kind, self.settings.purpose),
            objects: Vec::new(),
            resource_version: None,
            extent: KindExtent::All,
        };
        for api_version in self.groups.versions_of(listed) {
            match self.list(&kind, listed, api_version, None).await? {
                Listed::Missing => {}
                Listed::All { objects, resource_version } => {
                    kind.api_version = Some(api_version);
                    (kind.objects, kind.resource_version) = (objects, resource_version);
                    break;
                }
                Listed::Refused(refusal) => {
                    kind.api_version = Some(api_version);
                    self.namespace_of(&mut kind, listed, api_version, refusal).await?;
                    break;
                }
            }
        }
        Ok(kind)
    }

    /// Lists the objects of one namespace, if only the right to the others is missing.
    async fn namespace_of(
        &self,
        kind: &mut Kind,
        listed: ListedKind,
        api_version: &'static str,
        refusal: Refusal,
    ) -> Result<(), LiveError> {
        kind.extent = KindExtent::Nothing(refusal.clone());
        if !listed.has_namespaces() || !refusal.is_forbidden {
            return Ok(());
        }
        let namespace = self.settings.namespace.as_deref().unwrap_or(self.server.namespace());
        let found = self.list(kind, listed, api_version, Some(namespace)).await?;
        if let Listed::All { objects, resource_version } = found {
            (kind.objects, kind.resource_version) = (objects, resource_version);
            kind.extent = KindExtent::Namespace(namespace.to_owned(), refusal);
        }
        Ok(())
    }

    async fn list(
        &self,
        kind: &Kind,
        listed: ListedKind,
        api_version: &'static str,
        namespace: Option<&str>,
    ) -> Result<Listed, LiveError> {
        let wanted = Wanted {
            path: &listed.path(api_version, namespace),
            api_version,
            kind: listed.kind,
            called: &kind.called,
            form: kind.form,
            page: self.settings.page,
        };
        let progress = |count, all: Option<usize>| match all.filter(|all| *all > count) {
            Some(all) => (self.progress)(&format!("{all} {}", kind.called), count),
            None => (self.progress)(&kind.called, count),
        };
        list(self.server, &wanted, &progress).await
    }

    /// Reads the ConfigMaps, and returns those that the server refuses too.
    async fn config_maps(&self) -> Result<(Kind, Option<RefusedMaps>), LiveError> {
        let answers = uturn_snapshot::config_maps().map(|(namespace, name)| async move {
            (format!("{namespace}/{name}"), self.config_map(namespace, name).await)
        });
        let mut answers = stream::iter(answers).buffered(self.settings.parallel.max(1));
        let mut all = Vec::new();
        while let Some((name, answer)) = answers.next().await {
            all.push((name, answer?));
        }
        Ok(config_maps(self.settings.purpose, all))
    }

    /// Reads a single ConfigMap.
    pub(crate) async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<ConfigMapRead, LiveError> {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        let form = Form::of("ConfigMap", self.settings.purpose);
        Ok(match self.server.ask(&path, "reading ConfigMaps").await? {
            Answer::Text(text) => match object_in(&text, "ConfigMap", name) {
                Ok(object) => {
                    ConfigMapRead::Object(Arc::new(keep(object, "v1", "ConfigMap", form)))
                }
                Err(why) => ConfigMapRead::Refused(Refusal::other(why)),
            },
            Answer::Missing => ConfigMapRead::Missing,
            Answer::Refused(refusal) => ConfigMapRead::Refused(refusal),
            Answer::Expired(_) => {
                let why = "the API server says that it has expired";
                ConfigMapRead::Refused(Refusal::other(why))
            }
        })
    }
}

/// Parses the object in an answer, which must have this kind and name.
fn object_in(text: &str, kind: &str, name: &str) -> Result<Value, String> {
    let object: Value = serde_json::from_str(text).unwrap_or_default();
    if object["kind"] == kind && object["metadata"]["name"] == name {
        Ok(object)
    } else {
        Err(format!("the server answered with {}, which is not this {kind}", said(text)))
    }
}

/// Sorts ConfigMaps into those that were read and those that the server refuses.
pub(crate) fn config_maps(
    purpose: Purpose,
    all: impl IntoIterator<Item = (String, ConfigMapRead)>,
) -> (Kind, Option<RefusedMaps>) {
    let mut kind = Kind {
        kind: "ConfigMap",
        called: "ConfigMaps".to_owned(),
        api_version: Some("v1"),
        form: Form::of("ConfigMap", purpose),
        objects: Vec::new(),
        resource_version: None,
        extent: KindExtent::All,
    };
    let (mut refused, mut why) = (Vec::new(), None);
    for (name, read) in all {
        match read {
            ConfigMapRead::Object(object) => kind.objects.push(object),
            ConfigMapRead::Missing => {}
            ConfigMapRead::Refused(refusal) => {
                refused.push(name);
                why.get_or_insert(refusal);
            }
        }
    }
    let refused = why.map(|refusal| {
        let what = format!("ConfigMaps {}", refused.join(", ")).into();
        let known = "not even whether they are there".into();
        let unread = Unread { what, known, why: refusal.why.into() };
        RefusedMaps { unread, is_forbidden: refusal.is_forbidden }
    });
    (kind, refused)
}
