//! Cures of Ingresses that nothing serves: a class that a controller in the cluster serves, or a
//! controller that serves those without one.

use uturn_document::edit::{Change, Tree};
use uturn_model::ingress::ServedClass;
use uturn_model::shell::Advice;
use uturn_model::{Ingress, Name, ObjectKind, ObjectRef};

use super::super::template::Template;
use super::super::{Case, Proposal, way};
use super::ingress_of;
use crate::Finding;

/// The annotation that named the class before there was a field.
const ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The annotation of the class that Ingresses without one get.
const DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// The beginning of the names of the Ingresses that cert-manager makes for challenges.
const CHALLENGE: &str = "cm-acme-http-solver-";

/// The argument with which a controller serves Ingresses without a class.
const WITHOUT_CLASS: &str = "--watch-ingress-without-class=true";

/// The controllers that have this argument.
const WATCHING: [&str; 2] = ["ingress-nginx", "HAProxy Ingress"];

/// The maximum number of classes that are proposed.
const MAX: usize = 4;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let ingress = ingress_of(case, fault);
    let Some((ingress, unserved)) =
        ingress.and_then(|ingress| Some((ingress, ingress.unserved.as_ref()?)))
    else {
        return Vec::new();
    };
    let served = unserved.served.iter().take(MAX);
    let mut all: Vec<Proposal> = served.map(|class| class_of(case, ingress, class)).collect();
    if ingress.class.is_none() {
        all.extend(unserved.served.iter().take(MAX).filter_map(|class| default_class(case, class)));
        let mut controllers: Vec<&ObjectRef> =
            unserved.served.iter().map(|class| &class.controller).collect();
        controllers.dedup();
        all.extend(controllers.into_iter().take(MAX).filter_map(|own| without_class(case, own)));
    }
    all
}

/// Proposes that a controller serves Ingresses without a class.
fn without_class(case: &Case<'_>, workload: &ObjectRef) -> Option<Proposal> {
    let mut known = case.cluster().controllers.iter();
    let controller = known.find(|own| own.workload == *workload)?;
    if !WATCHING.contains(&&*controller.product) {
        return None;
    }
    let template = Template::of_object(workload.clone())?;
    let title = format!("{WITHOUT_CLASS} for {}", template.object);
    let made = Proposal::new("without-class", 22, title)
        .costs(template.cost())
        .costs("it serves every Ingress without a class, also those that were meant for another");
    template.with_argument(case, made, WITHOUT_CLASS, |argument| argument.contains("ingress"))
}

/// Proposes that the Ingress names a class that is served.
fn class_of(case: &Case<'_>, ingress: &Ingress, class: &ServedClass) -> Proposal {
    let (object, value) = (ingress.object(), Tree::text(&*class.name));
    let field = way!["spec", "ingressClassName"];
    let annotation = way!["metadata", "annotations", ANNOTATION];
    let is_annotated = case.manifests.text_at(&object, &annotation).is_some();
    let has_field = case.manifests.text_at(&object, &field).is_some();
    let short = object.short();
    let mut made = if is_object(case, class) || !is_annotated {
        let with = if class_object(case, ingress, class).is_some() {
            ", and an IngressClass of this name".to_owned()
        } else {
            String::new()
        };
        let title = format!("ingressClassName {} for {short}{with}", class.name);
        let made = Proposal::new("ingress-class", 10, title).edit(
            object.clone(),
            field,
            Change::Set(value),
        );
        // The API server refuses an Ingress that has both when it is created.
        if is_annotated { made.edit(object, annotation, Change::Remove) } else { made }
    } else {
        let title = format!("{ANNOTATION}: {} for {short}", class.name);
        let made = Proposal::new("ingress-class", 10, title).edit(
            object.clone(),
            annotation,
            Change::Set(value),
        );
        if has_field { made.edit(object, field, Change::Remove) } else { made }
    };
    made.objects.extend(class_object(case, ingress, class));
    made = made.costs(format!(
        "{} answers for its hosts from then on: their names have to lead to it",
        class.controller
    ));
    if ingress.name.name.as_str().starts_with(CHALLENGE) {
        // What is edited here is what cert-manager makes of its own object.
        made.title =
            format!("ingressClassName {} in the Issuer whose solver made {short}", class.name);
        let typed = format!(
            "in the Issuer or ClusterIssuer of this challenge, set \
             spec.acme.solvers[].http01.ingress.ingressClassName to {} (and remove `class` there)",
            class.name
        );
        made = made.types(Advice::sentence(&typed)).costs(
            "cert-manager writes this Ingress: changed by itself, it lasts for this challenge, and the next \
             one has the old class again",
        );
    }
    made
}

/// Proposes that Ingresses without a class have one that is served.
fn default_class(case: &Case<'_>, class: &ServedClass) -> Option<Proposal> {
    let object = ObjectRef::global(ObjectKind::IngressClass, class.name.clone());
    let path = way!["metadata", "annotations", DEFAULT];
    let title = format!("IngressClass {} is the default one", class.name);
    (is_object(case, class) && case.manifests.has(&object)).then(|| {
        Proposal::new("default-class", 20, title)
            .edit(object, path, Change::Set(Tree::text("true")))
            .costs(
                "the API server writes the default class into Ingresses as they are created: \
                 create this one again",
            )
            .costs("every Ingress without a class gets it")
    })
}

/// Returns the IngressClass of a class that is none yet, if the Ingress has one of the same controller.
fn class_object(
    case: &Case<'_>,
    ingress: &Ingress,
    class: &ServedClass,
) -> Option<(String, ObjectRef, Tree)> {
    let cluster = case.cluster();
    let name = Name::new(ingress.class.as_deref()?).ok()?;
    let own = cluster.ingress_classes.get(&name)?;
    let is_same = ingress.controller.as_ref() == Some(&class.controller);
    if !is_same || is_object(case, class) {
        return None;
    }
    let tree = Tree::map([
        ("apiVersion", Tree::text("networking.k8s.io/v1")),
        ("kind", Tree::text("IngressClass")),
        ("metadata", Tree::map([("name", Tree::text(&*class.name))])),
        ("spec", Tree::map([("controller", Tree::text(&*own.controller))])),
    ]);
    let object = ObjectRef::global(ObjectKind::IngressClass, class.name.clone());
    Some(("ingressclass.yaml".to_owned(), object, tree))
}

fn is_object(case: &Case<'_>, class: &ServedClass) -> bool {
    let name = Name::new(&*class.name);
    name.is_ok_and(|name| case.cluster().ingress_classes.contains_key(&name))
}
