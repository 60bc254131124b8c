//! One finding on the page.

use uturn_diagnose::cure::{Answer, Cure, unified};
use uturn_diagnose::{Example, Finding};

use super::{Shown, badge};
use crate::scan::{self, ScanReport};
use crate::xml::escape;
use crate::{cure, svg, words};

/// So many names stand in a list; the rest is counted.
const MOST_NAMES: usize = 60;

/// Its way, where one was walked.
pub(super) fn picture(at: usize, finding: &Finding, shown: &Shown) -> Option<String> {
    let flow = shown.flow.as_ref()?;
    if shown.verdicts.is_empty() || matches!(finding.example, Example::Probes(..)) {
        return None;
    }
    let name = format!("w{}", at + 1);
    Some(svg::picture(flow, &shown.verdicts, &[finding.code.to_string()], &name))
}

pub(super) fn article(
    report: &ScanReport,
    at: usize,
    shown: &Shown,
    picture: Option<&str>,
) -> String {
    let finding = &report.findings[at];
    let number = at + 1;
    let (code, severity) = (finding.code, finding.severity);
    let subject = finding.subject.short();
    let because = scan::because(finding);
    let who = words::who(&finding.clients);
    let nodes: Vec<String> = finding.clients.nodes().iter().map(ToString::to_string).collect();
    let pods: Vec<String> = words::pods(&finding.clients).iter().map(ToString::to_string).collect();
    // What may be searched for: everything that is said in a line, and the names.
    let mut find = format!("{code} {} {subject} {because} {who}", code.title());
    for one in finding.targets.iter().chain(&nodes).chain(&pods).take(3 * MOST_NAMES) {
        find.push_str(&format!(" {one}"));
    }
    let share = match finding.share_failing {
        some if some > 0.0 => format!("{} {}", words::share(some), words::ending(finding.outcome)),
        _ => "not yet".to_owned(),
    };
    let mut text = format!(
        "<article id=\"f{number}\" class=\"{severity}\" data-severity=\"{severity}\" \
         data-code=\"{code}\" data-find=\"{}\" aria-labelledby=\"f{number}-h\">\n\
         <h3 id=\"f{number}-h\">{} {code} {}: {}</h3>\n\
         <p><b>{}</b> for {} · {} · <a href=\"#page-{code}\">what {code} means</a></p>\n",
        escape(&find.to_lowercase()),
        badge(severity),
        escape(code.title()),
        escape(&subject),
        escape(&share),
        escape(&who),
        escape(&because),
    );
    text.push_str(&names("Targets", &finding.targets, finding.targets.len()));
    text.push_str(&names("Clients", &pods, finding.clients.pod_count()));
    if let Some(origin) = report.origins.get(at) {
        text.push_str(&format!("<p>Written at <code>{}</code></p>\n", escape(&origin.to_string())));
    }
    if !finding.cures.is_empty() {
        text.push_str(&format!("<p>Cure: {}</p>\n", escape(&words::first_of(&finding.cures))));
    }
    text.push_str(&evidence(report, at));
    text.push_str(&way(shown, picture));
    text.push_str(&cures(finding, &shown.cures));
    text.push_str("</article>\n");
    text
}

fn names(what: &str, names: &[String], all: usize) -> String {
    if names.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|one| escape(one)).collect();
    let more = match all - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more (<code>uturn scan -o json</code> names them)"),
    };
    let list = format!("<code>{}</code>{more}", shown.join("</code>, <code>"));
    match names.len() > 4 {
        false => format!("<p>{what}: {list}</p>\n"),
        true => {
            format!("<details>\n<summary>{what}: {all}</summary>\n<p>{list}</p>\n</details>\n")
        }
    }
}

fn evidence(report: &ScanReport, at: usize) -> String {
    let rows: String = report
        .evidence
        .get(at)
        .into_iter()
        .flatten()
        .map(|one| {
            let place = match one.place.as_str() {
                "" => String::new(),
                place => format!("<b>{}</b>: ", escape(place)),
            };
            let see = one
                .see()
                .map_or(String::new(), |see| format!("<br/>see: <code>{}</code>", escape(&see)));
            format!(
                "<li>{place}{}<br/><code class=\"dim\">{}</code>{see}</li>\n",
                escape(&one.what),
                escape(&one.by.to_string())
            )
        })
        .collect();
    match rows.as_str() {
        "" => String::new(),
        rows => format!(
            "<details>\n<summary>Evidence</summary>\n<ol class=\"evidence\">\n{rows}</ol>\n</details>\n"
        ),
    }
}

fn way(shown: &Shown, picture: Option<&str>) -> String {
    let Some(flow) = &shown.flow else { return String::new() };
    let trace = format!("uturn trace --from {} --to {}", flow.from, flow.to);
    match picture {
        Some(picture) => format!(
            "<details>\n<summary>The packet's way</summary>\n<div class=\"way\" tabindex=\"0\" \
             role=\"region\" aria-label=\"The packet's way\">\n{picture}</div>\n<p>In words: \
             <code>{}</code></p>\n</details>\n",
            escape(&trace)
        ),
        None => format!("<p>The packet's way: <code>{} -o svg</code></p>\n", escape(&trace)),
    }
}

fn cures(finding: &Finding, all: &[Cure]) -> String {
    let offered: Vec<&Cure> = all.iter().filter(|one| one.is_offered()).collect();
    let refused: Vec<&Cure> = all.iter().filter(|one| !one.is_offered()).collect();
    if all.is_empty() {
        // A single one stands above already.
        if finding.cures.len() < 2 {
            return String::new();
        }
        let list: String =
            finding.cures.iter().map(|one| format!("<li>{}</li>\n", escape(one))).collect();
        return format!("<details>\n<summary>Cures</summary>\n<ul>\n{list}</ul>\n</details>\n");
    }
    let mut text = match offered.len() {
        0 => "<details>\n<summary>No cure works here</summary>\n".to_owned(),
        count => format!("<details>\n<summary>{}</summary>\n", words::count(count, "cure")),
    };
    for one in offered {
        text.push_str(&offer(one));
    }
    if !refused.is_empty() {
        let list: String = refused
            .iter()
            .map(|one| {
                let why = one.refused.as_deref().unwrap_or_default();
                format!(
                    "<li>{}: <span class=\"dim\">{}</span></li>\n",
                    escape(&one.title),
                    escape(why)
                )
            })
            .collect();
        text.push_str(&format!("<div class=\"cure\"><h4>Not here</h4>\n<ul>\n{list}</ul></div>\n"));
    }
    text.push_str("</details>\n");
    text
}

fn offer(one: &Cure) -> String {
    let mut text = format!(
        "<div class=\"cure\">\n<h4>{} <span class=\"dim\">{}</span></h4>\n<ul>\n",
        escape(&one.title),
        escape(one.name)
    );
    let mut item = |what: &str, said: &str| {
        text.push_str(&format!("<li>{what}: {}</li>\n", escape(said)));
    };
    item("now", &cure::standing(&one.before));
    if let Some(after) = &one.after {
        item("then", &cure::standing(after));
    }
    for condition in &one.conditions {
        let word = match condition.answer {
            Answer::Holds => "holds",
            Answer::Fails => "fails",
            Answer::Unknown => "make sure",
        };
        item(word, &format!("{}: {}", condition.what, condition.because));
    }
    for effect in &one.effects {
        item("costs", effect);
    }
    for command in &one.commands {
        item("do", command);
    }
    text.push_str("</ul>\n");
    for changed in &one.changed {
        text.push_str(&diff(&unified(&changed.name, changed.before.as_deref(), &changed.after)));
    }
    text.push_str("</div>\n");
    text
}

fn diff(text: &str) -> String {
    let lines: String = text
        .lines()
        .map(|line| {
            let class = match line.as_bytes().first() {
                _ if line.starts_with("---") || line.starts_with("+++") => "dim",
                Some(b'+') => "add",
                Some(b'-') => "del",
                Some(b'@') => "dim",
                _ => "same",
            };
            format!("<span class=\"{class}\">{}</span>\n", escape(line))
        })
        .collect();
    format!("<pre class=\"diff\" tabindex=\"0\" aria-label=\"Diff\">{lines}</pre>\n")
}
