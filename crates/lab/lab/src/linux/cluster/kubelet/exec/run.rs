//! Runs a command, with its input and outputs as channels of a WebSocket.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::Site;
use super::call::{Call, Stream};
use crate::linux::kernel::system::find;

/// The channels. The first byte of each message names its channel.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
/// The message that closes the channel named by the next byte.
const CLOSE: u8 = 255;

/// The largest number of bytes that are read at once.
const PART: usize = 64 << 10;

/// Runs the command of a call to its end.
pub(super) async fn run(call: &Call, stream: Stream, site: &Site) {
    let (mut sink, mut source) = stream.split();
    let status = match start(call, site) {
        Ok(child) => match serve(child, &mut sink, &mut source).await {
            Some(status) => status,
            // The caller has gone. The command was killed when it was dropped.
            None => return,
        },
        Err(why) => internal_error(&why),
    };
    let message = [&[STATUS], status.to_string().as_bytes()].concat();
    // kubectl takes a close without a code for a broken connection.
    let close = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    let is_sent = sink.send(Message::binary(message)).await.is_ok();
    if is_sent && sink.send(Message::Close(Some(close))).await.is_ok() {
        // Further messages of the caller are not needed.
        while let Some(Ok(_)) = source.next().await {}
    }
}

/// Starts the command, or returns why it cannot be started in the words of container runtimes.
fn start(call: &Call, site: &Site) -> Result<Child, String> {
    let program = call.command.first().map(String::as_str).unwrap_or_default();
    let is_there =
        if program.contains('/') { Path::new(program).is_file() } else { find(program).is_some() };
    if !is_there {
        return Err(format!(
            "error executing command in container: exec: {program:?}: executable file not found \
             in $PATH"
        ));
    }
    let input = if call.has_input { Stdio::piped() } else { Stdio::null() };
    let mut command = Command::new(&site.program);
    command.args(["lab", "exec", &call.place, "--"]).args(&call.command);
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    // The supervisor handles Ctrl-C in its own terminal.
    command.process_group(0).kill_on_drop(true);
    command.spawn().map_err(|why| format!("error executing command in container: {why}"))
}

/// Serves a command until it has ended. Returns `None` if the caller leaves first.
async fn serve(
    mut child: Child,
    sink: &mut SplitSink<Stream, Message>,
    source: &mut SplitStream<Stream>,
) -> Option<Value> {
    let mut stdin = child.stdin.take();
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (vec![0; PART], vec![0; PART]);
    while stdout.is_some() || stderr.is_some() {
        tokio::select! {
            count = part(&mut stdout, &mut out), if stdout.is_some() => match count {
                0 => stdout = None,
                count => send(sink, STDOUT, &out[..count]).await?,
            },
            count = part(&mut stderr, &mut err), if stderr.is_some() => match count {
                0 => stderr = None,
                count => send(sink, STDERR, &err[..count]).await?,
            },
            message = source.next() => take(message?.ok()?, &mut stdin).await,
        }
    }
    loop {
        tokio::select! {
            ended = child.wait() => return Some(ended.map_or_else(|why| internal_error(&why.to_string()), status)),
            message = source.next() => take(message?.ok()?, &mut stdin).await,
        }
    }
}

/// Reads a part of an output. Returns 0 at its end.
async fn part(output: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    match output {
        Some(output) => output.read(buffer).await.unwrap_or(0),
        None => 0,
    }
}

async fn send(sink: &mut SplitSink<Stream, Message>, channel: u8, bytes: &[u8]) -> Option<()> {
    sink.send(Message::binary([&[channel], bytes].concat())).await.ok()
}

/// Handles a message of the caller: input for the command, or the end of the input.
async fn take(message: Message, stdin: &mut Option<ChildStdin>) {
    let Message::Binary(bytes) = message else { return };
    match &bytes[..] {
        [STDIN, input @ ..] => {
            let written = match stdin {
                Some(stdin) => stdin.write_all(input).await,
                None => Ok(()),
            };
            if written.is_err() {
                *stdin = None;
            }
        }
        [CLOSE, STDIN] => *stdin = None,
        _ => {}
    }
}

/// Returns the status of a command that ended, as a kubelet reports it.
fn status(ended: ExitStatus) -> Value {
    if ended.success() {
        return json!({"metadata": {}, "status": "Success"});
    }
    let code = ended.code().unwrap_or_else(|| 128 + ended.signal().unwrap_or_default());
    json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: {code}"),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

fn internal_error(why: &str) -> Value {
    json!({
        "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
        "message": format!("Internal error occurred: {why}"),
    })
}
