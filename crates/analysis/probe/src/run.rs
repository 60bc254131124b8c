//! Makes calls one after the other.

use std::time::{Duration, Instant};

use thiserror::Error;

use crate::call::Call;
use crate::exec::{Exec, ExecError};
use crate::tool::{CallEnd, MeasuredCall, Tool};

/// The time that a command may take in addition to its call: to start, and to end.
const GRACE: Duration = Duration::from_secs(20);
/// The time limit of the command that shows whether a pod has a tool.
const DETECTION: Duration = Duration::from_secs(30);

/// The number of calls and their time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of calls.
    pub calls: u32,
    /// The time limit of one call.
    pub call: Duration,
    /// The time limit of all calls. No call begins that might exceed it.
    pub total: Duration,
}

/// Calls that were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measurement {
    /// The calls in the order in which they were made.
    pub calls: Vec<MeasuredCall>,
    /// The reason why there are fewer calls than requested.
    pub stopped: Option<Stopped>,
    /// The total time of the calls.
    pub took: Duration,
}

/// The reason why no more calls were made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Stopped {
    /// The user stopped the measurement.
    #[error("stopped")]
    Interrupted,
    /// Commands cannot be run any more.
    #[error("{0}")]
    Lost(String),
    /// The time limit of all calls is over.
    #[error("the time for all calls is over")]
    TimeOver,
}

/// Finds the first of these tools that can make the call and that the pod has.
///
/// # Errors
/// Returns an error if no commands can be run.
pub fn find_tool(
    exec: &mut dyn Exec,
    call: &Call,
    among: &[Tool],
) -> Result<Option<Tool>, ExecError> {
    for tool in among.iter().copied().filter(|tool| tool.can(call)) {
        match exec.run(&tool.detection(), DETECTION) {
            Ok(ran) if tool.is_shown_by(&ran) => return Ok(Some(tool)),
            Ok(_) | Err(ExecError::NoProgram | ExecError::TimedOut) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(None)
}

/// Makes calls, one at a time. Reports each to `progress`.
pub fn measure(
    exec: &mut dyn Exec,
    tool: Tool,
    call: &Call,
    limits: &Limits,
    progress: &mut dyn FnMut(&[MeasuredCall]),
) -> Measurement {
    let began = Instant::now();
    let command = tool.command(call, limits.call);
    let mut measurement = Measurement::default();
    while measurement.calls.len() < limits.calls as usize {
        if began.elapsed() + limits.call > limits.total {
            measurement.stopped = Some(Stopped::TimeOver);
            break;
        }
        match exec.run(&command, limits.call + GRACE) {
            Ok(ran) => measurement.calls.push(tool.read(call, &ran)),
            Err(ExecError::TimedOut) => measurement.calls.push(MeasuredCall {
                end: CallEnd::Failed(format!("{tool} did not end in time")),
                waited: limits.call,
                address: None,
            }),
            Err(ExecError::Interrupted) => {
                measurement.stopped = Some(Stopped::Interrupted);
                break;
            }
            Err(why @ (ExecError::Refused(_) | ExecError::NoProgram)) => {
                measurement.stopped = Some(Stopped::Lost(why.to_string()));
                break;
            }
        }
        progress(&measurement.calls);
    }
    measurement.took = began.elapsed();
    measurement
}

#[cfg(test)]
mod tests {
    use uturn_model::Port;

    use super::*;
    use crate::exec::Ran;

    /// An executor that answers commands from a list, and then not at all.
    struct Script(Vec<Result<Ran, ExecError>>, Vec<String>);

    impl Exec for Script {
        fn run(&mut self, command: &[String], _: Duration) -> Result<Ran, ExecError> {
            self.1.push(command[0].clone());
            if self.0.is_empty() { Err(ExecError::NoProgram) } else { self.0.remove(0) }
        }
    }

    fn call() -> Call {
        Call::new("10.0.0.1", Port::new(80).unwrap(), None, None).unwrap()
    }

    fn printed(text: &str) -> Result<Ran, ExecError> {
        Ok(Ran { stdout: text.to_owned(), ..Ran::default() })
    }

    const LIMITS: Limits =
        Limits { calls: 3, call: Duration::from_secs(10), total: Duration::from_secs(600) };

    #[test]
    fn the_first_tool_that_can_and_is_there_is_taken() {
        let mut pod = Script(vec![Err(ExecError::NoProgram), printed("v22.1.0\n")], Vec::new());
        assert_eq!(find_tool(&mut pod, &call(), &Tool::ALL), Ok(Some(Tool::Node)));
        // curl makes no connection without a request.
        assert_eq!(pod.1, ["python3", "node"]);
        assert_eq!(find_tool(&mut pod, &call(), &Tool::ALL), Ok(None));
        let mut forbidden = Script(vec![Err(ExecError::Refused("no".into()))], Vec::new());
        assert!(find_tool(&mut forbidden, &call(), &Tool::ALL).is_err());
    }

    #[test]
    fn what_was_measured_before_a_stop_is_kept() {
        let good = || printed("uturn connected 0 0.002\n");
        for (end, stopped) in [
            (Err(ExecError::Interrupted), Some(Stopped::Interrupted)),
            (Err(ExecError::Refused("gone".into())), Some(Stopped::Lost("gone".into()))),
            (good(), None),
        ] {
            let mut pod = Script(vec![good(), good(), end], Vec::new());
            let mut seen = 0;
            let measured = measure(&mut pod, Tool::Python, &call(), &LIMITS, &mut |calls| {
                seen = calls.len();
            });
            assert_eq!(measured.stopped, stopped);
            assert_eq!(measured.calls.len(), if stopped.is_some() { 2 } else { 3 });
            assert_eq!(measured.calls.len(), seen);
            assert_eq!(measured.calls[1].end, CallEnd::Connected);
        }
    }

    #[test]
    fn no_call_begins_that_might_take_too_long() {
        let limits = Limits { total: Duration::from_secs(9), ..LIMITS };
        let mut pod = Script(Vec::new(), Vec::new());
        let measured = measure(&mut pod, Tool::Python, &call(), &limits, &mut |_| {});
        assert_eq!((measured.stopped, pod.1.len()), (Some(Stopped::TimeOver), 0));
    }
}
