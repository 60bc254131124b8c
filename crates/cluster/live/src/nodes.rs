//! Captures nodes through the API: in kube-proxy's own pods, or in short-lived ones.

mod choose;
mod short_lived;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use uturn_model::Name;
use uturn_node::{Captured, Options};

use crate::exec::{Container, ExecError};
use crate::pod_machine::PodMachine;
use crate::server::Server;
use crate::watch::signalled;
pub use choose::{NodeChoice, NodePlan};
pub use short_lived::POD_NAMESPACE;
use short_lived::ShortLived;

/// The number of nodes that are captured at once.
const PARALLEL: usize = 4;

/// The time limit of a node, in limits of a tool. A capture runs some two dozen tools.
const TOOLS: u32 = 10;

/// The settings for capturing nodes.
#[derive(Clone, Debug)]
pub struct CaptureSettings {
    /// The parts that are captured.
    pub options: Options,
    /// The longest time of each tool. A node may take ten times as long.
    pub limit: Duration,
    /// The image of short-lived pods, for nodes that cannot be captured without one. With `None`,
    /// no pods are made.
    pub image: Option<String>,
}

/// The result for a node.
#[derive(Clone, Debug)]
pub struct NodeCapture {
    /// The node.
    pub name: Name,
    /// The pod in which the tools were run: `kube-system/kube-proxy-x2x4x`.
    pub pod: Option<String>,
    /// The capture, or the reason why there is none.
    pub captured: Result<Captured, String>,
}

/// Captures nodes; see [`Session::capture`](crate::Session::capture).
pub(crate) async fn capture(
    server: &Arc<Server>,
    plans: Vec<NodePlan>,
    settings: &CaptureSettings,
    notes: &dyn Fn(&str),
) -> Option<Vec<NodeCapture>> {
    let (stopper, stop) = watch::channel(false);
    let pods = ShortLived::new(server.client(), settings, stop.clone());
    let work = Work { server, settings, stop: stop.clone(), pods: &pods };
    let all = AssertUnwindSafe(async {
        if settings.image.is_some() {
            pods.remove_leftovers(notes).await;
        }
        let nodes = plans.into_iter().map(|plan| work.node(plan, notes));
        stream::iter(nodes).buffered(PARALLEL).collect::<Vec<NodeCapture>>().await
    });
    let worked = match select(pin!(all.catch_unwind()), pin!(signalled())).await {
        Either::Left((worked, _)) => worked,
        Either::Right(((), all)) => {
            // This function holds a receiver, so this cannot fail.
            let _ = stopper.send(true);
            all.await
        }
    };
    pods.remove_all(notes).await;
    let captures = worked.unwrap_or_else(|panic| resume_unwind(panic));
    let was_stopped = *stop.borrow();
    (!was_stopped).then_some(captures)
}

struct Work<'w> {
    server: &'w Arc<Server>,
    settings: &'w CaptureSettings,
    stop: watch::Receiver<bool>,
    pods: &'w ShortLived,
}

impl Work<'_> {
    /// Captures a node in kube-proxy's pod, and in a short-lived one if that capture lacks
    /// something.
    async fn node(&self, plan: NodePlan, notes: &dyn Fn(&str)) -> NodeCapture {
        let NodePlan { name, proxy } = plan;
        let pod = proxy.as_ref().map(|proxy| format!("{}/{}", proxy.namespace, proxy.pod));
        let captured = match proxy {
            Some(proxy) => self.capture(proxy, &name).await,
            None if self.settings.image.is_some() => {
                Err("no pod of kube-proxy runs there".to_owned())
            }
            None => {
                let why = "no pod of kube-proxy runs there; --image names an image for a pod";
                Err(why.to_owned())
            }
        };
        let found = NodeCapture { name, pod, captured };
        let is_whole =
            found.captured.as_ref().is_ok_and(|captured| captured.manifest.lacks().count() == 0);
        if self.settings.image.is_none() || is_whole || *self.stop.borrow() {
            return found;
        }
        self.better(found, notes).await
    }

    /// Captures a node in a short-lived pod. Returns the more complete of the two captures.
    async fn better(&self, found: NodeCapture, notes: &dyn Fn(&str)) -> NodeCapture {
        let made = self.pods.create(&found.name).await;
        let (pod, captured) = match made {
            Ok(container) => {
                let pod = container.pod.clone();
                let captured = self.capture(container, &found.name).await;
                self.pods.remove(&pod, notes).await;
                (Some(format!("{POD_NAMESPACE}/{pod}")), captured)
            }
            Err(why) => (None, Err(why)),
        };
        let lacks = |captured: &Captured| captured.manifest.lacks().count();
        match (&found.captured, captured) {
            (Ok(first), Ok(second)) if lacks(first) <= lacks(&second) => found,
            (_, Ok(second)) => NodeCapture { pod, captured: Ok(second), ..found },
            (Ok(_), Err(why)) => {
                notes(&format!("node {}: {why}", found.name));
                found
            }
            (Err(first), Err(second)) => {
                let captured = Err(format!("{first}; {second}"));
                NodeCapture { captured, ..found }
            }
        }
    }

    /// Captures a node in a container of one of its pods.
    async fn capture(&self, container: Container, node: &Name) -> Result<Captured, String> {
        let pod = format!("{}/{}", container.namespace, container.pod);
        let (stopper, stop) = watch::channel(false);
        let (server, limit) = (Arc::clone(self.server), self.settings.limit);
        let machine = PodMachine::new(server, container, limit, Handle::current(), stop);
        let (name, options) = (node.clone(), self.settings.options);
        let mut works = spawn_blocking(move || {
            match machine.execute(&["sh", "-c", "exit 0"]) {
                // An image without a shell may have the tools.
                Ok(_) | Err(ExecError::NoProgram(_)) => {}
                Err(error) => return Err(error),
            }
            Ok(uturn_node::capture(&machine, &name, options))
        });
        let mut all_stop = self.stop.clone();
        let limit = limit * TOOLS;
        let ended = tokio::select! {
            ended = &mut works => Some(ended),
            () = tokio::time::sleep(limit) => None,
            _ = all_stop.wait_for(|is_over| *is_over) => None,
        };
        let Some(ended) = ended else {
            // Running tools end at once, and no others are begun.
            let _ = stopper.send(true);
            let _ = works.await;
            return Err(format!("in pod {pod}: not done after {} s", limit.as_secs()));
        };
        match ended {
            Ok(Ok(captured)) if captured.files.is_empty() => {
                let why = captured.manifest.lacks().find_map(|part| part.why.clone());
                let why = why.unwrap_or_else(|| "its image has none of the tools".to_owned());
                Err(format!("in pod {pod}: nothing could be captured: {why}"))
            }
            Ok(Ok(captured)) => Ok(captured),
            Ok(Err(ExecError::Forbidden(why))) => {
                Err(format!("in pod {pod}: {why}; uturn collect --rbac --nodes prints the rights"))
            }
            Ok(Err(error)) => Err(format!("in pod {pod}: {error}")),
            Err(_) => Err(format!("in pod {pod}: a fault of uturn ended it")),
        }
    }
}
