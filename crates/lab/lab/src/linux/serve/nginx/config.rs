//! The configuration files of nginx: those that ConfigMaps mount, and the image's defaults for
//! the others.

use uturn_model::{Cluster, Pod};

/// The image's default main file, which includes a folder.
const MAIN: &str = "events {}\n\
    http {\n\
    include /etc/nginx/mime.types;\n\
    default_type application/octet-stream;\n\
    include /etc/nginx/conf.d/*.conf;\n\
    }\n";

/// The image's default server, present unless a mount covers its folder.
const DEFAULT: &str = "server {\n\
    listen 80;\n\
    server_name localhost;\n\
    location / { root /usr/share/nginx/html; index index.html index.htm; }\n\
    }\n";

const MAIN_FILE: &str = "/etc/nginx/nginx.conf";
const DEFAULT_FILE: &str = "/etc/nginx/conf.d/default.conf";

/// Directives that the lab overrides: the user may only exist in the image, and a master process
/// would leave its workers behind.
const PROCESS: [&str; 3] = ["user", "daemon", "master_process"];

/// A file that a ConfigMap mounts.
#[derive(Clone, Copy, Debug)]
pub(super) struct File<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    /// Whether the file is mounted alone (`subPath`), so that the image's other files stay visible.
    pub(super) alone: bool,
}

/// Returns all files with their paths.
pub(super) fn whole(files: &[File<'_>]) -> Vec<(String, String)> {
    let has = |path: &str| files.iter().any(|file| file.path == path);
    let mut all = Vec::new();
    if !has(MAIN_FILE) {
        all.push((MAIN_FILE.to_owned(), MAIN.to_owned()));
    }
    let covers = |file: &File<'_>| !file.alone && file.path.starts_with("/etc/nginx/conf.d/");
    if !has(DEFAULT_FILE) && !files.iter().any(covers) {
        all.push((DEFAULT_FILE.to_owned(), DEFAULT.to_owned()));
    }
    all.extend(files.iter().map(|file| {
        let text = match file.path {
            MAIN_FILE => without_process(file.text),
            _ => file.text.to_owned(),
        };
        (file.path.to_owned(), text)
    }));
    all
}

/// Returns a hosts file with the names of Services.
pub(super) fn hosts(cluster: &Cluster, pod: &Pod) -> String {
    let domain = cluster.dns.domain.as_deref().unwrap_or("cluster.local");
    let mut text = String::from("127.0.0.1 localhost\n");
    for service in cluster.services.values() {
        let (name, namespace) = (&service.name.name, &service.name.namespace);
        let short = if *namespace == pod.name.namespace { name.as_str() } else { "" };
        for ip in &service.cluster_ips {
            text += &format!(
                "{ip} {name}.{namespace}.svc.{domain} {name}.{namespace}.svc {name}.{namespace} \
                 {short}\n"
            );
        }
    }
    text
}

/// Removes the top-level directives in [`PROCESS`].
fn without_process(text: &str) -> String {
    let mut out = String::new();
    let mut directive = String::new();
    let (mut depth, mut quote, mut escaped, mut remark) = (0_usize, None, false, false);
    for c in text.chars() {
        if remark {
            remark = c != '\n';
            continue;
        }
        if quote.is_none() && c == '#' && directive.chars().last().is_none_or(char::is_whitespace) {
            remark = true;
            continue;
        }
        directive.push(c);
        if escaped {
            escaped = false;
            continue;
        }
        match (quote, c) {
            (_, '\\') => escaped = true,
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '{' | '}' | ';') => {
                let first = directive.split_whitespace().next().unwrap_or_default();
                let is_process = c == ';' && PROCESS.contains(&first.trim_end_matches(';'));
                if depth > 0 || !is_process {
                    out += &directive;
                }
                directive.clear();
                depth = match c {
                    '{' => depth + 1,
                    '}' => depth.saturating_sub(1),
                    _ => depth,
                };
            }
            _ => {}
        }
    }
    out + &directive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_the_process_runs_is_left_out_and_nothing_else() {
        let text = "user  nginx; # \"who\nworker_processes auto;\ndaemon off;\n\
                    http {\n  server { return 200 'user x; }'; user on; }\n}\n";
        let left: String = without_process(text).split_whitespace().collect();
        let kept = "worker_processesauto;http{server{return200'userx;}';useron;}}";
        assert_eq!(left, kept);
        for length in 0..text.len() {
            without_process(&text[..length]);
        }
    }

    #[test]
    fn the_image_s_own_server_stands_where_nothing_covers_it() {
        let names = |path, alone| -> Vec<String> {
            let files = [File { path, text: "", alone }];
            whole(&files).into_iter().map(|(path, _)| path).collect()
        };
        let other = "/etc/nginx/stream.conf";
        assert_eq!(names(other, false), [MAIN_FILE, DEFAULT_FILE, other]);
        let shop = "/etc/nginx/conf.d/shop.conf";
        assert_eq!(names(shop, false), [MAIN_FILE, shop]);
        assert_eq!(names(shop, true), [MAIN_FILE, DEFAULT_FILE, shop]);
        assert_eq!(names(MAIN_FILE, true), [DEFAULT_FILE, MAIN_FILE]);
    }
}
