//! `uturn whatif` and `uturn diff`: what a change does to calls, and what is wrong with one.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use super::common::{Folder, root, run, uturn};
use super::conforms::{assert_conforms, violations};

const SHOP: [&str; 3] = ["whatif", "-f", "examples/shop"];

fn on_shop(args: &[&str]) -> String {
    run(&[&SHOP[..], args].concat())
}

fn json(args: &[&str]) -> Value {
    let output = uturn(&[args, &["-o", "json"]].concat()).output().unwrap();
    let value = serde_json::from_slice(&output.stdout).unwrap();
    assert_conforms("whatif", &value);
    value
}

/// Returns the effects of a list.
fn effects(value: &Value, list: &str) -> Vec<String> {
    let entries = value[list].as_array().unwrap();
    entries.iter().map(|entry| entry["effect"].as_str().unwrap().to_owned()).collect()
}

const NO_POD: &str = "svc/shop/api:spec.selector.app=apj";

#[test]
fn a_selector_without_pods() {
    assert_snapshot!(on_shop(&["--set", NO_POD]));
    assert_snapshot!("a_selector_without_pods_wide", on_shop(&["--set", NO_POD, "-o", "wide"]));
    let value = json(&[&SHOP[..], &["--set", NO_POD]].concat());
    let worst = &value["worse"][0];
    assert_eq!(worst["effect"], "fails");
    assert_eq!(worst["subject"]["name"], "api");
    assert_eq!(worst["before"]["outcomes"][0]["outcome"], "answered");
    assert_ne!(worst["after"]["outcomes"][0]["outcome"], "answered");
    assert_eq!(value["changes"][0]["change"], format!("--set {NO_POD}"));
    assert_eq!(value["changes"][0]["objects"][0], "svc/shop/api");
}

#[test]
fn facts_of_a_file_are_stated() {
    assert_snapshot!(on_shop(&["-p", "examples/facts-snat.yaml"]));
}

#[test]
fn nothing_changes() {
    let note = ["--annotate", "svc/shop/api:example.com/owner=shop"];
    let printed = on_shop(&note);
    assert!(printed.starts_with("exit 0\n") && printed.contains("nothing changes"), "{printed}");
    let value = json(&[&SHOP[..], &note].concat());
    for list in ["worse", "better", "other"] {
        assert_eq!(value[list].as_array().unwrap().len(), 0, "{list}");
    }
    // The same value as before.
    let same = on_shop(&["--kube-proxy-mode", "iptables"]);
    assert!(same.starts_with("exit 0\n") && same.contains("nothing changes"), "{same}");
}

#[test]
fn the_exit_status_is_asked_for() {
    let status = |args: &[&str]| on_shop(&[&["--set", NO_POD], args].concat());
    assert!(status(&["--fail-on", "never"]).starts_with("exit 0\n"));
    assert!(status(&["--fail-on", "any"]).starts_with("exit 1\n"));
    let better = ["-p", "examples/facts-snat.yaml"];
    assert!(on_shop(&better).starts_with("exit 0\n"));
    assert!(on_shop(&[&better[..], &["--fail-on", "any"]].concat()).starts_with("exit 1\n"));
}

#[test]
fn a_wrong_change_is_an_error_with_its_place() {
    let folder = Folder::new("whatif-wrong");
    let file = |name: &str, text: &str| {
        folder.file(name, text);
        folder.0.join(name).to_str().unwrap().to_owned()
    };
    let misspelt = file(
        "misspelt.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: front, namespace: shop}\nspec:\n  \
         externaltrafficPolicy: Local\n",
    );
    let missing = file(
        "missing.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: frnt, namespace: shop}\nspec: {type: \
         NodePort}\n",
    );
    let wrong: [(&[&str], &str); 16] = [
        (&[], "no change"),
        (&["--set", "svc/shop/front:spec.externaltrafficPolicy=Local"], "externalTrafficPolicy?"),
        (&["--set", "svc/shop/front:spec.externalTrafficPolicy=Lokal"], "Cluster or Local"),
        (&["--set", "svc/shop/front:spec.ports[0].port=http"], "spec.ports[0].port"),
        (&["--set", "svc/shop/front:spec.ports[5].port=80"], "1 items"),
        (&["--set", "svc/shop/front:spec.ports[name=htp].port=80"], "did you mean http?"),
        (&["--set", "svc/shop/front:spec.ports.port=80"], "name one"),
        (&["--set", "svc/shop/front:spec.unheard=1"], "has no field unheard"),
        (&["--set", "svc/shop/frnt:spec.type=NodePort"], "did you mean shop/front?"),
        (&["--set", "scv/shop/front:spec.type=NodePort"], "did you mean svc?"),
        (&["--set", "svc/front:spec.type=NodePort"], "-n"),
        (&["--delete", "deploy/shop/wen"], "did you mean shop/web?"),
        (&["--kube-proxy-mode", "nftable"], "did you mean nftables?"),
        (
            &["--kube-proxy-mode", "nftables", "--kube-proxy-version", "v1.22"],
            "--kube-proxy-version v1.22: node n1: kube-proxy v1.22.0 has no nftables mode",
        ),
        (&["-p", &misspelt], "misspelt.yaml:1"),
        (&["-p", &missing], "lacks spec.ports"),
    ];
    for (args, expected) in wrong {
        let printed = on_shop(args);
        assert!(printed.starts_with("exit 2\n"), "{args:?}: {printed}");
        assert!(printed.contains(expected), "{args:?}: {printed}");
    }
    // The nodes of a Scenario are no objects.
    let derived = run(&["whatif", "-f", "scenarios/l7-loop.yaml", "--delete", "node/n1"]);
    assert!(derived.starts_with("exit 2\n") && derived.contains("was derived"), "{derived}");
    // With -n the name is whole.
    let named = on_shop(&["-n", "shop", "--annotate", "svc/front:a=b"]);
    assert!(named.starts_with("exit 0\n"), "{named}");
}

#[test]
fn patches_of_every_form_do_the_same() {
    let folder = Folder::new("whatif-patches");
    let forms = [
        "apiVersion: v1\nkind: Service\nmetadata: {name: api, namespace: shop}\nspec: {selector: \
         {app: apj}}\n",
        "- target: {kind: Service, name: api}\n  patch: |-\n    - op: replace\n      path: \
         /spec/selector/app\n      value: apj\n",
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\npatches:\n- target: \
         {kind: Service, name: api, namespace: shop}\n  patch: {spec: {selector: {app: apj}}}\n",
    ];
    let expected = json(&[&SHOP[..], &["--set", NO_POD]].concat());
    for (at, form) in forms.iter().enumerate() {
        let name = format!("{at}.yaml");
        folder.file(&name, form);
        let file = folder.0.join(&name);
        let value = json(&[&SHOP[..], &["-p", file.to_str().unwrap()]].concat());
        for list in ["worse", "better", "other"] {
            assert_eq!(effects(&value, list), effects(&expected, list), "{form}");
        }
    }
}

#[test]
fn a_whole_object_keeps_what_the_api_server_assigned() {
    let folder = Folder::new("whatif-whole");
    folder.file(
        "front.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: front, namespace: shop}\nspec: {type: \
         NodePort, selector: {app: front}, ports: [{name: http, port: 80, targetPort: 8080}]}\n",
    );
    let file = folder.0.join("front.yaml");
    let printed = on_shop(&["-p", file.to_str().unwrap()]);
    assert!(printed.contains("nothing changes"), "{printed}");
}

#[test]
fn what_is_deleted_on_purpose_is_gone() {
    let value = json(&[&SHOP[..], &["--delete", "svc/shop/front"]].concat());
    assert!(effects(&value, "other").contains(&"gone".to_owned()), "{value}");
    // The Ingress still leads there.
    let worse = value["worse"].as_array().unwrap();
    assert!(worse.iter().any(|entry| entry["subject"]["kind"] == "Ingress"), "{value}");
    let value = json(&[&SHOP[..], &["--delete", "deploy/shop/front"]].concat());
    let worse = value["worse"].as_array().unwrap();
    assert!(worse.iter().any(|entry| entry["subject"]["name"] == "front"), "{value}");
}

#[test]
fn changes_are_made_in_the_order_in_which_they_are_typed() {
    let there_and_back = ["--set", NO_POD, "--set", "svc/shop/api:spec.selector.app=api"];
    let printed = on_shop(&there_and_back);
    assert!(printed.contains("nothing changes"), "{printed}");
    let back_and_there = ["--set", "svc/shop/api:spec.selector.app=api", "--set", NO_POD];
    assert!(on_shop(&back_and_there).starts_with("exit 1\n"));
}

#[test]
fn a_scenario_runs_in_another_mode() {
    let args = ["whatif", "-f", "scenarios/l4-iptables.yaml", "--kube-proxy-mode", "ipvs"];
    let value = json(&args);
    let otherwise = &value["other"][0];
    assert_eq!(otherwise["effect"], "goes-otherwise", "{value}");
    let way = |side: &str| otherwise[side]["way"].as_str().unwrap();
    assert!(way("before").contains("past the load balancer"), "{value}");
    assert!(way("after").contains("through the load balancer"), "{value}");
}

#[test]
fn a_comment_is_short_and_stable() {
    let args = ["--set", NO_POD, "-o", "markdown"];
    let first = on_shop(&args);
    assert_snapshot!(first);
    assert_eq!(first, on_shop(&args));
}

#[test]
fn sarif_has_what_gets_worse() {
    let args = [&SHOP[..], &["--set", NO_POD, "-o", "sarif"]].concat();
    let output = uturn(&args).output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let file = root().join("crates/uturn/tests/data/sarif-2.1.0.schema.json");
    let text = fs::read_to_string(file).unwrap().replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}$");
    assert_eq!(violations(&serde_json::from_str(&text).unwrap(), &value), [""; 0]);
    let results = value["runs"][0]["results"].as_array().unwrap();
    let uri = &results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(uri, "examples/shop/api.yaml", "{value}");
}

/// Copies the shop, with other names of files and another order of documents.
fn shop(folder: &Folder, side: &str, edit: impl Fn(String) -> String) -> String {
    for entry in fs::read_dir(root().join("examples/shop")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let mut documents: Vec<&str> = text.split("---\n").collect();
        if side == "after" {
            documents.reverse();
        }
        let documents: Vec<String> =
            documents.iter().map(|own| format!("{}\n", own.trim_end())).collect();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let name = if side == "after" { format!("zz-{name}") } else { name };
        folder.file(&format!("{side}/{name}.yaml"), &edit(documents.join("---\n")));
    }
    folder.0.join(side).to_str().unwrap().to_owned()
}

#[test]
fn names_of_files_and_the_order_of_documents_make_no_difference() {
    let folder = Folder::new("diff-renamed");
    let before = shop(&folder, "before", |text| text);
    let after = shop(&folder, "after", |text| text);
    let printed = run(&["diff", &before, &after]);
    assert!(printed.starts_with("exit 0\n") && printed.contains("nothing changes"), "{printed}");
    let value = json(&["diff", &before, &after]);
    assert_eq!(value["changes"].as_array().unwrap().len(), 0, "{}", value["changes"]);
}

#[test]
fn a_diff_is_the_change_itself() {
    let folder = Folder::new("diff-edited");
    let before = shop(&folder, "before", |text| text);
    let after = shop(&folder, "after", |text| {
        text.replace("{ready: true, serving: true", "{ready: false, serving: false")
    });
    let value = json(&["diff", &before, &after]);
    let changed: Vec<&str> = value["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["change"].as_str().unwrap())
        .collect();
    assert!(changed.contains(&"changes EndpointSlice/shop/api-b5n9j"), "{changed:?}");
    assert!(!value["worse"].as_array().unwrap().is_empty(), "{value}");
    let back = json(&["diff", &after, &before]);
    assert_eq!(value["worse"].as_array().unwrap().len(), back["better"].as_array().unwrap().len());
    let missing = run(&["diff", &before, "nowhere"]);
    assert!(missing.starts_with("exit 2\n") && missing.contains("nowhere"), "{missing}");
}
