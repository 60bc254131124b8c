//! `uturn cloud serve` with options that it cannot use.

#![cfg(unix)]

use uturn_testing::commands::Folder;

#[test]
fn data_planes_that_cannot_be_driven() {
    let folder = Folder::new("cloud-errors");
    folder.file("credentials", "id1 key1\n").file("admin.token", "0123456789abcdef");
    folder.file("short.token", "0123");
    let serve = |args: &[&str]| {
        let common = ["cloud", "serve", "--state", "state", "--credentials", "credentials"];
        folder.run(&[&common, args].concat())
    };
    let plane = |text: &str| serve(&["--data-plane", text]);
    insta::assert_snapshot!(
        [
            plane("http://127.0.0.1:9900"),
            plane("127.0.0.1:9900=admin.token"),
            plane("http://10.0.0.1:9900=admin.token"),
            plane("http://127.0.0.1:9900=none.token"),
            plane("http://127.0.0.1:9900=short.token"),
            serve(&["--plain-http"]),
            serve(&["--task-time", "5", "--data-plane", "http://127.0.0.1:9900=admin.token"]),
        ]
        .join("\n")
    );
    assert!(!folder.0.join("state").exists(), "nothing was opened");
}
