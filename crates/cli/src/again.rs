//! The command that goes on where an interrupted one stopped.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    os::unix::ffi::OsStrExt as _,
};

use crate::{
    args::{DEFAULT_SERVER, OutputFormat, Server, Submit},
    exit::NotFinishedError,
    interrupt::{Stand, is_interrupted},
    lines::grouped,
    output,
};

/// Where a command goes on. (A `Place` is where a record stood in its input.)
#[derive(Clone, Default, Debug)]
pub(crate) struct Point {
    /// The batch's id, for a command that may not have named it.
    pub(crate) id: Option<String>,
    /// After what this token stands for.
    pub(crate) token: Option<String>,
    /// Without these indexes, `LO..HI`.
    pub(crate) skip: Vec<String>,
}

impl Point {
    /// Where the printing stands.
    pub(crate) fn of(stand: &Stand) -> Self {
        let skip = stand.printed_beyond().into_iter().map(|range| format!("{}..{}", range.start, range.end));
        Self { id: None, token: stand.token.clone(), skip: skip.collect() }
    }

    fn options(&self, has_id: bool) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(id) = self.id.as_ref().filter(|_| !has_id) {
            options.push(format!("--id={id}"));
        }
        if let Some(token) = &self.token {
            options.extend(["--resume".to_owned(), token.clone()]);
        }
        for skip in &self.skip {
            options.extend(["--skip".to_owned(), skip.clone()]);
        }
        options
    }
}

/// The command as it was typed, for any shell on this machine: with the place to go on from, and with what variables have told this one.
pub(crate) fn typed(
    words: impl Iterator<Item = OsString>,
    subcommand: &str,
    place: &Point,
    server: &Server,
) -> String {
    let words: Vec<OsString> = words.collect();
    let after = words.iter().skip(1).position(|word| word == subcommand).map_or(1, |found| found + 2);
    let (head, tail) = words.split_at(after.min(words.len()));
    let options = tail.iter().position(|word| word == "--").unwrap_or(tail.len());
    let (options, files) = tail.split_at(options);
    let options = without_place(options, place.token.is_some());
    let has = |name: &str| options.iter().any(|word| is_option(word, name));

    let mut command: Vec<String> = head.iter().map(|word| quoted(word)).collect();
    command.extend(place.options(has("--id")));
    if !has("--server") && server.server != DEFAULT_SERVER {
        command.extend(["--server".to_owned(), quoted(OsStr::new(&server.server))]);
    }
    if let Some(tenant) = server.tenant.as_ref().filter(|_| !has("--tenant")) {
        command.extend(["--tenant".to_owned(), quoted(OsStr::new(tenant))]);
    }
    command.extend(options.iter().chain(files.iter().collect::<Vec<_>>().iter()).map(|word| quoted(word)));
    command.join(" ")
}

/// Leaves out where an earlier command began, if the next one has its own.
fn without_place(words: &[OsString], has_token: bool) -> Vec<&OsString> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let is_beginning = ["--resume", "--from"].iter().any(|name| is_option(word, name));
        if is_option(word, "--skip") || (is_beginning && has_token) {
            if !word.as_bytes().contains(&b'=') {
                words.next();
            }
        } else {
            kept.push(word);
        }
    }
    kept
}

fn is_option(word: &OsStr, name: &str) -> bool {
    word.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'=')
}

/// The command that prints the rest of a submit's results without its input.
pub(crate) fn results(program: &OsStr, args: &Submit, id: &str, place: &Point) -> String {
    // An id may begin with a dash.
    let name = if id.starts_with('-') { format!("batches/{id}") } else { id.to_owned() };
    let mut command = vec![quoted(program), "results".to_owned(), name];
    command.extend(Point { id: None, ..place.clone() }.options(true));
    // Always: another shell may have a variable for it.
    command.extend(["--server".to_owned(), quoted(OsStr::new(&args.server.server))]);
    if let Some(tenant) = &args.server.tenant {
        command.extend(["--tenant".to_owned(), quoted(OsStr::new(tenant))]);
    }
    if args.solving.output == OutputFormat::Jsonl {
        command.extend(["--output", "jsonl"].map(str::to_owned));
    }
    for (flag, is_set) in [("--summary", args.solving.summary), ("--as-finished", args.as_finished)] {
        if is_set {
            command.push(flag.to_owned());
        }
    }
    command.join(" ")
}

/// A word for a shell; what is no text is written in escapes, which most shells read.
fn quoted(word: &OsStr) -> String {
    if let Some(text) = word.to_str() {
        return shlex::try_quote(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned);
    }
    let mut text = "$'".to_owned();
    for byte in word.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-_./".contains(byte) {
            text.push(char::from(*byte));
        } else {
            // Writing to a text does not fail.
            write!(text, "\\x{byte:02x}").ok();
        }
    }
    text.push('\'');
    text
}

/// Says of a batch whose results were not all received what has become of it and, if trying again can help, the command that goes on.
///
/// `told` is what there is to say of the batch, `command` the command.
pub(crate) fn not_finished(
    error: anyhow::Error,
    id: &str,
    stand: &Stand,
    told: &str,
    command: &str,
) -> anyhow::Error {
    if error.chain().any(output::is_closed_pipe) {
        return error;
    }
    let is_output = error.chain().any(output::is_output);
    let goes_on = is_output
        || is_interrupted(&error)
        || error.downcast_ref::<client::Error>().is_some_and(client::Error::is_transient);
    if !goes_on {
        return error.context(format!("batch {id}"));
    }
    let printed = grouped(stand.printed);
    let after = if stand.is_rest {
        format!("{printed} more results")
    } else {
        format!("{printed} of {} results", grouped(stand.total))
    };
    let text = format!("{error:#}, after {after}; the batch {id} {told}:\n  {command}");
    // A disk that is full is an error like any other, though one that can be gone on from.
    if is_output { anyhow::Error::msg(text) } else { NotFinishedError(text).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str, tenant: Option<&str>) -> Server {
        Server { server: url.to_owned(), tenant: tenant.map(str::to_owned) }
    }

    fn again(words: &[&str], place: &Point) -> String {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        typed(words.into_iter(), "submit", place, &server(DEFAULT_SERVER, None))
    }

    fn at(id: &str, token: Option<&str>) -> Point {
        Point { id: Some(id.to_owned()), token: token.map(str::to_owned), skip: Vec::new() }
    }

    #[test]
    fn the_command_that_goes_on_is_the_one_that_was_typed_and_names_the_batch() {
        assert_eq!(
            again(
                &["/x/sudoku-batch", "submit", "my file", "--tenant", "alice", "--placement-limit=off"],
                &at("abcd", None)
            ),
            "/x/sudoku-batch submit --id=abcd 'my file' --tenant alice '--placement-limit=off'"
        );
        for words in
            [&["sb", "submit", "--id", "abcd", "f"][..], &["sb", "--log", "off", "submit", "--id=abcd", "f"]]
        {
            let told = again(words, &at("abcd", None));
            assert_eq!(told.matches("abcd").count(), 1, "{told}");
        }
    }

    #[test]
    fn a_new_place_takes_the_place_of_where_the_command_began() {
        for words in [&["--resume", "old"][..], &["--resume=old"], &["--from", "7"], &["--skip=1..2"], &[]] {
            let typed = [&["sb", "submit", "--id=abcd"], words, &["f"]].concat();
            assert_eq!(again(&typed, &at("abcd", Some("new"))), "sb submit --resume new '--id=abcd' f");
        }
        let begun = ["sb", "submit", "--id=abcd", "--resume", "old", "--skip", "1..2"];
        let place = Point { skip: vec!["1..5".to_owned()], ..at("abcd", None) };
        assert_eq!(again(&begun, &place), "sb submit --skip 1..5 '--id=abcd' --resume old");
    }

    #[test]
    fn files_behind_two_dashes_stay_files_and_what_variables_told_is_told() {
        let typed_words = ["sb", "submit", "--", "-dash", "--resume"].map(OsString::from);
        let server = server("http://h:1", Some("carol"));
        assert_eq!(
            typed(typed_words.into_iter(), "submit", &at("abcd", Some("T")), &server),
            "sb submit --id=abcd --resume T --server http://h:1 --tenant carol -- -dash --resume"
        );
    }

    #[test]
    fn a_word_that_is_no_text_is_told_in_escapes() {
        assert_eq!(quoted(OsStr::from_bytes(b"n\xffx y")), "$'n\\xffx\\x20y'");
    }
}
