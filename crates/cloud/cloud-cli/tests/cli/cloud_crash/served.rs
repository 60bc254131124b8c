//! `uturn cloud serve` as a process of its own, and requests to it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tokio::runtime::{Builder, Runtime};
use uturn_cloud_api::Action;
use uturn_cloud_api::SecretKey;
use uturn_cloud_api::client::{Answer, CallError, Client, ClientSettings, Endpoint, Retries};

use uturn_testing::commands::{Folder, root};

/// `uturn cloud serve`, killed when this is dropped.
pub(super) struct Served {
    child: Child,
    endpoint: Endpoint,
}

impl Served {
    /// Starts it with its state in this folder, and waits until it listens.
    pub(super) fn start(folder: &Folder) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_uturn-cloud")), folder)
    }

    /// The same in a process whose files may not grow beyond this many bytes. Their growth is an
    /// error and not the end of the process.
    pub(super) fn start_with_files_up_to(bytes: u64, folder: &Folder) -> Self {
        let blocks = bytes.div_ceil(512);
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_uturn-cloud")]);
        Self::start_by(command, folder)
    }

    fn start_by(mut command: Command, folder: &Folder) -> Self {
        folder.file("credentials", "id key\n");
        let mut child = command
            .args(["cloud", "serve", "--listen", "127.0.0.1:0", "--state"])
            .arg(state(folder))
            .arg("--credentials")
            .arg(folder.0.join("credentials"))
            .current_dir(root())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().last().expect("it says where it listens");
        Self { child, endpoint: address.parse().unwrap() }
    }

    /// A client of it.
    pub(super) fn client(&self) -> Caller {
        let client = Client::new(ClientSettings {
            endpoint: self.endpoint.clone(),
            secret_id: "id".to_owned(),
            secret_key: SecretKey::from("key".to_owned()),
            region: "ap-guangzhou".to_owned(),
            retries: Retries { most: 0, ..Retries::default() },
            rate: None,
        });
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Caller { runtime, client: client.unwrap() }
    }

    /// Kills the process; it cannot notice.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The state folder in the folder of a test.
pub(super) fn state(folder: &Folder) -> std::path::PathBuf {
    folder.0.join("state")
}

/// The size of the database.
pub(super) fn database_size(folder: &Folder) -> u64 {
    let file: &Path = &state(folder).join("cloud.redb");
    std::fs::metadata(file).unwrap().len()
}

/// Calls the API and waits for its answers.
pub(super) struct Caller {
    runtime: Runtime,
    client: Client,
}

impl Caller {
    pub(super) fn call<A: Action>(&self, request: &A) -> Result<Answer<A::Response>, CallError> {
        self.runtime.block_on(self.client.call(request))
    }
}
