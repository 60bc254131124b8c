//! Determines the workload whose pods serve an Ingress: by the class of the Ingress, and by what
//! each controller is told to watch.

use uturn_model::wording::some_of;
use uturn_model::{ObjectRef, Text};

use super::arguments::Arguments;
use super::candidate::{Candidate, Open};
use super::products::{self, Ask};
use crate::decode::objects::Objects;

/// The result that no workload is known to serve an Ingress.
pub(super) struct NotServed<'c, 'o> {
    pub(super) why: Option<Open>,
    /// The candidates that may serve the Ingress.
    pub(super) possible: Vec<&'c Candidate<'o>>,
}

impl<'c, 'o> NotServed<'c, 'o> {
    fn new(because: impl Into<Text>, settle: impl Into<Text>) -> Self {
        Self { why: Some(Open::new(because, settle)), possible: Vec::new() }
    }

    /// Returns the result for an Ingress without a class, of a cloud's controller or of none:
    /// controllers in the cluster that take Ingresses without a class may serve it too.
    pub(super) fn beside_the_cloud(
        all: &'c [Candidate<'o>],
        ask: &Ask<'_>,
        objects: &Objects,
    ) -> Result<&'c Candidate<'o>, Self> {
        Err(Self { why: None, possible: serving(all.iter(), ask, objects) })
    }
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
    objects: &Objects,
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
        [] if meant.is_empty() => Err(NotServed::new(
            format!("no pods of {product} are given"),
            "give the Deployment or DaemonSet of the controller, and its Service",
        )),
        [] => {
            let names: Vec<&ObjectRef> =
                meant.iter().map(|candidate| &candidate.workload).collect();
            Err(NotServed::new(
                format!("{} {} set to serve other classes", some_of(&names), is_or_are(&names)),
                "give the controller of this class, or compare its arguments with the class",
            ))
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

fn is_or_are<T>(all: &[T]) -> &'static str {
    if all.len() == 1 { "is" } else { "are" }
}
