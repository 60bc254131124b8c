//! Clusters whose Pods could not be read, or not all of them.

use super::common::Folder;

/// The example shop without the documents that have this line.
fn shop_without(is_left_out: impl Fn(&str) -> bool) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shop");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let texts: Vec<String> =
        files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let whole = texts.join("\n---\n");
    let kept: Vec<&str> =
        whole.split("\n---\n").filter(|document| !is_left_out(document)).collect();
    kept.join("\n---\n")
}

/// Endpoints say where their pods are: a cluster whose Pods could not be read is no healthy one.
#[test]
fn pods_that_only_endpoints_name() {
    let folder = Folder::new("partial-endpoint-pods");
    let is_pod = |document: &str| document.contains("kind: Pod\n");
    folder.file("a.yaml", &shop_without(is_pod));
    for complete in [&[][..], &["--complete"]] {
        let scan = folder.run(&[&["scan", "-f", "."], complete].concat());
        assert!(scan.starts_with("exit 1\n"), "{scan}");
        assert!(scan.contains("UT101"), "{scan}");
        assert!(scan.contains("supposed: 6 pods that endpoints name: "), "{scan}");
    }
    // Where others were read, these are gone: whatever answers at their addresses is not known.
    folder
        .file("a.yaml", &shop_without(|document| is_pod(document) && document.contains("front-")));
    let scan = folder.run(&["scan", "-f", "."]);
    assert!(scan.contains("30 not judged"), "{scan}");
    assert!(scan.contains("which pod has the address 10.1.1.20 is not given"), "{scan}");
}
