//! Determines the workload whose pods serve an Ingress: by the class of the Ingress, and by what
//! each controller is told to watch.

use uturn_model::ingress::{ServedClass, Unserved};
use uturn_model::wording::some_of;
use uturn_model::{IngressClass, ObjectRef, Text};

use super::arguments::Arguments;
use super::candidate::{Candidate, Open};
use super::products::{self, Ask};
use crate::decode::objects::Objects;

/// The result that no workload is known to serve an Ingress.
pub(super) struct NotServed<'c, 'o> {
    pub(super) why: Option<Open>,
    /// The candidates that may serve the Ingress.
    pub(super) possible: Vec<&'c Candidate<'o>>,
    /// The reason why no candidate serves the Ingress, if all of them are given.
    pub(super) unserved: Option<Box<Unserved>>,
    /// The candidates that ignore the Ingress, if that is certain: they answer for its hosts.
    pub(super) ignoring: Vec<&'c Candidate<'o>>,
}

impl<'c, 'o> NotServed<'c, 'o> {
    fn new(because: impl Into<Text>, settle: impl Into<Text>) -> Self {
        let why = Some(Open::new(because, settle));
        Self { why, possible: Vec::new(), unserved: None, ignoring: Vec::new() }
    }

    /// Returns the result for an Ingress without a class, of a cloud's controller or of none:
    /// controllers in the cluster that take Ingresses without a class may serve it too.
    pub(super) fn beside_the_cloud(
        all: &'c [Candidate<'o>],
        ask: &Ask<'_>,
        objects: &Objects,
    ) -> Result<&'c Candidate<'o>, Self> {
        let possible = serving(all.iter(), ask, objects);
        Err(Self { why: None, possible, unserved: None, ignoring: Vec::new() })
    }

    /// Returns the result for an Ingress without a class in a cluster whose pods are all given and
    /// that shows no cloud: only its own controllers can serve the Ingress.
    pub(super) fn without_cloud(
        all: &'c [Candidate<'o>],
        ask: &Ask<'_>,
        objects: &Objects,
    ) -> Result<&'c Candidate<'o>, Self> {
        match serving(all.iter(), ask, objects).as_slice() {
            [only] => Ok(only),
            [] => {
                let not =
                    Self { why: None, possible: Vec::new(), unserved: None, ignoring: Vec::new() };
                Err(not.ignored_by(all.iter().collect(), ask, objects).knowing(all, ask, objects))
            }
            _ => Self::beside_the_cloud(all, ask, objects),
        }
    }

    /// Adds that nothing serves the Ingress, as no pods of its controller run.
    fn without_pods_of(mut self, product: &str, ask: &Ask<'_>) -> Self {
        let class = match ask.class_name() {
            Some(class) => format!("its class {class} is one of {product}"),
            None => format!("it is written for {product}"),
        };
        self.unserved = Some(Box::new(Unserved {
            because: format!("{class}, of which no pods run here").into(),
            condition: Some(format!("no program that is not recognised is {product}").into()),
            served: Vec::new(),
        }));
        self
    }

    /// Adds that nothing serves the Ingress: these candidates are all that could, and ignore it.
    fn ignored_by(mut self, all: Vec<&'c Candidate<'o>>, ask: &Ask<'_>, objects: &Objects) -> Self {
        let begins = match ask.name {
            Some(class) => format!("its class is {class}"),
            None => "it names no class, no IngressClass is the default one".to_owned(),
        };
        if all.is_empty() {
            let because = format!("{begins}, and no Ingress controller runs here");
            let condition = "no program that is not recognised serves Ingresses";
            let (because, condition) = (because.into(), Some(condition.into()));
            self.unserved = Some(Box::new(Unserved { because, condition, served: Vec::new() }));
            return self;
        }
        let others: Vec<String> =
            all.iter().map(|candidate| what_it_serves(candidate, ask, objects)).collect();
        let because = format!("{begins}, and {}", others.join(", "));
        let doubts = all.iter().find_map(|candidate| {
            let arguments = Arguments::of(candidate, objects);
            // The value of a variable is not known.
            let is_open = arguments.namespaces().is_some_and(|names| names.contains('$'));
            let open =
                || format!("{} does not watch namespace {}", candidate.workload, ask.namespace);
            let doubt = (candidate.product.doubt)(&arguments, ask);
            let doubt = doubt.map(|doubt| format!("{} {doubt}", candidate.workload));
            doubt.or_else(|| is_open.then(open)).map(Text::from)
        });
        if doubts.is_none() {
            self.why = None;
            self.ignoring = all;
        }
        let because = because.into();
        let unserved = Unserved { because, condition: doubts, served: Vec::new() };
        self.unserved = Some(Box::new(unserved));
        self
    }

    /// Adds the classes of which one of all candidates would serve the Ingress.
    fn knowing(mut self, all: &[Candidate<'_>], ask: &Ask<'_>, objects: &Objects) -> Self {
        if let Some(unserved) = &mut self.unserved {
            let of = |candidate| classes_served(candidate, ask, objects);
            unserved.served = all.iter().flat_map(of).collect();
        }
        self
    }
}

/// Returns why the candidate that is taken to serve an Ingress may ignore it.
pub(super) fn may_ignore(
    candidate: &Candidate<'_>,
    ask: &Ask<'_>,
    objects: &Objects,
) -> Option<Unserved> {
    let doubt = (candidate.product.may_ignore)(&Arguments::of(candidate, objects), ask)?;
    let (class, workload) = (ask.class_name().unwrap_or_default(), &candidate.workload);
    let arguments = Arguments::of(candidate, objects);
    let named = arguments.class_by_name().filter(|name| {
        let class = objects.ingress_classes.0.values().find(|own| own.name.as_str() == *name);
        let own = Ask { class, name: Some(name), ..*ask };
        (candidate.product.serves)(&arguments, &own)
            && (candidate.product.may_ignore)(&arguments, &own).is_none()
    });
    let named =
        named.map(|name| ServedClass { name: name.into(), controller: candidate.workload.clone() });
    Some(Unserved {
        because: format!("class {class} fits {workload} only by its spec.controller").into(),
        condition: Some(format!("{workload} {doubt}").into()),
        served: named.into_iter().collect(),
    })
}

/// Returns the classes of which a candidate serves Ingresses of the namespace.
fn classes_served(candidate: &Candidate<'_>, ask: &Ask<'_>, objects: &Objects) -> Vec<ServedClass> {
    let arguments = Arguments::of(candidate, objects);
    let served =
        |name: &str| ServedClass { name: name.into(), controller: candidate.workload.clone() };
    let serves = |name: &str, class: Option<&IngressClass>| {
        let own = Ask { class, name: Some(name), ..*ask };
        (candidate.product.serves)(&arguments, &own)
    };
    let classes = objects.ingress_classes.0.values();
    let classes = classes.filter(|class| serves(class.name.as_str(), Some(*class)));
    let mut all: Vec<ServedClass> = classes.map(|class| served(class.name.as_str())).collect();
    if all.is_empty() {
        let by_name = arguments.class_by_name().filter(|name| serves(name, None));
        all.extend(by_name.map(served));
    }
    all
}

/// Returns the candidates whose arguments let them serve an Ingress.
fn serving<'c, 'o: 'c>(
    all: impl Iterator<Item = &'c Candidate<'o>>,
    ask: &Ask<'_>,
    objects: &Objects,
) -> Vec<&'c Candidate<'o>> {
    let serves = |candidate: &&Candidate<'_>| {
        (candidate.product.serves)(&Arguments::of(candidate, objects), ask)
    };
    all.filter(serves).collect()
}

/// Returns the workload whose pods serve an Ingress of a product.
pub(super) fn server<'c, 'o>(
    all: &'c [Candidate<'o>],
    product: &str,
    ask: &Ask<'_>,
    (objects, are_all_given): (&Objects, bool),
) -> Result<&'c Candidate<'o>, NotServed<'c, 'o>> {
    let is_known = products::is_known(product);
    // If the controller of a class is not a known product, the candidate whose arguments name the
    // class is meant.
    let is_meant = |candidate: &&Candidate<'_>| {
        if is_known {
            candidate.product.name == product
        } else {
            Arguments::of(candidate, objects).name_class(ask)
        }
    };
    let meant: Vec<&Candidate<'_>> = all.iter().filter(is_meant).collect();
    let serving = serving(meant.iter().copied(), ask, objects);
    match serving.as_slice() {
        [only] => Ok(only),
        [] if !is_known => {
            let mut not = NotServed::new(
                "what its pods do with a request is not modelled",
                "trace to the Service of that controller",
            );
            // Without an IngressClass object, the class may belong to any controller that takes
            // every class.
            if ask.class.is_none() {
                not.possible = self::serving(all.iter(), ask, objects);
            }
            Err(not)
        }
        [] if meant.is_empty() => {
            let not = NotServed::new(
                format!("no pods of {product} are given"),
                "give the Deployment or DaemonSet of the controller, and its Service",
            );
            let is_any = !self::serving(all.iter(), ask, objects).is_empty();
            Err(if are_all_given && !is_any {
                not.without_pods_of(product, ask).knowing(all, ask, objects)
            } else {
                not
            })
        }
        [] => {
            let names: Vec<&ObjectRef> =
                meant.iter().map(|candidate| &candidate.workload).collect();
            let not = NotServed::new(
                format!("{} {} set to serve other classes", some_of(&names), is_or_are(&names)),
                "give the controller of this class, or compare its arguments with the class",
            );
            // A controller of another product may take every class.
            let is_any = !self::serving(all.iter(), ask, objects).is_empty();
            Err(if are_all_given && !is_any {
                not.ignored_by(meant, ask, objects).knowing(all, ask, objects)
            } else {
                not
            })
        }
        several => {
            let names: Vec<&ObjectRef> =
                several.iter().map(|candidate| &candidate.workload).collect();
            let mut not = NotServed::new(
                format!("each of {} may serve it", some_of(&names)),
                "set another class on each of the controllers",
            );
            not.possible = serving;
            Err(not)
        }
    }
}

/// Describes what a controller serves in place of an Ingress that it ignores.
fn what_it_serves(candidate: &Candidate<'_>, ask: &Ask<'_>, objects: &Objects) -> String {
    let arguments = Arguments::of(candidate, objects);
    let namespaces = arguments
        .namespaces()
        .filter(|names| names.split(',').all(|name| name.trim() != ask.namespace.as_str()));
    if let Some(names) = namespaces {
        return format!("{} watches namespace {names} only", candidate.workload);
    }
    let serves = |class: &&IngressClass| {
        let own = Ask { class: Some(*class), name: Some(class.name.as_str()), ..*ask };
        (candidate.product.serves)(&arguments, &own)
    };
    let classes = objects.ingress_classes.0.values().filter(serves);
    let mut names: Vec<&str> = classes.map(|class| class.name.as_str()).collect();
    if names.is_empty() {
        names.extend(arguments.class_by_name());
    }
    match names.as_slice() {
        [] => format!("{} serves other classes only", candidate.workload),
        [only] => format!("{} serves class {only} only", candidate.workload),
        several => format!("{} serves classes {} only", candidate.workload, several.join(", ")),
    }
}

fn is_or_are<T>(all: &[T]) -> &'static str {
    if all.len() == 1 { "is" } else { "are" }
}
