//! Runs commands in a container of a running cluster.

use std::time::Duration;

use uturn_cli::Failure;
use uturn_live::{Container, DebugContainer, PodSession, SessionError};
use uturn_model::NamespacedName;
use uturn_probe::{Exec, ExecError, Ran};

use crate::cli::ClusterArgs;
use crate::input::live;

/// A container of a pod, and the connection to its cluster.
pub(super) struct PodCommands {
    session: PodSession,
    container: Container,
}

impl PodCommands {
    pub(super) fn connect(
        args: &ClusterArgs,
        pod: &NamespacedName,
        container: Option<String>,
    ) -> Result<Self, Failure> {
        let session = PodSession::new(live::connect(&args.api)?);
        let container = Container {
            namespace: pod.namespace.to_string(),
            pod: pod.name.to_string(),
            container,
        };
        Ok(Self { session, container })
    }

    /// Returns the container's name, if it is not the pod's default one.
    pub(super) fn container(&self) -> Option<&str> {
        self.container.container.as_deref()
    }

    /// Adds a container to the pod, in which commands are run from now on. Returns its name.
    pub(super) fn add_container(&mut self, wanted: &DebugContainer) -> Result<String, String> {
        let name = self
            .session
            .add_container(wanted)
            .map_err(|why| explained(why, "get of pods and patch of pods/ephemeralcontainers"))?;
        self.container.container = Some(name.clone());
        Ok(name)
    }
}

impl Exec for PodCommands {
    fn run(&mut self, command: &[String], limit: Duration) -> Result<Ran, ExecError> {
        let executed = self.session.exec(&self.container, command, limit);
        let executed = executed.map_err(|why| match why {
            SessionError::Stopped => ExecError::Interrupted,
            SessionError::Exec(uturn_live::ExecError::NoProgram(_)) => ExecError::NoProgram,
            SessionError::Exec(uturn_live::ExecError::TimedOut(_)) => ExecError::TimedOut,
            other => ExecError::Refused(explained(other, "get and create of pods/exec")),
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Ran {
            stdout: text(&executed.stdout),
            stderr: text(&executed.stderr),
            exit: executed.exit,
        })
    }
}

/// Explains why something was not done, and names the rights that it needs if one is missing.
fn explained(why: SessionError, rights: &str) -> String {
    match why {
        SessionError::Exec(uturn_live::ExecError::Forbidden(message)) => {
            format!("{message}\nit needs {rights}: uturn collect --rbac --probe prints the rights")
        }
        other => other.to_string(),
    }
}
