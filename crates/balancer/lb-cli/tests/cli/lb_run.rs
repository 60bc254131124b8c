//! `uturn lb run` while it runs: the watched file, the configuration over HTTP, the service manager.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use uturn_testing::commands::{run, uturn};

use crate::site::{Running, Site, TOKEN, documents, exchange, free_address};

fn rename_over(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

#[test]
fn a_saved_file_is_served() {
    let site = Site::new("lb-watch");
    let file = site.folder.0.join("lb.yaml");
    let mut running = site.start(&["--watch"]);
    assert_eq!(site.ask(), "first");
    // Written in place.
    fs::write(&file, site.text(1)).unwrap();
    assert_eq!(running.reloaded(), "file");
    assert_eq!(site.ask(), "second");
    // As editors do: another file takes its name.
    rename_over(&file, &site.text(0));
    assert_eq!(running.reloaded(), "file");
    assert_eq!(site.ask(), "first");
    // What is saved without a change is no change.
    fs::write(&file, site.text(0)).unwrap();
    // A file that is wrong is reported, and the old one keeps serving.
    rename_over(&file, &site.text(1).replace("protocol: HTTP", "protocol: HTPP"));
    let error = running.error("protocol");
    assert!(error.contains("lb.yaml:14:15: spec.listeners[0].protocol"), "{error}");
    assert_eq!(site.ask(), "first");
    // So is one that is half there, or not there at all.
    fs::write(&file, "").unwrap();
    running.error("no LoadBalancer document");
    fs::remove_file(&file).unwrap();
    running.error("lb.yaml: no such file or folder");
    assert_eq!(site.ask(), "first");
    assert_eq!(site.metric("uturn_lb_last_reload_ok"), "0");
    rename_over(&file, &site.text(1));
    assert_eq!(running.reloaded(), "file");
    assert_eq!(site.ask(), "second");
    assert_eq!(site.metric("uturn_lb_last_reload_ok"), "1");
    assert_eq!(site.metric("uturn_lb_reloads_total{result=\"ok\"}"), "3");
    // One more for each file that was seen while it was written.
    let failed: u32 = site.metric("uturn_lb_reloads_total{result=\"failed\"}").parse().unwrap();
    assert!(failed >= 3, "{failed}");
}

/// A ConfigMap's volume: the file is a link over a link, and an update replaces the inner one.
#[test]
fn a_config_map_is_served_when_its_links_are_swapped() {
    let site = Site::new("lb-configmap");
    let volume = site.folder.0.join("volume");
    let version = |name: &str, target: usize| {
        let folder = volume.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("lb.yaml"), site.text(target)).unwrap();
        fs::write(folder.join("admin.token"), TOKEN).unwrap();
        symlink(name, volume.join("..data_tmp")).unwrap();
        fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    };
    version("..2026_01", 0);
    for name in ["lb.yaml", "admin.token"] {
        symlink(Path::new("..data").join(name), volume.join(name)).unwrap();
    }
    for path in ["volume/lb.yaml", "volume"] {
        let mut running = Running::start(site.command(&["--watch", "-f", path]));
        assert_eq!(site.ask(), "first");
        version("..2026_02", 1);
        assert_eq!(running.reloaded(), "file");
        assert_eq!(site.ask(), "second");
        fs::remove_dir_all(volume.join("..2026_01")).unwrap();
        version("..2026_01", 0);
        assert_eq!(running.reloaded(), "file");
        assert_eq!(site.ask(), "first");
    }
}

#[test]
fn a_folder_is_watched_with_the_files_that_come_and_go() {
    let site = Site::new("lb-folder");
    let files = site.folder.0.join("conf");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("web.yaml"), site.text(0).replace("tokenFile: ", "tokenFile: ../"))
        .unwrap();
    let mut running = Running::start(site.command(&["--watch", "-f", "conf"]));
    let other = free_address();
    let second = documents(other, site.admin, site.targets[1]);
    let (_, balancer) = second.split_once("---\n").unwrap();
    fs::write(files.join("other.txt"), "not read").unwrap();
    fs::write(files.join("other.yaml"), balancer.replace("name: web", "name: other")).unwrap();
    assert_eq!(running.reloaded(), "file");
    assert!(exchange(other, "GET / HTTP/1.0\r\n\r\n").ends_with("second"));
    fs::remove_file(files.join("other.yaml")).unwrap();
    assert_eq!(running.reloaded(), "file");
    assert_eq!(site.ask(), "first");
}

#[test]
fn the_token_is_read_again_and_the_file_is_not() {
    let site = Site::new("lb-token");
    let mut running = site.start(&["--watch"]);
    assert_eq!(site.allowed("PUT", "/config", &site.text(1)).0, 200);
    assert_eq!(running.reloaded(), "admin");
    rename_over(&site.folder.0.join("admin.token"), "another-token-of-the-admin");
    assert_eq!(running.reloaded(), "certificates");
    assert_eq!(site.allowed("GET", "/config", "").0, 401);
    // What came over HTTP is served still.
    assert_eq!(site.ask(), "second");
    // A file that waits for a token that can be used.
    rename_over(&site.folder.0.join("admin.token"), "short");
    running.error("not reloaded: cannot take the admin token from");
    rename_over(&site.folder.0.join("admin.token"), TOKEN);
    assert_eq!(running.reloaded(), "certificates");
    assert_eq!(site.allowed("GET", "/config", "").0, 200);
}

#[test]
fn standard_input_is_not_watched() {
    insta::assert_snapshot!(run(&["lb", "run", "--watch", "-f", "-"]));
}

#[test]
fn the_configuration_is_replaced_over_http() {
    let site = Site::new("lb-put");
    let mut running = site.start(&[]);
    let (status, shown) = site.allowed("GET", "/config", "");
    assert_eq!(status, 200);
    let tag = shown.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let (_, body) = shown.split_once("\r\n\r\n").unwrap();
    assert!(!body.contains(TOKEN), "{body}");
    // What is shown is a configuration again: it can be changed and sent back.
    let (first, second) = (site.targets[0].to_string(), site.targets[1].to_string());
    let changed = body.replace(&first, &second);
    let headers = format!("Authorization: Bearer {TOKEN}\r\nIf-Match: {tag}\r\n");
    let (status, answer) = site.admin("PUT", "/config", &headers, &changed);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(site.ask(), "second");
    assert_eq!(running.reloaded(), "admin");
    // Somebody else's change is not lost.
    assert_eq!(site.admin("PUT", "/config", &headers, body).0, 412);
    assert_eq!(site.ask(), "second");
    let yaml = format!("Authorization: Bearer {TOKEN}\r\nAccept: application/yaml\r\n");
    let (_, shown) = site.admin("GET", "/config", &yaml, "");
    assert!(shown.contains("\nkind: List\n") && shown.contains(&second), "{shown}");
    // The file has not been written: reading it again brings back what it says.
    assert_eq!(fs::read_to_string(site.folder.0.join("lb.yaml")).unwrap(), site.text(0));
    running.signal("-HUP");
    assert_eq!(running.reloaded(), "signal");
    assert_eq!(site.ask(), "first");
    site.folder.file("lb.yaml", &site.text(1));
    assert_eq!(site.allowed("POST", "/reload", "").0, 200);
    assert_eq!(site.ask(), "second");
}

#[test]
fn what_is_wrong_over_http_is_told_and_not_served() {
    let site = Site::new("lb-put-wrong");
    let _running = site.start(&[]);
    let wrong = site.text(1).replace("port: ", "prt: ");
    let (status, answer) = site.allowed("POST", "/config", &wrong);
    assert_eq!(status, 400);
    assert!(answer.contains("\r\n\r\nbody:13:5: spec.listeners[0]"), "{answer}");
    assert_eq!(site.allowed("PUT", "/config", "").0, 400);
    assert_eq!(site.allowed("PUT", "/config", "\0").0, 400);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let busy = TcpListener::bind(taken).unwrap();
    let elsewhere = documents(taken, site.admin, site.targets[1]);
    let (status, answer) = site.allowed("PUT", "/config", &elsewhere);
    assert_eq!(status, 500, "{answer}");
    assert!(answer.contains(&format!("cannot listen on {taken}")), "{answer}");
    drop(busy);
    site.folder.file("lb.yaml", &wrong);
    let (status, answer) = site.allowed("POST", "/reload", "");
    assert_eq!(status, 400);
    assert!(answer.contains("\r\n\r\nlb.yaml:13:5: "), "{answer}");
    assert_eq!(site.ask(), "first");
    assert_eq!(site.metric("uturn_lb_reloads_total{result=\"failed\"}"), "5");
    let large = format!("Authorization: Bearer {TOKEN}\r\nContent-Length: 99999999999\r\n\r\n");
    let answer = exchange(site.admin, &format!("PUT /config HTTP/1.1\r\nHost: a\r\n{large}"));
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[test]
fn the_configuration_takes_a_token() {
    let site = Site::new("lb-access");
    let _running = site.start(&[]);
    let body = site.text(1);
    for (method, path) in
        [("GET", "/config"), ("PUT", "/config"), ("POST", "/config"), ("POST", "/reload")]
    {
        for headers in [
            String::new(),
            "Authorization: Bearer wrong\r\n".into(),
            format!("Authorization: Basic {TOKEN}\r\n"),
            format!("Authorization: Bearer {TOKEN}x\r\n"),
            format!("Authorization: {TOKEN}\r\n"),
            "Authorization: Bearer \r\n".into(),
            format!("Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}\r\n"),
        ] {
            let (status, answer) = site.admin(method, path, &headers, &body);
            assert_eq!(status, 401, "{headers} {answer}");
            assert!(answer.contains("www-authenticate: Bearer\r\n"), "{answer}");
        }
        // A page that a browser on this machine shows, even if it had the token.
        let headers = format!("Origin: http://example.com\r\nAuthorization: Bearer {TOKEN}\r\n");
        assert_eq!(site.admin(method, path, &headers, &body).0, 403);
    }
    for path in ["/config", "/reload"] {
        let preflight = "Origin: http://a\r\nAccess-Control-Request-Method: PUT\r\n";
        let (status, answer) = site.admin("OPTIONS", path, preflight, "");
        assert_eq!(status, 403);
        assert!(!answer.to_lowercase().contains("access-control"), "{answer}");
        assert_eq!(site.allowed("DELETE", path, "").0, 405);
    }
    assert_eq!(site.ask(), "first");
}

#[test]
fn without_a_token_nothing_is_changed() {
    let site = Site::new("lb-no-token");
    let open = |target| {
        let own =
            format!("{{address: '{}', tokenFile: admin.token, localTargets: true}}", site.admin);
        site.text(target).replace(&own, &site.admin.to_string())
    };
    site.folder.file("lb.yaml", &open(0));
    let _running = site.start(&[]);
    for (method, path) in [("GET", "/config"), ("PUT", "/config"), ("POST", "/reload")] {
        let (status, answer) = site.allowed(method, path, &open(1));
        assert_eq!(status, 403);
        assert!(answer.contains("tokenFile: PATH"), "{answer}");
    }
    assert_eq!(site.ask(), "first");
    assert_eq!(site.admin("GET", "/metrics", "", "").0, 200);
}

/// The service manager hears that the process is ready, alive, reloading and stopping.
#[test]
fn the_service_manager_is_told() {
    let site = Site::new("lb-notify");
    let path = site.folder.0.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let receive = || {
        let mut message = [0; 512];
        let count = socket.recv(&mut message).unwrap();
        String::from_utf8(message[..count].to_vec()).unwrap()
    };
    let mut command = site.command(&["-f", "lb.yaml"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "20000");
    let mut running = Running::start(command);
    assert!(receive().starts_with("READY=1\nSTATUS=serving version "));
    assert_eq!(receive(), "WATCHDOG=1");
    let next = || (0..).map(|_| receive()).find(|message| message != "WATCHDOG=1").unwrap();
    running.signal("-HUP");
    assert!(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert!(next().starts_with("READY=1\n"));
    running.signal("-TERM");
    let stopping = next();
    assert!(stopping.starts_with("STOPPING=1\nEXTEND_TIMEOUT_USEC=40000000\n"), "{stopping}");
    assert!(running.child.wait().unwrap().success());
}

#[test]
fn it_is_ready_when_every_target_has_been_checked() {
    let site = Site::new("lb-ready");
    let checked = |check: &str| site.text(0).replace("healthCheck: none", check);
    // A server that takes connections and answers nothing.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let asks = "healthCheck: {interval: 5m, timeout: 1m, rise: 1, fall: 1, probe: {exchange: {expect: hi}}}";
    let waiting = checked(asks)
        .replace(&site.targets[0].to_string(), &mute.local_addr().unwrap().to_string());
    site.folder.file("lb.yaml", &waiting);
    let mut running = site.start(&[]);
    let (mut probe, _) = mute.accept().unwrap();
    // The worker may need a moment to accept connections.
    while site.admin("GET", "/healthz", "", "").0 != 200 {
        thread::yield_now();
    }
    let (status, answer) = site.admin("GET", "/readyz", "", "");
    assert_eq!(status, 503);
    assert!(answer.ends_with(" has not been checked\n"), "{answer}");
    probe.write_all(b"hi").unwrap();
    assert_eq!(running.event()["alive"], true);
    assert_eq!(site.admin("GET", "/readyz", "", "").0, 200);
    // It has been ready once: a target that is new does not undo that.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = waiting
        .replace(&mute.local_addr().unwrap().to_string(), &other.local_addr().unwrap().to_string());
    assert_eq!(site.allowed("PUT", "/config", &text).0, 200);
    assert_eq!(site.admin("GET", "/readyz", "", "").0, 200);
}

/// Another process takes over, as when the program is replaced by a newer one. Clients and what
/// asks for the process's health notice nothing.
#[test]
fn a_second_process_takes_over() {
    let site = Site::new("lb-takeover");
    let mut first = site.start(&[]);
    // The event says that it listens; workers accept a moment later.
    while site.admin("GET", "/healthz", "", "").0 != 200 {
        thread::yield_now();
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let asked = |address, path, status, body| {
            let is_over = &is_over;
            scope.spawn(move || {
                let request =
                    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
                let mut answers = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let answer = exchange(address, &request);
                    assert!(answer.starts_with(status), "{answer}");
                    assert!(answer.contains(body), "{answer}");
                    answers += 1;
                }
                answers
            })
        };
        let clients = [
            asked(site.listener, "/", "HTTP/1.1 200 ", "\r\n\r\nfirst"),
            asked(site.admin, "/healthz", "HTTP/1.1 200 ", "\r\n\r\nok"),
        ];
        // The sockets of the workers before are served, however many there are now.
        for workers in [3, 1, 2] {
            let text = site.text(0).replace("workers: 1", &format!("workers: {workers}"));
            site.folder.file("lb.yaml", &text);
            let process = first.child.id().to_string();
            let mut second = site.start(&["--takeover", &process]);
            assert_eq!(second.reloaded(), "takeover");
            assert!(first.child.wait().unwrap().success());
            // The admin address is the second one's.
            assert_eq!(site.metric("uturn_lb_draining"), "0");
            assert_eq!(site.allowed("GET", "/config", "").0, 200);
            first = second;
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            assert!(client.join().unwrap() > 0);
        }
    });
}

/// Without `--takeover`, the admin address is the first one's, also where that has taken over.
#[test]
fn an_admin_address_is_not_shared_by_accident() {
    let site = Site::new("lb-two-admins");
    let mut first = site.start(&[]);
    for _ in 0..2 {
        let output = site.command(&["-f", "lb.yaml"]).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("the admin address: "), "{error}");
        let mut second = site.start(&["--takeover", &first.child.id().to_string()]);
        assert_eq!(second.reloaded(), "takeover");
        assert!(first.child.wait().unwrap().success());
        first = second;
    }
}

/// A process that takes over and cannot serve changes nothing.
#[test]
fn a_process_that_fails_to_take_over_is_no_loss() {
    let site = Site::new("lb-takeover-failed");
    let mut first = site.start(&["--watch"]);
    let process = first.child.id().to_string();
    let taken = free_address();
    let _other = TcpListener::bind(taken).unwrap();
    site.folder.file("other.yaml", &documents(taken, site.admin, site.targets[1]));
    let output = site.command(&["-f", "other.yaml", "--takeover", &process]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(" of web: Address already in use"), "{error}");
    let error = first.error("the other process did not take over");
    assert!(error.contains("the other process has ended"), "{error}");
    assert_eq!(site.ask(), "first");
    // It follows its file as before, and can still be taken over.
    site.folder.file("lb.yaml", &site.text(1));
    assert_eq!(first.reloaded(), "file");
    assert_eq!(site.ask(), "second");
    let mut second = site.start(&["--takeover", &process]);
    assert_eq!(second.reloaded(), "takeover");
    assert!(first.child.wait().unwrap().success());
}

#[test]
fn only_a_load_balancer_is_taken_over() {
    let site = Site::new("lb-takeover-wrong");
    let own = std::process::id().to_string();
    let output = site.command(&["-f", "lb.yaml", "--takeover", &own]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains(&format!("cannot take over from process {own}: it is not")), "{error}");
}

/// Whoever may write the token is the administrator, and whoever may read it too.
#[test]
fn a_token_that_others_may_use_is_refused_or_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let site = Site::new("lb-modes");
    let token = site.folder.0.join("admin.token");
    let check = |mode| {
        fs::set_permissions(&token, fs::Permissions::from_mode(mode)).unwrap();
        let output =
            uturn(&["lb", "check", "-f", "lb.yaml"]).current_dir(&site.folder.0).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    for mode in [0o600, 0o400, 0o640] {
        assert_eq!(check(mode), (0, String::new()), "{mode:o}");
    }
    for (mode, shown) in [(0o644, "644"), (0o604, "604")] {
        let (code, errors) = check(mode);
        assert_eq!(code, 0);
        let expected = format!("others may read admin.token, whose mode is {shown}: chmod o-r it");
        assert!(errors.contains(&expected), "{errors}");
    }
    for mode in [0o666, 0o602] {
        let (code, errors) = check(mode);
        assert_eq!(code, 2);
        assert!(errors.contains("spec.admin.tokenFile: others may write admin.token"), "{errors}");
        let run = site.command(&["-f", "lb.yaml"]).output().unwrap();
        assert_eq!(run.status.code(), Some(2));
    }
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let mut running = site.start(&[]);
    running.error("others may read admin.token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o666)).unwrap();
    running.signal("-HUP");
    running.error("others may write admin.token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    running.signal("-HUP");
    assert_eq!(running.reloaded(), "signal");
}
