//! The tests.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use uturn_machine::{Ended, Job, JobOutput, Machine, MachineError};

use super::clients::{CALLS, ECHOES, call, clients_run_jobs_and_reach_servers, echo};
use super::kernels;

/// The argument that makes this program ask for a machine, before it is killed.
pub(super) const ASKS: &str = "--ask-for-a-machine";

/// The exit status of a program that asked for a machine and got an error.
pub(super) const NO_MACHINE: i32 = 99;

/// The limit for a job. It only ends a job that hangs.
const LIMIT: Duration = Duration::from_secs(1800);

type Check = (&'static str, fn(&Machine));

const CHECKS: [Check; 14] = [
    ("a_job_is_heard_and_its_code_comes_back", a_job_is_heard_and_its_code_comes_back),
    ("a_signal_is_reported", a_signal_is_reported),
    ("what_cannot_start_is_reported", what_cannot_start_is_reported),
    ("rules_sets_and_virtual_servers_load", rules_sets_and_virtual_servers_load),
    (
        "the_hosts_files_stay_as_they_are_unless_they_are_shared",
        the_hosts_files_stay_as_they_are_unless_they_are_shared,
    ),
    ("much_is_heard_whole_by_a_slow_ear", much_is_heard_whole_by_a_slow_ear),
    (
        "processes_that_the_job_leaves_behind_do_not_block",
        processes_that_the_job_leaves_behind_do_not_block,
    ),
    ("a_job_without_an_end_is_ended", a_job_without_an_end_is_ended),
    ("nothing_outlives_who_asked", nothing_outlives_who_asked),
    ("clients_run_jobs_and_reach_servers", clients_run_jobs_and_reach_servers),
    ("a_larger_processor_is_no_obstacle", kernels::a_larger_processor_is_no_obstacle),
    ("a_kernel_that_panics_before_the_job", kernels::a_kernel_that_panics_before_the_job),
    ("a_kernel_that_panics_beside_the_job", kernels::a_kernel_that_panics_beside_the_job),
    ("a_kernel_that_is_none", kernels::a_kernel_that_is_none),
];

pub(super) fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == ASKS) {
        return ask();
    }
    if words.first().is_some_and(|word| word == ECHOES) {
        return echo();
    }
    if words.first().is_some_and(|word| word == CALLS) {
        return call(&words[1], &words[2]);
    }
    let machine = match Machine::find() {
        Ok(machine) => machine.with_limit(LIMIT),
        Err(why) => {
            return uturn_testing::skip(
                uturn_testing::Requirement::Machine,
                "the small machine",
                why,
            );
        }
    };
    let wanted = |name: &str| {
        let mut words = words.iter().filter(|word| !word.starts_with('-')).peekable();
        words.peek().is_none() || words.any(|word| name.contains(word.as_str()))
    };
    for (name, check) in CHECKS.into_iter().filter(|(name, _)| wanted(name)) {
        println!("{name} …");
        check(&machine);
    }
    if wanted("the_user_nobody_gets_one_too") {
        the_user_nobody_gets_one_too();
    }
}

pub(super) fn shell(script: &str) -> Job {
    Job {
        program: "sh".into(),
        arguments: vec!["-ec".into(), script.into()],
        environment: Vec::new(),
        folder: "/".into(),
        stdin: Vec::new(),
        shared: Vec::new(),
    }
}

/// Runs a job, and returns its output and its end.
pub(super) fn run(machine: &Machine, job: &Job) -> Result<(String, String, Ended), MachineError> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = machine.run(job, &mut |output| match output {
        JobOutput::Out(bytes) => out.extend(bytes),
        JobOutput::Err(bytes) => err.extend(bytes),
    })?;
    Ok((String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), ended))
}

fn a_job_is_heard_and_its_code_comes_back(machine: &Machine) {
    let script = "cat; pwd; echo \"$WORD\"; uname -r; echo to err >&2; exit 7";
    let job = Job {
        environment: vec![("WORD".into(), "a b".into())],
        folder: "/usr/lib".into(),
        stdin: b"in\n".into(),
        ..shell(script)
    };
    let (out, err, ended) = run(machine, &job).unwrap();
    let release = machine.kernel().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(out, format!("in\n/usr/lib\na b\n{release}\n"));
    assert_eq!(err, "to err\n");
    assert_eq!(ended, Ended::Exit(7));
}

fn a_signal_is_reported(machine: &Machine) {
    let (_, _, ended) = run(machine, &shell("kill -USR1 $$")).unwrap();
    assert_eq!(ended, Ended::Signal(10));
}

fn what_cannot_start_is_reported(machine: &Machine) {
    let job = Job { program: "/no/such/program".into(), ..shell("") };
    let Err(MachineError::Inside(why)) = run(machine, &job) else { panic!("it cannot start") };
    assert!(why.contains("/no/such/program"), "{why}");
}

fn rules_sets_and_virtual_servers_load(machine: &Machine) {
    let script = "
        ipset create s hash:ip,port
        iptables -V
        iptables -t nat -A POSTROUTING -m comment --comment c -m set --match-set s dst,dst \
            -j MASQUERADE
        ip6tables -A FORWARD -m conntrack --ctstate INVALID -j DROP
        iptables-save -t nat | grep match-set
        ip link add kube-ipvs0 type dummy
        sysctl -qw net.ipv4.ip_forward=1
        echo tcp > /tmp/written";
    let (out, err, ended) = run(machine, &shell(script)).unwrap();
    assert_eq!((err.as_str(), ended), ("", Ended::Exit(0)), "{out}");
    assert!(out.contains("(legacy)"), "{out}");
    assert!(out.contains("--match-set s dst,dst"), "{out}");

    let ipvsadm = ["/usr/sbin/ipvsadm", "/sbin/ipvsadm"];
    if !ipvsadm.iter().any(|program| Path::new(program).exists()) {
        return uturn_testing::skip(
            uturn_testing::Requirement::Machine,
            "virtual servers in the small machine",
            "no ipvsadm",
        );
    }
    let script = "ipvsadm -A -t 10.0.0.1:80 -s rr; ipvsadm -Ln";
    let (out, err, ended) = run(machine, &shell(script)).unwrap();
    assert_eq!((err.as_str(), ended), ("", Ended::Exit(0)), "{out}");
    assert!(out.contains("10.0.0.1:80 rr"), "{out}");
}

fn the_hosts_files_stay_as_they_are_unless_they_are_shared(machine: &Machine) {
    let folder = env::temp_dir().join(format!("uturn-machine-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let file = folder.join("file");
    fs::write(&file, "as it was").unwrap();
    let here = folder.display();
    let script = format!(
        "cat {here}/file; echo other > {here}/file; rm -r {here}; mkdir {here}; \
         echo new > {here}/new; cat {here}/new; echo x > /run/x; test ! -e /run/netns"
    );
    let ran = run(machine, &shell(&script));
    let shared = folder.with_extension("shared");
    fs::create_dir(&shared).unwrap();
    let written = format!("echo out > {}/written", shared.display());
    let wrote = run(machine, &Job { shared: vec![shared.clone()], ..shell(&written) });
    let written = fs::read_to_string(shared.join("written"));
    fs::remove_dir_all(&shared).unwrap();
    assert_eq!((wrote.unwrap().2, written.unwrap().as_str()), (Ended::Exit(0), "out\n"));
    let kept = fs::read_to_string(&file);
    let entries = fs::read_dir(&folder).unwrap().count();
    fs::remove_dir_all(&folder).unwrap();
    let (out, err, ended) = ran.unwrap();
    assert_eq!((out.as_str(), err.as_str(), ended), ("as it wasnew\n", "", Ended::Exit(0)));
    assert_eq!((kept.unwrap().as_str(), entries), ("as it was", 1));
}

fn much_is_heard_whole_by_a_slow_ear(machine: &Machine) {
    let mut heard: Vec<u8> = Vec::new();
    let (ear, mouth) = io::pipe().unwrap();
    let slow = thread::spawn(move || BufReader::with_capacity(512, ear).lines().count());
    let mut mouth = mouth;
    let ended = machine.run(&shell("seq 1 300000"), &mut |output| {
        let JobOutput::Out(bytes) = output else { return };
        heard.extend(bytes);
        mouth.write_all(bytes).unwrap();
    });
    drop(mouth);
    assert_eq!(ended.unwrap(), Ended::Exit(0));
    let mut expected = Vec::new();
    (1..=300_000).for_each(|number| writeln!(expected, "{number}").unwrap());
    assert!(heard == expected, "{} bytes of {}", heard.len(), expected.len());
    assert_eq!(slow.join().unwrap(), 300_000);
}

fn processes_that_the_job_leaves_behind_do_not_block(machine: &Machine) {
    let (out, _, ended) = run(machine, &shell("echo begun; sleep 1000 & exit 3")).unwrap();
    assert_eq!((out.as_str(), ended), ("begun\n", Ended::Exit(3)));
}

fn a_job_without_an_end_is_ended(machine: &Machine) {
    let (gone, kept) = watched();
    let limit = Duration::from_secs(4);
    let ran = run(&machine.clone().with_limit(limit), &shell("while :; do sleep 1000; done"));
    drop(kept);
    assert!(matches!(ran, Err(MachineError::Limit(after)) if after == limit), "{ran:?}");
    assert!(closes(&gone), "something of the machine is left");
}

fn nothing_outlives_who_asked(_: &Machine) {
    let (gone, kept) = watched();
    let mut asks = Command::new(env::current_exe().unwrap())
        .arg(ASKS)
        .arg("echo up; sleep 1000")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(kept);
    let mut line = String::new();
    BufReader::new(asks.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    asks.kill().unwrap();
    asks.wait().unwrap();
    assert!(closes(&gone), "something of the machine is left");
}

/// Runs as an ordinary user.
fn the_user_nobody_gets_one_too() {
    let what = "the small machine of an ordinary user";
    if !rustix::process::geteuid().is_root() {
        // Then all the other tests have shown it.
        return;
    }
    let own = env::current_exe().unwrap();
    let as_nobody = |program: &Path| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        command.current_dir("/").stdin(Stdio::null());
        command
    };
    match as_nobody(Path::new("test")).arg("-x").arg(&own).status() {
        Ok(status) if status.success() => {}
        _ => {
            return uturn_testing::skip(
                uturn_testing::Requirement::Unprivileged,
                what,
                "this program is in a folder of root's alone",
            );
        }
    }
    println!("the_user_nobody_gets_one_too …");
    let script = "id -u; iptables -A INPUT -j DROP; iptables-save -t filter | grep -c DROP; exit 9";
    let output = as_nobody(&own).arg(ASKS).arg(script).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("cannot run the small machine") {
        return uturn_testing::skip(uturn_testing::Requirement::Unprivileged, what, stderr);
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n1\n", "{stderr}");
    assert_eq!(output.status.code(), Some(9), "{stderr}");
}

/// Runs a script in a machine, and passes on its output and its exit code.
fn ask() {
    let script = env::args().nth(2).unwrap();
    let machine = Machine::find().unwrap_or_else(|why| panic!("{why}"));
    let ended = machine.run(&shell(&script), &mut |output| match output {
        JobOutput::Out(bytes) => {
            io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()).unwrap();
        }
        JobOutput::Err(bytes) => io::stderr().write_all(bytes).unwrap(),
    });
    match ended {
        Ok(Ended::Exit(code)) => std::process::exit(code),
        Ok(Ended::Signal(signal)) => panic!("a script ends by itself, not by signal {signal}"),
        Err(why) => {
            io::stderr().write_all(format!("{why}\n").as_bytes()).unwrap();
            std::process::exit(NO_MACHINE);
        }
    }
}

/// Returns a pipe whose other end is inherited by all processes that are started while it is kept.
/// The pipe is closed when the last of them has ended.
pub(super) fn watched() -> (PipeReader, OwnedFd) {
    let (gone, kept) = io::pipe().unwrap();
    // Unlike the pipe's own end, a copy stays open in programs that are started.
    (gone, rustix::io::dup(&kept).unwrap())
}

pub(super) fn closes(gone: &PipeReader) -> bool {
    let limit = Timespec { tv_sec: 600, tv_nsec: 0 };
    let mut all = [PollFd::new(gone, PollFlags::IN)];
    poll(&mut all, Some(&limit)).unwrap();
    all[0].revents().contains(PollFlags::HUP)
}
