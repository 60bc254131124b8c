//! Every command that the help, the pages and the docs show parses.

use clap::CommandFactory;
use uturn_cli::Part;

use super::Cli;

/// The command line of a part's program.
fn of_part(part: Part) -> clap::Command {
    match part {
        Part::Lab => uturn_lab_cli::command(),
        Part::Lb => uturn_lb_cli::command(),
        Part::Cloud => uturn_cloud_cli::command(),
        Part::Operator => uturn_operator_cli::command(),
    }
}

/// Reads the words after `uturn` as the program does that runs them.
fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<(), clap::Error> {
    let words: Vec<&str> = words.into_iter().collect();
    let command = Part::named(&words).map_or_else(Cli::command, |(part, _)| of_part(part));
    command.try_get_matches_from([&["uturn"], words.as_slice()].concat()).map(drop)
}

#[test]
fn the_command_lines_are_sound() {
    Cli::command().debug_assert();
    Part::ALL.into_iter().for_each(|part| of_part(part).debug_assert());
}

/// `uturn --help` says of each part what its own program says.
#[test]
fn parts_are_called_the_same() {
    for part in Part::ALL {
        let (own, all) = (Cli::command(), of_part(part));
        let [only] = all.get_subcommands().collect::<Vec<_>>()[..] else { panic!("{part:?}") };
        let known = own.find_subcommand(part.command()).unwrap();
        assert_eq!(known.get_name(), only.get_name());
        assert_eq!(known.get_about().unwrap().to_string(), only.get_about().unwrap().to_string());
    }
}

/// So are the examples in the help of each command.
#[test]
fn every_example_parses() {
    let commands = Part::ALL.map(of_part).into_iter().chain([Cli::command()]);
    let commands: Vec<_> = commands
        .flat_map(|command| command.get_subcommands().cloned().collect::<Vec<_>>())
        .collect();
    let helps = commands.iter().filter_map(clap::Command::get_after_help);
    let mut parsed = 0;
    for help in helps {
        for line in help.to_string().lines().filter_map(|line| line.strip_prefix("  uturn ")) {
            let words = line.split('>').next().unwrap().split_whitespace();
            let known = parse(words);
            assert!(known.is_ok(), "uturn {line}: {}", known.unwrap_err());
            parsed += 1;
        }
    }
    assert!(parsed > 10, "{parsed}");
}

/// The commands that a page tells readers to type exist.
#[test]
fn every_command_of_a_page_parses() {
    let mut parsed = 0;
    for (page, text) in uturn_diagnose::pages::texts() {
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("uturn "));
        let lines = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
        let inline =
            text.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("uturn "));
        for command in
            lines.filter(|line| text.contains(&format!("    uturn {line}"))).chain(inline)
        {
            // Replace the placeholders that the reader fills in.
            let command = command.split(['|', '#']).next().unwrap();
            let words =
                command.replace("--from …", "--from outside").replace("--to …", "--to svc/a/b");
            let names = ["NAMESPACE/INGRESS", "NAMESPACE/NAME"];
            let words = names.iter().fold(words, |words, name| words.replace(name, "a/b"));
            let words: Vec<&str> = words.split_whitespace().collect();
            if words == ["cure"] {
                continue;
            }
            let known = parse(words);
            assert!(known.is_ok(), "{page}: uturn {command}: {}", known.unwrap_err());
            parsed += 1;
        }
    }
    assert!(parsed > 20, "{parsed}");
}

/// A command with a number where the shell would substitute the output of another command.
fn with_substitutions(command: &str) -> String {
    match command.split_once("\"$(").map(|(before, rest)| (before, rest.split_once(")\""))) {
        Some((before, Some((_, after)))) => with_substitutions(&format!("{before}1{after}")),
        _ => command.to_owned(),
    }
}

/// The commands in every code block of README.md and docs/ exist.
#[test]
fn every_command_of_the_docs_parses() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut parsed = 0;
    for path in docs.chain([root.join("README.md")]) {
        if path.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap().replace("\\\n", " ");
        for block in text.split("```").skip(1).step_by(2) {
            // Where output is shown, commands stand behind a prompt.
            let shows_output = block.starts_with("console") || block.starts_with('\n');
            for line in block.lines().map(str::trim_start) {
                let line = match line.strip_prefix("$ ") {
                    Some(command) => command,
                    None if shows_output => continue,
                    None => line.trim_start_matches("- run: "),
                };
                let line = line.trim_start_matches("sudo ");
                let Some(command) = line.strip_prefix("uturn ") else { continue };
                let command = with_substitutions(command);
                let command = command.split(['|', '#', '>']).next().unwrap();
                let words = command.split_whitespace().map(|word| word.trim_matches('\''));
                let known = parse(words);
                let shown = path.display();
                assert!(known.is_ok(), "{shown}: uturn {command}: {}", known.unwrap_err());
                parsed += 1;
            }
        }
    }
    assert!(parsed > 30, "{parsed}");
}
