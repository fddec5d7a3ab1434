//! Chooses the folder of the Unix socket and writes the URL that leads to it.
use std::{
    fmt::Write,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{Error, account::Account, temporary};

/// The port is part of the socket's name only: nothing listens on the network.
pub(crate) const PORT: u16 = 5432;

/// The system's limit is 104 bytes on macOS and 108 on Linux, the closing zero included.
const SOCKET_PATH_BYTES_MAX: usize = 100;

/// The folder of the socket.
#[derive(Debug)]
pub(crate) struct SocketFolder {
    pub(crate) path: PathBuf,
    /// Set when the data folder would not do.
    pub(crate) temporary: Option<TempDir>,
}

impl SocketFolder {
    /// The data folder, or a short temporary one when a socket in the data folder could not be named.
    pub(crate) fn choose(data_folder: &Path, account: &Account) -> Result<Self, Error> {
        if is_usable(data_folder) {
            return Ok(Self { path: data_folder.to_owned(), temporary: None });
        }
        let temporary = temporary::folder(account, is_usable)?;
        Ok(Self { path: temporary.path().to_owned(), temporary: Some(temporary) })
    }
}

/// The socket's path in a folder.
pub(crate) fn socket_in(folder: &Path) -> PathBuf {
    folder.join(format!(".s.PGSQL.{PORT}"))
}

/// Clients take text, and part a list of hosts at commas.
fn is_usable(folder: &Path) -> bool {
    let short = socket_in(folder).as_os_str().len() <= SOCKET_PATH_BYTES_MAX;
    short && folder.to_str().is_some_and(|text| !text.contains(','))
}

/// A folder as an element of the list that `unix_socket_directories` is.
pub(crate) fn quoted(folder: &Path) -> String {
    format!("\"{}\"", folder.display().to_string().replace('"', "\"\""))
}

/// The URL of the cluster whose socket is in a folder.
pub(crate) fn url(folder: &Path, user: &str) -> String {
    let mut url = format!("postgres://{user}@localhost/postgres?host=");
    for &byte in folder.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(byte)),
            _ => write!(url, "%{byte:02X}").expect("a String takes everything"),
        }
    }
    // Said, since clients would take them from the user's environment otherwise.
    write!(url, "&port={PORT}&sslmode=disable").expect("a String takes everything");
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_escapes_everything_that_could_end_the_host() {
        let expected =
            "postgres://me@localhost/postgres?host=%2Ftmp%2Fa%20b%26c%25%C3%A4-1.x&port=5432&sslmode=disable";
        assert_eq!(url(Path::new("/tmp/a b&c%ä-1.x"), "me"), expected);
    }

    #[test]
    fn a_folder_is_usable_up_to_the_limit() {
        let tail = socket_in(Path::new("/")).as_os_str().len();
        let of_length = |length: usize| PathBuf::from(format!("/{}", "x".repeat(length - 1)));
        assert!(is_usable(&of_length(SOCKET_PATH_BYTES_MAX - tail)));
        assert!(!is_usable(&of_length(SOCKET_PATH_BYTES_MAX - tail + 1)));
        assert!(!is_usable(Path::new("/a,b")));
    }

    #[test]
    fn a_list_element_is_quoted() {
        assert_eq!(quoted(Path::new("/a \"b\"")), "\"/a \"\"b\"\"\"");
    }
}
