//! Folders as people have them: with kustomizations, charts and files of other programs.

use std::io::Write;
use std::process::Stdio;

use super::common::{Folder, transcript, uturn};
use insta::assert_snapshot;

const WEB: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web
        ports: [
          {containerPort: 8080},
        ]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";

const VALUES: &str = "image:\n  repository: web\n  tag: \"1\"\n";
const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
const TEMPLATE: &str = "\
{{- if .Values.enabled }}
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
{{- end }}
";

fn scan(folder: &Folder, path: &str) -> String {
    about_files(&folder.run(&["scan", "-f", path]))
}

/// What a scan says about its files.
fn about_files(printed: &str) -> String {
    let other = |line: &&str| {
        line.starts_with("supposed:") && !line.contains("uturn scan -f -")
            || line.contains(" calls fine")
    };
    printed.lines().filter(|line| !other(line)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn files_of_other_programs_are_left_out_and_named() {
    let folder = Folder::new("others");
    folder
        .file("all/web.yaml", WEB)
        .file("all/values.yaml", VALUES)
        .file("all/docker-compose.yml", "version: \"3\"\nservices: {web: {image: web}}\n")
        .file("all/.github/workflows/test.yml", "on: push\njobs: {}\n")
        .file("all/patch.json", "[{\"op\": \"remove\", \"path\": \"/spec\"}]")
        .file("all/tsconfig.json", "{\n  // strict\n  \"strict\": true\n}\n")
        .file("all/notes.yaml", "just a text\n");
    assert_snapshot!(scan(&folder, "all"));
}

#[test]
fn where_nothing_is_an_object_each_file_says_so() {
    let folder = Folder::new("values");
    folder.file("values.yaml", VALUES).file("Chart.yaml", CHART);
    assert_snapshot!(scan(&folder, "values.yaml"));
    assert_snapshot!(folder.run(&["scan", "-f", "values.yaml", "-f", "Chart.yaml"]));
}

#[test]
fn a_chart_has_to_be_rendered_first() {
    let folder = Folder::new("chart");
    folder
        .file("chart/Chart.yaml", CHART)
        .file("chart/values.yaml", VALUES)
        .file("chart/templates/service.yaml", TEMPLATE)
        .file(
            "chart/templates/quoted.yaml",
            &WEB.replace("name: web", "name: \"{{ .Release.Name }}\""),
        );
    assert_snapshot!(scan(&folder, "chart"));
}

#[test]
fn templates_beside_manifests_are_left_out_and_counted() {
    let folder = Folder::new("both");
    folder
        .file("all/web.yaml", WEB)
        .file("all/chart/Chart.yaml", CHART)
        .file("all/chart/values.yaml", VALUES)
        .file("all/chart/templates/service.yaml", TEMPLATE)
        .file("all/jinja.yaml", "{% if a %}\napiVersion: v1\n{% endif %}\n")
        .file("all/named.yaml", &WEB.replace("name: web", "name: \"{{ name }}\""))
        .file(
            "all/shell.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: sh}\nspec:\n  ports:\n  - port: ${PORT}\n",
        )
        .file("all/ytt.yaml", "#@ load(\"x\")\nmetadata: {name: web}\n");
    assert_snapshot!(scan(&folder, "all"));
}

#[test]
fn a_template_that_is_named_itself_is_a_fault() {
    let folder = Folder::new("template");
    folder.file("service.yaml", TEMPLATE);
    assert_snapshot!(scan(&folder, "service.yaml"));
}

#[test]
fn a_kustomization_of_plain_manifests_is_what_it_lists() {
    let folder = Folder::new("plain");
    folder.file("base/web.yaml", WEB).file("base/kustomization.yaml", "resources: [web.yaml]\n");
    assert_snapshot!(scan(&folder, "base"));
}

#[test]
fn patches_of_a_kustomization_are_no_objects() {
    let folder = Folder::new("patches");
    let patch =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n";
    folder.file("prod/web.yaml", WEB).file("prod/replicas.yaml", patch).file(
        "prod/kustomization.yaml",
        "resources: [web.yaml]\nnamePrefix: prod-\npatches:\n- path: replicas.yaml\n",
    );
    assert_snapshot!(scan(&folder, "prod"));
    folder.file("overlay/replicas.yaml", patch).file(
        "overlay/kustomization.yml",
        "apiVersion: kustomize.config.k8s.io/v1beta1\nresources: [../prod]\npatchesStrategicMerge:\n- replicas.yaml\n",
    );
    assert_snapshot!(scan(&folder, "overlay"));
}

#[test]
fn variants_of_one_base_have_to_be_rendered_first() {
    let folder = Folder::new("variants");
    for variant in ["dev", "prod"] {
        let file = |name: &str| format!("all/{variant}/{name}");
        folder
            .file(&file("web.yaml"), WEB)
            .file(&file("kustomization.yaml"), "resources: [web.yaml]\nnamespace: x\n");
    }
    assert_snapshot!(scan(&folder, "all"));
}

#[test]
fn alternatives_beside_a_kustomization_are_no_variants_of_it() {
    let folder = Folder::new("alternatives");
    folder
        .file("all/kustomization.yaml", "resources: [web.yaml]\nnamePrefix: x-\n")
        .file("all/web.yaml", WEB)
        .file("all/docs/with-more.yaml", &WEB.replace("replicas: 2", "replicas: 3"));
    let printed = folder.run(&["scan", "-f", "all"]);
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    let noted = "supposed: all/web.yaml:1:1: Deployment default/web is defined more than once";
    assert!(printed.contains(noted), "{printed}");
}

#[test]
fn a_word_of_an_argument_list_may_be_empty() {
    let folder = Folder::new("empty-word");
    let with = |args: &str| {
        WEB.replace("        image: web", &format!("        args: {args}\n        image: web"))
    };
    folder.file("web.yaml", &with("[--only, null, --all]"));
    let printed = folder.run(&["scan", "-f", "web.yaml"]);
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    folder.file("web.yaml", &with("[--only, {a: b}]"));
    let printed = folder.run(&["scan", "-f", "web.yaml"]);
    assert_eq!(printed.matches("error: ").count(), 1, "{printed}");
}

#[test]
fn an_empty_status_is_none() {
    let folder = Folder::new("empty-status");
    let pod = "apiVersion: v1
kind: Pod
metadata: {name: web, labels: {run: web}}
spec: {nodeName: n1, containers: [{name: web, image: web}]}
status: {}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {run: web}, ports: [{port: 80}]}
";
    for text in [pod.to_owned(), pod.replace("nodeName: n1, ", "")] {
        folder.file("web.yaml", &text);
        let printed = folder.run(&["scan", "-f", "web.yaml"]);
        assert!(printed.starts_with("exit 0\n--- stdout\nnothing found; "), "{printed}");
        assert!(!printed.contains("not judged"), "{printed}");
    }
}

#[test]
fn what_was_rendered_is_read_from_standard_input() {
    let mut child = uturn(&["scan", "-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let rendered = format!("---\n# Source: web/templates/web.yaml\n{WEB}---\n# Source: empty\n");
    child.stdin.take().unwrap().write_all(rendered.as_bytes()).unwrap();
    assert_snapshot!(about_files(&transcript(&child.wait_with_output().unwrap())));
}

/// A Node that a library's tests read: its address is in its own pod CIDR, as no cluster has it.
const FIXTURE: &str = "\
apiVersion: v1
kind: Node
metadata: {name: fixture}
spec: {podCIDR: 10.0.0.1/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
";

#[test]
fn folders_of_dependencies_are_read_where_they_are_named() {
    let folder = Folder::new("foreign");
    folder
        .file("deploy/web.yaml", WEB)
        .file("go.mod", "module web\n")
        .file("vendor/example.org/lib/node.yaml", FIXTURE)
        .file("vendor/example.org/lib/pod.yaml", "kind: [\n")
        .file("tools/vendor/modules.txt", "# example.org/lib v1.0.0\n")
        .file("tools/vendor/lib/node.yaml", FIXTURE)
        .file("web/package.json", "{}")
        .file("web/node_modules/lib/k8s.json", "{")
        .file("pkg/a.go", "package a\n")
        .file("pkg/testdata/node.yaml", FIXTURE)
        .file(".git/config.yaml", FIXTURE);
    let printed = folder.run(&["scan", "-f", "."]);
    assert!(printed.starts_with("exit 0\n--- stdout\nnothing found; "), "{printed}");
    let line = "left out: files in folders of dependencies or of tests' data; name a folder with -f \
                to read it (6): ./.git, ./pkg/testdata, ./tools/vendor, ./vendor, ./web/node_modules\n";
    assert!(printed.contains(line), "{printed}");
    let json = folder.run(&["scan", "-f", ".", "-o", "json"]);
    assert!(json.contains("\"./pkg/testdata\""), "{json}");
    // It is the user who names it.
    for path in ["pkg/testdata", "tools/vendor", "./tools/vendor/lib"] {
        let printed = folder.run(&["scan", "-v", "-f", path]);
        assert!(printed.contains("read 1 Node"), "{path}: {printed}");
    }
}

#[test]
fn folders_that_are_only_called_alike_are_read() {
    let folder = Folder::new("not-foreign");
    folder
        .file("vendor/web.yaml", WEB)
        .file("testdata/node.yaml", FIXTURE)
        .file("node_modules/more.yaml", &WEB.replace("name: web}", "name: more}"));
    let printed = folder.run(&["scan", "-v", "-f", "."]);
    assert!(printed.contains("read 2 Deployment, 1 Node, 2 Service"), "{printed}");
    assert!(!printed.contains("left out"), "{printed}");
}

/// The result of the rest is given, the fault is named, and the exit status says that it is not all.
#[test]
fn a_file_with_faults_does_not_hide_the_result_of_the_others() {
    let folder = Folder::new("faulty");
    folder
        .file("all/web.yaml", WEB)
        .file("all/api.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: <name>}\nspec: []\n")
        .file("all/broken.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: a\nspec: b: c\n");
    let printed = folder.run(&["scan", "-f", "all"]);
    let parts = [
        "exit 2\n--- stdout\nnothing found; ",
        "left out: files with errors (2): all/api.yaml, all/broken.yaml\n",
        "--- stderr\n",
        "error: all/api.yaml:3:18: ",
        "error: all/broken.yaml:",
    ];
    parts.iter().for_each(|part| assert!(printed.contains(part), "{part}: {printed}"));
    let json = folder.run(&["scan", "-f", "all", "-o", "json"]);
    assert!(
        json.starts_with("exit 2\n--- stdout\n{") && json.contains("all/broken.yaml"),
        "{json}"
    );
    let classes = folder.run(&["scan", "-f", "all", "--explain-classes"]);
    assert!(classes.starts_with("exit 2\n"), "{classes}");
    // What the user names is to be read, and so are Facts.
    let named = folder.run(&["scan", "-f", "all/web.yaml", "-f", "all/api.yaml"]);
    assert!(named.starts_with("exit 2\n--- stderr\nerror: all/api.yaml:3:18: "), "{named}");
    folder
        .file("all/facts.yaml", "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {clouds: a}\n");
    let facts = folder.run(&["scan", "-f", "all"]);
    assert!(facts.starts_with("exit 2\n--- stderr\n"), "{facts}");
}
