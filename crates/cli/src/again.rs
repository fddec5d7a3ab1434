//! The command that goes on where an interrupted one stopped.

use std::borrow::Cow;

use crate::{
    args::{OutputFormat, Submit},
    connection::resource_name,
    exit::NotFinishedError,
    interrupt::{Interrupted, Stand},
    output,
};

/// Options of the command line that say where to begin: the next command has its own.
const BEGINNINGS: [&str; 2] = ["--resume", "--from"];

/// The command as it was typed, for a shell, with the batch's id if it lacks one and with the token to go on from.
pub(crate) fn typed(words: impl Iterator<Item = String>, id: Option<&str>, token: Option<&str>) -> String {
    let mut command = vec!["sudoku-batch".to_owned()];
    let mut has_id = false;
    let mut words = words.skip(1);
    while let Some(word) = words.next() {
        if token.is_some() {
            if BEGINNINGS.contains(&&*word) {
                words.next();
                continue;
            }
            if BEGINNINGS
                .iter()
                .any(|option| word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')))
            {
                continue;
            }
        }
        has_id |= word == "--id" || word.starts_with("--id=");
        command.push(quoted(&word));
    }
    if let Some(id) = id.filter(|_| !has_id) {
        command.extend(["--id".to_owned(), id.to_owned()]);
    }
    if let Some(token) = token {
        command.extend(["--resume".to_owned(), token.to_owned()]);
    }
    command.join(" ")
}

/// The command that prints the rest of a submit's results without its input.
pub(crate) fn results(args: &Submit, id: &str, token: Option<&str>) -> String {
    let mut command: Vec<String> =
        ["sudoku-batch", "results", id, "--server", &quoted(&args.server.server)].map(str::to_owned).to_vec();
    if let Some(tenant) = &args.server.tenant {
        command.extend(["--tenant".to_owned(), quoted(tenant)]);
    }
    if args.solving.output == OutputFormat::Jsonl {
        command.extend(["--output", "jsonl"].map(str::to_owned));
    }
    for (flag, is_set) in [("--summary", args.solving.summary), ("--as-finished", args.as_finished)] {
        if is_set {
            command.push(flag.to_owned());
        }
    }
    if let Some(token) = token {
        command.extend(["--resume".to_owned(), token.to_owned()]);
    }
    command.join(" ")
}

fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}

/// Says of a batch whose results were not all received what has become of it and, if trying again can help, the command that goes on.
///
/// `told` is what there is to say of the batch, `command` the command.
pub(crate) fn not_finished(
    error: anyhow::Error,
    name: &str,
    stand: &Stand,
    told: &str,
    command: &str,
) -> anyhow::Error {
    if error.chain().any(output::is_closed_pipe) {
        return error;
    }
    let name = resource_name(name);
    let id = name.trim_start_matches("batches/");
    let goes_on = error.is::<Interrupted>()
        || error.downcast_ref::<client::Error>().is_some_and(client::Error::is_transient);
    if !goes_on {
        return error.context(format!("batch {id}"));
    }
    let Stand { printed, total, is_rest, .. } = stand;
    let after =
        if *is_rest { format!("{printed} more results") } else { format!("{printed} of {total} results") };
    NotFinishedError(format!("{error:#}, after {after}; the batch {id} {told}:\n  {command}")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(words: &[&str], token: Option<&str>) -> String {
        typed(
            words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>().into_iter(),
            Some("abcd"),
            token,
        )
    }

    #[test]
    fn the_command_that_goes_on_is_the_one_that_was_typed_and_names_the_batch() {
        assert_eq!(
            again(
                &["/x/sudoku-batch", "submit", "my file", "--tenant", "alice", "--placement-limit=off"],
                None
            ),
            "sudoku-batch submit 'my file' --tenant alice '--placement-limit=off' --id abcd"
        );
        assert_eq!(again(&["sb", "submit", "--id", "abcd", "f"], None), "sudoku-batch submit --id abcd f");
        assert_eq!(again(&["sb", "submit", "--id=abcd", "f"], None), "sudoku-batch submit '--id=abcd' f");
    }

    #[test]
    fn a_new_token_takes_the_place_of_where_the_command_began() {
        for words in [&["--resume", "old"][..], &["--resume=old"], &["--from", "7"], &["--from=7"], &[]] {
            let typed = [&["sb", "submit", "--id", "abcd"], words, &["f"]].concat();
            assert_eq!(again(&typed, Some("new")), "sudoku-batch submit --id abcd f --resume new");
        }
        assert_eq!(
            again(&["sb", "submit", "--id", "abcd", "--resume", "old"], None),
            "sudoku-batch submit --id abcd --resume old"
        );
    }
}
