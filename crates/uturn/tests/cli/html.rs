//! `scan -o html` and `trace -o svg`: pages and pictures that need nothing else.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::common::{Folder, uturn};
use super::shop::shop_with;

fn page(args: &[&str]) -> String {
    let output = uturn(&[&["scan"], args, &["-o", "html"]].concat()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The values of an attribute.
fn values<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    let start = format!(" {attribute}=\"");
    page.split(start.as_str()).skip(1).map(|value| value.split('"').next().unwrap()).collect()
}

#[test]
fn a_page_needs_nothing_else() {
    let page = page(&["-f", "examples/shop"]);
    let ids = values(&page, "id");
    let known: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), known.len(), "an id is there twice");
    for to in values(&page, "href") {
        let is_here = to.strip_prefix('#').is_some_and(|id| known.contains(id));
        assert!(is_here || to == "data:,", "href {to}");
    }
    for names in values(&page, "aria-labelledby") {
        assert!(names.split(' ').all(|name| known.contains(name)), "{names}");
    }
    assert!(values(&page, "src").is_empty());
    assert_eq!(values(&page, "open").len(), 1, "the first picture is open");
    let (before, after) = page.split_once("<details open=").unwrap();
    assert!(!before.contains("<svg ") && after.contains("<svg "));
    for part in [
        "UT101 Ingress loopback: ingress/shop/front",
        "<span class=\"add\">+        rewrite name shop.example.com",
        "<svg ",
        "id=\"page-UT101\"",
        "Supposed",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page, self::page(&["-f", "examples/shop"]), "twice the same");
}

#[test]
fn a_picture_says_what_it_shows() {
    let args = ["trace", "-f", "examples/shop", "--from", "pod/shop/web-0"];
    let to = ["--to", "http://shop.example.com/", "-o", "svg"];
    let output = uturn(&[&args[..], &to].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let picture = String::from_utf8(output.stdout).unwrap();
    let about = picture.split("<desc").nth(1).unwrap().split("</desc>").next().unwrap();
    for part in
        ["1 in 3 answered after 4 s", "node/n1: ↩ goes straight to the pod", "to lb/shop-front"]
    {
        assert!(about.contains(part), "{part}: {about}");
    }
    for part in
        ["class=\"ut-turn\"", "role=\"img\"", "10.1.1.10:40000 → 10.0.0.100:80", "rules/n1:"]
    {
        assert!(picture.contains(part), "{part}");
    }
}

#[test]
fn ways_that_end_alike_are_one_picture() {
    let args = ["trace", "-f", "examples/shop", "--from", "deploy/shop/web", "--all"];
    let to = ["--to", "ingress/shop/front", "-o", "svg"];
    let output = uturn(&[&args[..], &to].concat()).output().unwrap();
    let picture = String::from_utf8(output.stdout).unwrap();
    assert_eq!(picture.matches("ways that end alike").count(), 2);
}

/// Of many findings with one cause the worst is shown in full and the others take a row each,
/// and the filter finds each of them.
#[test]
fn findings_with_one_cause_are_folded() {
    let folder = shop_with("folded", 60, |_| "front");
    let at = folder.0.to_str().unwrap();
    let page = page(&["-f", at]);
    let output = uturn(&["scan", "-f", at, "-o", "json"]).output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = result["findings"].as_array().unwrap();
    let counts = values(&page, "data-count");
    let count: usize = counts.iter().map(|count| count.parse::<usize>().unwrap()).sum();
    assert_eq!(count, findings.len());
    assert!(findings.len() > 60 && counts.len() < 10, "{} {}", findings.len(), counts.len());
    for part in [
        "UT101 Ingress loopback: 61 findings",
        "<dd>61 Ingresses, 62 targets</dd>",
        "<dd>call svc/shop/front:80 (one change for all)</dd>",
        "<summary>The other 60 findings</summary>",
        // The worst has cures of its own.
        "<span class=\"add\">+        rewrite name ",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for at in 1..=60 {
        let row = format!("<code>ingress/shop/more-{at} :80 h{at}.example.com/</code>");
        let worst = format!("<h4>The worst: ingress/shop/more-{at}</h4>");
        assert!(page.contains(&row) || page.contains(&worst), "{row}");
    }
    let is_cured = |finding: &&Value| {
        finding["code"] == "UT101" && finding["cures"][0] == "call svc/shop/front:80"
    };
    assert_eq!(findings.iter().filter(is_cured).count(), 61);
    let has_evidence = |finding: &Value| !finding["evidence"].as_array().unwrap().is_empty();
    assert!(findings.iter().all(has_evidence));
    let probe = "<script>\n\
        var seen = [];\n\
        function see(what) {\n\
          var open = document.querySelectorAll('details.others[open]').length;\n\
          seen.push(what + '=' + count.textContent + ', ' + open + ' open');\n\
        }\n\
        function look(text) { words.value = text; filter.dispatchEvent(new Event('input')); }\n\
        see('all'); look('more-17'); see('single'); look('UT101 h3'); see('some');\n\
        look('nowhere'); see('none'); look(''); see('again');\n\
        document.title = seen.join('; ');\n</script>\n</body>";
    let Some(title) = in_browser(&folder, &page.replace("</body>", probe)) else { return };
    let all = findings.len();
    // A looping client also takes a healthy target out, which is a finding of its own.
    let of =
        |what: &str| findings.iter().filter(|finding| finding.to_string().contains(what)).count();
    let single = of("shop\",\"name\":\"more-17\"");
    assert_eq!(
        title,
        format!(
            "all={all} of {all} shown, 0 open; single={single} of {all} shown, {single} open; \
             some=11 of {all} shown, 1 open; none=0 of {all} shown, 0 open; \
             again={all} of {all} shown, 0 open"
        )
    );
}

/// In a browser the filter works, and the console stays empty.
#[test]
fn the_page_works_in_a_browser() {
    let folder = Folder::new("browser");
    let shop = page(&["-f", "examples/shop"]);
    let probe = "<script>\n\
        var seen = [];\n\
        function see(what) { seen.push(what + '=' + count.textContent); }\n\
        see('all');\n\
        words.value = 'front asymmetric'; filter.dispatchEvent(new Event('input')); see('hit');\n\
        words.value = 'nowhere'; filter.dispatchEvent(new Event('input')); see('miss');\n\
        words.value = ''; filter.elements.severity[0].checked = false;\n\
        filter.dispatchEvent(new Event('input')); see('warnings');\n\
        location.hash = '#page-UT101';\n\
        addEventListener('hashchange', function () {\n\
          seen.push('open=' + document.getElementById('page-UT101').open);\n\
          document.title = seen.join('; ');\n\
        });\n</script>\n</body>";
    let Some(title) = in_browser(&folder, &shop.replace("</body>", probe)) else { return };
    assert_eq!(
        title,
        "all=2 of 2 shown; hit=1 of 2 shown; miss=0 of 2 shown; warnings=1 of 2 shown; open=true"
    );
}

/// Loads a page and returns the title that its script sets; the console must stay empty.
/// Returns `None` if there is no browser.
fn in_browser(folder: &Folder, page: &str) -> Option<String> {
    folder.file("page.html", page);
    let browser = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.0.join("profile").display()))
        .arg(format!("file://{}", folder.0.join("page.html").display()))
        .stdin(Stdio::null())
        .output();
    let output = match browser {
        Ok(output) if output.status.success() => output,
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            uturn_testing::skip(uturn_testing::Requirement::Browser, "the page in a browser", why);
            return None;
        }
        Err(why) => {
            uturn_testing::skip(
                uturn_testing::Requirement::Browser,
                "the page in a browser",
                format!("chromium: {why}"),
            );
            return None;
        }
    };
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(!complaints.contains("CONSOLE"), "{complaints}");
    let dom = String::from_utf8_lossy(&output.stdout);
    let title = dom.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
    Some(title.to_owned())
}

/// What was not judged is on the page too: nothing found is not the same as nothing to find.
#[test]
fn what_is_not_judged_is_said() {
    let folder = Folder::new("html-gaps");
    folder.file(
        "cluster.yaml",
        "apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop}
spec: {nodeName: n1, containers: [{name: c, image: c}]}
status: {phase: Running, podIP: 10.1.1.5}
---
apiVersion: v1
kind: Pod
metadata: {name: young, namespace: shop}
spec: {nodeName: n1, containers: [{name: c, image: c}]}
status: {phase: Pending}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.10, ports: [{port: 80}], selector: {app: web}}
",
    );
    let page = folder.run(&["scan", "-f", ".", "-o", "html"]);
    let (_, gaps) = page.split_once(">Not judged</h2>").unwrap();
    let (gaps, _) = gaps.split_once("</section>").unwrap();
    assert!(gaps.contains("<b>endpoints of 1 Service</b>: svc/shop/web: nothing here"), "{gaps}");
    assert!(gaps.contains("To settle it: give the EndpointSlices"), "{gaps}");
    assert!(gaps.contains("the calls of 1 pod that has no address yet: shop/young"), "{gaps}");
    assert!(page.contains("<b>1</b> not judged"), "{page}");
    assert!(!self::page(&["-f", "examples/shop"]).contains("Not judged"));
}
