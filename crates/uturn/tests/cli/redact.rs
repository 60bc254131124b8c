//! `uturn collect --redact`: a bundle of other names, of which uturn says the same.

use std::fs;

use serde_json::Value;

use crate::common::{Folder, root, run, uturn};

/// What a scan finds: codes, shares, and how many clients.
fn found(args: &[&str], folder: &Folder) -> Vec<(Value, Value, Value, Value)> {
    let scan = [&["scan", "-o", "json"], args].concat();
    let output = uturn(&scan).current_dir(&folder.0).output().unwrap();
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = all["findings"].as_array().unwrap().iter();
    let part = |finding: &Value, key: &str| finding[key].clone();
    let all = findings.map(|own| {
        (
            part(own, "code"),
            part(own, "share_failing"),
            part(own, "client_count"),
            part(own, "mechanism"),
        )
    });
    all.collect()
}

#[test]
fn a_folder_and_an_archive_say_what_the_cluster_says() {
    let folder = Folder::new("redact-shop");
    let shop = root().join("examples/shop").display().to_string();
    let expected = found(&["-f", &shop], &folder);
    assert!(!expected.is_empty());
    for path in ["shown", "shown.tar.gz"] {
        let map = format!("{path}.map");
        let made =
            folder.run(&["collect", "-f", &shop, "--redact", "--redact-map", &map, "-o", path]);
        assert!(made.starts_with("exit 0\n"), "{made}");
        assert_eq!(found(&["--bundle", path], &folder), expected);
        let map = folder.0.join(&map);
        let text = fs::read_to_string(&map).unwrap();
        assert!(text.contains("\"shop\""), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&map).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
    // The key is another each time, and a redacted bundle can be redacted.
    let again = folder.run(&["collect", "--bundle", "shown.tar.gz", "--redact", "-o", "again"]);
    assert!(again.starts_with("exit 0\n"), "{again}");
    assert_eq!(found(&["--bundle", "again"], &folder), expected);
}

#[test]
fn it_is_written_whole_or_not_at_all() {
    let folder = Folder::new("redact-refused");
    let shop = root().join("examples/shop").display().to_string();
    folder.file("there", "").file("wrong.yaml", "apiVersion: v1\nkind: Service\nspec: [\n");
    let refused = [
        (&["-f", shop.as_str(), "-o", "there"] as &[&str], "there exists already"),
        (&["-f", &shop, "--redact-map", "there", "-o", "new"], "there exists already"),
        (&["-f", "wrong.yaml", "-o", "new"], "wrong.yaml:"),
        (&["-f", "missing.yaml", "-o", "new"], "missing.yaml"),
    ];
    for (args, says) in refused {
        let said = folder.run(&[&["collect", "--redact"], args].concat());
        assert!(said.starts_with("exit 2\n") && said.contains(says), "{said}");
    }
    let deep = ["collect", "-f", &shop, "--redact", "--redact-map", "map", "-o", "no/folder/new"];
    let said = folder.run(&deep);
    assert!(said.starts_with("exit 3\n"), "{said}");
    for path in ["new", "map", "no"] {
        assert!(!folder.0.join(path).exists(), "{path}");
    }
}

#[test]
fn what_it_needs() {
    for args in [
        &["collect", "--redact"] as &[&str],
        &["collect", "-f", "examples/shop", "-o", "target/never"],
        &["collect", "--redact-map", "target/never.map", "-o", "target/never"],
        &["collect", "--here", "--redact", "-o", "target/never"],
    ] {
        let said = run(args);
        assert!(said.starts_with("exit 2\n"), "{said}");
    }
}
