//! `scan -o html` and `trace -o svg`: pages and pictures that need nothing else.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use super::common::{Folder, uturn};

fn page(args: &[&str]) -> String {
    let output = uturn(&[&["scan"], args, &["-o", "html"]].concat()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The values of an attribute.
fn values<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    let start = format!(" {attribute}=\"");
    page.split(start.as_str()).skip(1).map(|one| one.split('"').next().unwrap()).collect()
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
        assert!(names.split(' ').all(|one| known.contains(one)), "{names}");
    }
    assert!(values(&page, "src").is_empty());
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

/// A real browser: the filter works, and nothing is complained of.
#[test]
fn the_page_works_in_a_browser() {
    let folder = Folder::new("browser");
    let shop = page(&["-f", "examples/shop"]);
    let probe = "<script>\n\
        var said = [];\n\
        function see(what) { said.push(what + '=' + count.textContent); }\n\
        see('all');\n\
        words.value = 'front asymmetric'; filter.dispatchEvent(new Event('input')); see('hit');\n\
        words.value = 'nowhere'; filter.dispatchEvent(new Event('input')); see('miss');\n\
        words.value = ''; filter.elements.severity[0].checked = false;\n\
        filter.dispatchEvent(new Event('input')); see('warnings');\n\
        location.hash = '#page-UT101';\n\
        addEventListener('hashchange', function () {\n\
          said.push('open=' + document.getElementById('page-UT101').open);\n\
          document.title = said.join('; ');\n\
        });\n</script>\n</body>";
    folder.file("page.html", &shop.replace("</body>", probe));
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
            return uturn_testing::left_out("the page in a browser", why);
        }
        Err(why) => {
            return uturn_testing::left_out("the page in a browser", format!("chromium: {why}"));
        }
    };
    let dom = String::from_utf8_lossy(&output.stdout);
    let title = dom.split("<title>").nth(1).unwrap().split("</title>").next().unwrap();
    assert_eq!(
        title,
        "all=2 of 2 shown; hit=1 of 2 shown; miss=0 of 2 shown; warnings=1 of 2 shown; open=true"
    );
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(!complaints.contains("CONSOLE"), "{complaints}");
}
