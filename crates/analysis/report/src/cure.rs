//! Formats cures: those that work, with what they need, cost and change; then those that do not,
//! and why.

use uturn_diagnose::Code;
use uturn_diagnose::cure::{Answer, CaseState, Cure};
use uturn_document::edit::Tree;
use uturn_model::{Mechanism, ObjectRef, Outcome, Share, Verdict};

use crate::lines::Lines as _;
use crate::style::{Style, in_a_line};
use crate::trace::Meaning;
use crate::{table, trace, words};

/// The cures of a case.
#[derive(Clone, Debug)]
pub struct CureReport {
    /// The codes of the case's findings; empty if there are none.
    pub codes: Vec<String>,
    /// The state of the case before any edit.
    pub now: CaseState,
    /// How a called flow ends in each case of what is not known, and what that means; empty for what is
    /// no flow that somebody named.
    pub endings: Vec<(Verdict, Meaning)>,
    /// All cures that are known for the case, those that work first.
    pub cures: Vec<Cure>,
}

/// Formats each case: its present state, the cures that work, and why others do not.
pub fn text(reports: &[CureReport], style: Style) -> String {
    reports.iter().map(|report| case(report, style)).collect::<Vec<String>>().join("\n")
}

fn case(report: &CureReport, style: Style) -> String {
    let mut text = in_a_line(&style.bold(&subject(&report.now))).into_owned() + "\n";
    let now = case_state(&report.now);
    if let CaseState::Object { .. } = report.now {
        text.push_str(&wrapped(
            "  now       ",
            &format!("{}: {now}", report.codes.join(" ")),
            style,
        ));
    } else if !report.endings.is_empty() {
        text.push_str(&endings(report, style));
    } else {
        let now = if report.now.is_fine() { style.green(&now) } else { style.red(&now) };
        text.push_str(&format!("  now       {now}"));
        if !report.codes.is_empty() {
            text.push_str(&format!("   {}", report.codes.join(" ")));
        }
        text.push('\n');
    }
    let offered = report.cures.iter().filter(|cure| cure.is_offered());
    for (number, cure) in offered.enumerate() {
        text.push_str(&offer(number + 1, cure, style));
    }
    let others = report.cures.iter().filter(|cure| !cure.is_offered());
    let (untried, refused): (Vec<&Cure>, Vec<&Cure>) = others.partition(|cure| cure.is_untried);
    for (heading, cures) in [("not here", refused), ("not tried", untried)] {
        if !cures.is_empty() {
            text.push_str(&format!("\n{heading}:\n"));
        }
        for cure in cures {
            text.push_str(&wrapped(
                &format!("  {:<20}  ", cure.name),
                &format!("{}. {}", cure.title, reason(cure)),
                style,
            ));
        }
    }
    // A call that is answered elsewhere has a code and is fine.
    let is_in_order = report.now.is_fine() && report.codes.is_empty();
    if report.cures.is_empty() && !is_in_order {
        let codes: Vec<Code> = report.codes.iter().filter_map(|code| code.parse().ok()).collect();
        let more = match report.now {
            CaseState::Object { .. } => {
                let pages: Vec<String> =
                    codes.iter().map(|code| code.explain().to_string()).collect();
                format!("{} has what usually helps", pages.join(", "))
            }
            CaseState::Flow { .. } | CaseState::Probes { .. } => {
                "uturn trace shows where it ends".to_owned()
            }
        };
        text.push_str(&format!("\nno cure is known for this: {more}\n"));
        let next = codes.iter().find_map(|code| of_objects(*code, &report.now));
        text.push_str(&wrapped("next: ", next.unwrap_or_else(|| next_step(&report.now)), style));
    }
    text
}

/// Describes how a flow ends in each case, with the reason; cases that end alike in one line.
fn endings(report: &CureReport, style: Style) -> String {
    let CaseState::Flow { is_misled, .. } = &report.now else { return String::new() };
    let all = &report.endings;
    let ends = |at: usize| {
        let (verdict, meaning) = &all[at];
        (&verdict.outcomes, &verdict.mechanisms, &meaning.codes)
    };
    let mut text = String::new();
    for group in trace::alike(all.len(), |a, b| ends(a) == ends(b)) {
        let (verdict, meaning) = &all[group[0]];
        let conditions: Vec<String> = group
            .iter()
            .filter(|at| !all[**at].0.conditions.is_empty())
            .map(|at| format!("if {}", all[*at].0.conditions.join(" and ")))
            .collect();
        let case = match &*conditions {
            [] => String::new(),
            some => format!("{}: ", some.join(", or ")),
        };
        let end = state_of(&verdict.outcomes, &verdict.mechanisms, *is_misled);
        let codes = match &*meaning.codes {
            [] => String::new(),
            some => format!("   {}", some.join(" ")),
        };
        let first = if text.is_empty() { "  now       " } else { "            " };
        let line = format!("{case}{end}{codes}");
        // A line that is folded has no colours: they would end within it.
        if table::length(&line) + first.len() <= style.width {
            let end = if verdict.can_fail() { style.red(&end) } else { style.green(&end) };
            text.push_str(&format!("{first}{case}{end}{codes}\n"));
        } else {
            text.push_str(&wrapped(first, &line, style));
        }
        if let Some(why) = &meaning.because {
            text.push_str(&wrapped("  because   ", why, style));
        }
    }
    text
}

/// Returns what to look at where no cure is known for a fault that objects show.
fn of_objects(code: Code, now: &CaseState) -> Option<&'static str> {
    let is_route = matches!(now, CaseState::Object { object, .. } if object.kind.is_route());
    Some(match code {
        Code::NoTargets => {
            "kubectl describe of the Service or Ingress lists what the program that makes or announces \
             its address says; the logs of that program have the rest. The endpoints are not the reason"
        }
        Code::Pending => {
            "kubectl describe of the Service or Ingress: its events tell why the program that gives \
             addresses gives none; without events, no program does"
        }
        Code::AddressTaken => {
            "ask a machine on the segment which hardware address answers for this address (arping, ip \
             neigh), and compare it with that of the node"
        }
        Code::BackendMissing => {
            "kubectl get services -o wide in the namespace of the Ingress: a Service of another \
             namespace cannot be a backend"
        }
        Code::IngressIgnored if is_route => {
            "kubectl describe of the route and of its Gateway: status.parents and status.listeners say \
             which listener does not take it, and why"
        }
        Code::IngressIgnored => {
            "kubectl get ingressclass, and the arguments of the controller: which class and which \
             namespaces it serves"
        }
        Code::GatewayOpensNothing => {
            "kubectl get pods -A --show-labels: the labels of the gateway's pods, and the ports of their \
             Service"
        }
        Code::NameElsewhere => {
            "nslookup of the name in the pod, with and without a dot behind it: if the answers differ, the \
             dot in the caller, or ndots: \"1\" in the dnsConfig of its pod, leads to the object"
        }
        Code::HostPortOff => {
            "on a node of these pods, iptables -t nat -nL or nft list ruleset: whether a rule has the \
             port; and the list of plugins in /etc/cni/net.d"
        }
        _ => return None,
    })
}

/// Returns what to measure where no cure is known.
fn next_step(now: &CaseState) -> &'static str {
    let mechanisms = match now {
        CaseState::Flow { mechanisms, .. } => mechanisms,
        CaseState::Probes { .. } => {
            return "on a target, tcpdump -ni any of the check's port: whether a check arrives, and \
                    what answers it";
        }
        CaseState::Object { .. } => {
            return "the sentence above names what does not fit: kubectl get -o yaml of the objects in \
                    it shows whether it is still so";
        }
    };
    match mechanisms.first() {
        Some(Mechanism::NoEndpoint) => {
            "compare kubectl get endpointslices, and get pods --show-labels -o wide, of the Service's \
             namespace: labels, readiness, names of ports"
        }
        Some(Mechanism::NoTarget) => {
            "look at the load balancer's own list of targets, or at the program that announces its \
             address: whether it knows the Service, and which nodes it may use"
        }
        Some(Mechanism::AddressTaken) => {
            "on the calling node, ip route get ADDRESS: whether the address is taken for the node's own"
        }
        Some(Mechanism::HostPortOff) => {
            "on the node, iptables -t nat -nL CNI-HOSTPORT-DNAT, or the settings of the network plugin: \
             whether something forwards the port"
        }
        Some(Mechanism::WrongPort) => {
            "in the called pod or on the called node, ss -ltnp lists the ports that are listened on"
        }
        Some(Mechanism::Firewall) => {
            "on the node at which it ends, iptables -vnL or nft list ruleset, before and after a call: \
             the rule whose counter grows stops it"
        }
        Some(Mechanism::SecurityGroup | Mechanism::NoRoute | Mechanism::CrossNode) => {
            "tcpdump -ni any of the called port on both nodes during a call: what lies behind the last \
             place that sees the packet stops it"
        }
        Some(Mechanism::NodeDown) => {
            "kubectl describe node NODE: since when its kubelet has been silent; then the machine's console"
        }
        Some(Mechanism::NetworkPolicy) => {
            "kubectl describe networkpolicy, in the namespaces of both pods; the plugin's own tool shows \
             what it drops (calicoctl, cilium monitor --type drop)"
        }
        Some(Mechanism::NameUnresolved) => {
            "in the client, cat /etc/resolv.conf, and ask each name server there for the name by \
             itself (dig @ADDRESS NAME)"
        }
        Some(Mechanism::ProxyHeader | Mechanism::TlsBypassed) => {
            "in the called pod's network, tcpdump -A of the port: the first bytes show whether a PROXY \
             header or TLS arrives"
        }
        Some(
            Mechanism::AsymmetricReturn
            | Mechanism::LocalSourceDrop
            | Mechanism::ReversePathFilter
            | Mechanism::HairpinOff,
        ) => {
            "on the node, conntrack -E, and nstat -az of the drops, during a call: which address each \
             answer has, and which counter grows"
        }
        _ => "uturn probe makes the call for real and sets the prediction beside it",
    }
}

/// Returns why a cure is not offered, below a heading that states whether it was tried.
pub(crate) fn reason(cure: &Cure) -> &str {
    let why = cure.refused.as_deref().unwrap_or_default();
    why.strip_prefix("not tried: ").unwrap_or(why)
}

fn offer(number: usize, cure: &Cure, style: Style) -> String {
    let mut text = String::new();
    text.paragraph(&format!(
        "{}   {}",
        style.bold(&format!("{number}. {}", cure.title)),
        style.dim(cure.name)
    ));
    if let Some(after) = &cure.after {
        let then = case_state(after);
        let then = if after.is_fine() { style.green(&then) } else { style.yellow(&then) };
        text.line(&format!("  then      {then}"));
    }
    for condition in &cure.conditions {
        let word = match condition.answer {
            Answer::Holds => "holds",
            Answer::Fails => "fails",
            Answer::Unknown => "make sure",
        };
        text.push_str(&wrapped(
            &format!("  {word:<10}"),
            &format!("{}: {}", condition.what, condition.because),
            style,
        ));
    }
    for effect in &cure.effects {
        text.push_str(&wrapped("  costs     ", effect, style));
    }
    for command in &cure.commands {
        text.line(&format!("  do        {command}"));
    }
    for diff in &cure.diffs {
        for line in diff.lines() {
            let painted = match line.as_bytes().first() {
                _ if line.starts_with("---") || line.starts_with("+++") => style.bold(line),
                Some(b'+') => style.green(line),
                Some(b'-') => style.red(line),
                Some(b'@') => style.dim(line),
                _ => line.to_owned(),
            };
            text.line(&format!("    {painted}"));
        }
    }
    text
}

/// Wraps words into lines that fit, the first after a heading and the others below it.
fn wrapped(heading: &str, words: &str, style: Style) -> String {
    let (indent, mut text, mut line) = (heading.chars().count(), String::new(), heading.to_owned());
    let mut is_empty = true;
    for word in words.split_whitespace() {
        let fits =
            line.chars().count() + usize::from(!is_empty) + word.chars().count() <= style.width;
        if !fits && !is_empty {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    text.push_str(&line);
    text.push('\n');
    text
}

fn subject(now: &CaseState) -> String {
    match now {
        CaseState::Flow { flow, .. } => format!("{} → {} ({})", flow.from, flow.to, flow.protocol),
        CaseState::Probes { listener, protocol, .. } => {
            format!("health checks of {listener} ({protocol})")
        }
        CaseState::Object { code, object, .. } => format!("{} ({})", object.short(), code.title()),
    }
}

fn state_of(outcomes: &[(Outcome, Share)], mechanisms: &[Mechanism], is_misled: bool) -> String {
    let parts = outcomes.iter().map(|(outcome, part)| match words::share(*part).as_str() {
        "always" => outcome.to_string(),
        part => format!("{part} {outcome}"),
    });
    let elsewhere = if is_misled { ", where the name leads" } else { "" };
    let summary = format!("{}{elsewhere}", parts.collect::<Vec<_>>().join(", "));
    match mechanisms {
        [] => summary,
        some => {
            let names: Vec<&str> = some.iter().map(|mechanism| mechanism.as_str()).collect();
            format!("{summary} ({})", names.join(", "))
        }
    }
}

/// Describes a case's state: `1 in 3 answered after 4 s, 2 in 3 answered at once`.
pub fn case_state(state: &CaseState) -> String {
    match state {
        CaseState::Flow { outcomes, mechanisms, conditions, is_misled, .. } => {
            let case = match conditions.as_slice() {
                [] => String::new(),
                some => format!("if {}: ", some.join(" and ")),
            };
            format!("{case}{}", state_of(outcomes, mechanisms, *is_misled))
        }
        CaseState::Probes { alive, of, .. } => format!("{alive} of {of} targets answer"),
        CaseState::Object { faults, conditions, .. } => {
            let said: Vec<&str> = faults.iter().map(|fault| &**fault).collect();
            match (said.as_slice(), conditions.as_slice()) {
                ([], _) => "the fault is gone".to_owned(),
                (said, []) => said.join("; "),
                (said, some) => format!("{}, if {}", said.join("; "), some.join(" and ")),
            }
        }
    }
}

/// Formats objects as manifests to apply, one document each. Also returns whether an API server
/// returned some of them.
pub fn manifests<'o>(objects: impl Iterator<Item = &'o (ObjectRef, Tree)>) -> (String, bool) {
    let mut is_given = false;
    let document = |(_, tree): &(ObjectRef, Tree)| match without_server_fields(tree) {
        Some(tree) => {
            is_given = true;
            tree.document()
        }
        None => tree.document(),
    };
    let all: Vec<String> = objects.map(document).collect();
    (all.join("---\n"), is_given)
}

/// Returns an object of an API server without the fields that only servers write, so that it
/// can be applied. Returns `None` if the object is not from a server.
fn without_server_fields(object: &Tree) -> Option<Tree> {
    const OF_SERVERS: [&str; 8] = [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    let Tree::Map(entries) = object else { return None };
    let mut is_given = false;
    let mut kept = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        match (key.as_str(), value) {
            ("status", _) => {}
            ("metadata", Tree::Map(meta)) => {
                let is_of_server = |key: &str| OF_SERVERS.contains(&key);
                is_given = meta.iter().any(|(key, _)| is_of_server(key));
                let own = meta.iter().filter(|(key, _)| !is_of_server(key));
                kept.push((key.clone(), Tree::Map(own.cloned().collect())));
            }
            _ => kept.push((key.clone(), value.clone())),
        }
    }
    is_given.then_some(Tree::Map(kept))
}
