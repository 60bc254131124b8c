//! Runs a command in a container, as `kubectl exec` does.

use std::future::Future;
use std::time::Duration;

use futures_util::future::try_join3;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{Api, AttachParams, AttachedProcess};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::error::with_causes;
use crate::server::Server;

/// The most bytes that a command may print on each of its outputs.
pub const MAX_OUTPUT: usize = 256 << 20;

/// A container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The name of the container. Without one, the API server picks the pod's first, or that of its
    /// annotation `kubectl.kubernetes.io/default-container`.
    pub container: Option<String>,
}

/// The output of a command, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The command's standard output.
    pub stdout: Vec<u8>,
    /// The command's error output.
    pub stderr: Vec<u8>,
    /// The exit code. A shell returns 126 and 127 for a program that it cannot run.
    pub exit: i32,
}

/// The reason why a command did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExecError {
    /// A right is missing: create and get of `pods/exec`.
    #[error("{0}")]
    Forbidden(String),
    /// The pod or the container does not exist, or does not run.
    #[error("{0}")]
    NoContainer(String),
    /// The container has no such program.
    #[error("{0}")]
    NoProgram(String),
    /// The command did not end in time. It may still run in the container, as the API has no way to
    /// end it.
    #[error("did not end within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// The connection broke before the command ended.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// The command printed more than [`MAX_OUTPUT`].
    #[error("printed more than {} MiB", .0 >> 20)]
    TooMuch(usize),
    /// The API server or the kubelet refuses for another reason.
    #[error("{0}")]
    Failed(String),
}

/// The number of bytes that may wait to be read.
const BUFFER: usize = 64 << 10;

/// Runs a command in a container. `limit` includes the time to connect. The API server may not be
/// silent for longer than for other requests either.
///
/// An exit code other than 0 is no error.
///
/// # Errors
/// If the command cannot be started, or its end is not known.
pub async fn exec(
    server: &Server,
    container: &Container,
    command: &[String],
    limit: Duration,
) -> Result<Executed, ExecError> {
    let run = run(server, container, command);
    tokio::time::timeout(limit, run).await.unwrap_or(Err(ExecError::TimedOut(limit)))
}

async fn run(
    server: &Server,
    container: &Container,
    command: &[String],
) -> Result<Executed, ExecError> {
    let pods: Api<Pod> = Api::namespaced(server.client().clone(), &container.namespace);
    let params = AttachParams {
        container: container.container.clone(),
        max_stdout_buf_size: Some(BUFFER),
        max_stderr_buf_size: Some(BUFFER),
        ..AttachParams::default()
    };
    let process = pods.exec(&container.pod, command, &params).await;
    let mut process = process.map_err(|why| refused(&why))?;
    let (stdout, stderr) = (process.stdout(), process.stderr());
    let status = process.take_status();
    // A connection that breaks does not end the outputs.
    let ended = try_join3(read(stdout), read(stderr), end(status)).await;
    let (stdout, stderr, status) = match ended {
        Ok(ended) => ended,
        Err(Some(error)) => return Err(error),
        Err(None) => return Err(lost(process).await),
    };
    let executed = Executed { stdout, stderr, exit: exit_code(&status)? };
    if executed.exit != 0 && is_of_runtime(&executed) {
        Err(ExecError::NoProgram(first_line(&executed)))
    } else {
        Ok(executed)
    }
}

/// Reads the whole output of a command.
async fn read(output: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Option<ExecError>> {
    let Some(output) = output else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    let read = output.take(MAX_OUTPUT as u64 + 1).read_to_end(&mut bytes).await;
    read.map_err(|why| Some(ExecError::Lost(why.to_string())))?;
    if bytes.len() > MAX_OUTPUT { Err(Some(ExecError::TooMuch(MAX_OUTPUT))) } else { Ok(bytes) }
}

/// Waits for the end of the command. Fails without an error if the connection ended before.
async fn end(
    status: Option<impl Future<Output = Option<Status>>>,
) -> Result<Status, Option<ExecError>> {
    match status {
        Some(status) => status.await.ok_or(None),
        None => Err(None),
    }
}

async fn lost(process: AttachedProcess) -> ExecError {
    let ended = process.join().await;
    let why = ended.err().map(|why| with_causes(&why));
    ExecError::Lost(why.unwrap_or_else(|| "it was closed before the command ended".to_owned()))
}

/// Converts the API server's error for a command that did not begin.
pub(crate) fn refused(error: &kube::Error) -> ExecError {
    match error {
        kube::Error::Api(status) => {
            let why = match status.message.trim() {
                "" => format!("status {}", status.code),
                message => message.to_owned(),
            };
            match status.code {
                403 => ExecError::Forbidden(why),
                404 => ExecError::NoContainer(why),
                400 if is_no_container(&why) => ExecError::NoContainer(why),
                _ => failed(why),
            }
        }
        other => ExecError::Lost(with_causes(other)),
    }
}

/// Returns the exit code of a command that was started.
fn exit_code(status: &Status) -> Result<i32, ExecError> {
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    let mut codes = causes.filter(|cause| cause.reason.as_deref() == Some("ExitCode"));
    let code = codes.next().and_then(|cause| cause.message.as_deref()?.parse().ok());
    code.ok_or_else(|| failed(status.message.clone().unwrap_or_default()))
}

/// Sorts the message of the kubelet and the container's runtime about a command that was not
/// started.
fn failed(why: String) -> ExecError {
    if lacks_program(&why) {
        ExecError::NoProgram(why)
    } else if is_no_container(&why) {
        ExecError::NoContainer(why)
    } else {
        ExecError::Failed(why)
    }
}

/// Returns whether a runtime reports that the program does not exist. Each runtime words that
/// differently.
fn lacks_program(why: &str) -> bool {
    let why = why.to_lowercase();
    let is_missing = why.contains("not found") || why.contains("no such file or directory");
    is_missing && (why.contains("executable file") || why.contains("exec failed"))
}

fn is_no_container(why: &str) -> bool {
    [
        "container not found",
        "pod does not exist",
        "is not valid for pod",
        "does not have a host assigned",
        "current phase is",
    ]
    .iter()
    .any(|known| why.contains(known))
}

/// Returns whether the output is the runtime's. Some runtimes print errors as if the command had.
fn is_of_runtime(executed: &Executed) -> bool {
    let text = first_line(executed);
    text.contains("OCI runtime") && lacks_program(&text)
}

/// Returns the first line of the error output, or else of the output.
fn first_line(executed: &Executed) -> String {
    let lines = [&executed.stderr, &executed.stdout].map(|bytes| {
        let start = &bytes[..bytes.len().min(4096)];
        let text = String::from_utf8_lossy(start).into_owned();
        text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    });
    lines.into_iter().flatten().next().unwrap_or_default()
}
