//! What the processes of a bench use: CPU time, memory, disk, as the system tells it in `/proc`. Where there is none, the figures are missing.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use nix::{
    time::{ClockId, clock_gettime},
    unistd::{SysconfVar, sysconf},
};
use serde::Serialize;

use crate::stack::Processes;

/// One figure for each part of the whole; the workers' are summed up.
#[derive(Serialize, Clone, Copy, Debug)]
pub(crate) struct Parts<T> {
    /// This process.
    pub(crate) client: T,
    pub(crate) server: T,
    pub(crate) postgres: T,
    pub(crate) worker: T,
}

impl<T: Copy> Parts<T> {
    /// The same parts of both.
    pub(crate) fn with<U>(&self, other: &Self, merge: impl Fn(T, T) -> U) -> Parts<U> {
        Parts {
            client: merge(self.client, other.client),
            server: merge(self.server, other.server),
            postgres: merge(self.postgres, other.postgres),
            worker: merge(self.worker, other.worker),
        }
    }

    /// Each part changed.
    pub(crate) fn map<U>(&self, change: impl Fn(T) -> U) -> Parts<U> {
        self.with(self, |part, _| change(part))
    }

    /// With their names.
    pub(crate) fn named(&self) -> [(&'static str, T); 4] {
        [
            ("client", self.client),
            ("server", self.server),
            ("postgres", self.postgres),
            ("worker", self.worker),
        ]
    }
}

/// CPU time used so far.
pub(crate) fn cpu_times(processes: &Processes) -> Parts<Option<Duration>> {
    let ticks_a_second =
        sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|ticks| u32::try_from(ticks).ok());
    let time =
        |ticks: u64| Some(Duration::from_millis(ticks * 1_000) / ticks_a_second.filter(|ticks| *ticks > 0)?);
    let own = |pid: u32| time(stat(pid)?.own);
    Parts {
        client: clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok().map(Duration::from),
        server: own(processes.server),
        postgres: tree_ticks(processes.postgres).and_then(time),
        worker: processes.workers.iter().map(|pid| own(*pid)).sum(),
    }
}

/// Bytes of memory. Of this process, the server and the workers the most that each has held so far; this one holds all puzzles, 81 bytes each. Of PostgreSQL, whose processes share
/// much of what they hold, the sum of their proportional shares (PSS) now: what they have touched of the shared buffers they keep.
pub(crate) fn memory_bytes(processes: &Processes) -> Parts<Option<u64>> {
    let most = |pid: u32| kilobytes(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmHWM:");
    let share = |pid: u32| kilobytes(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss:");
    // A session that ends meanwhile has nothing any more; without its parent's figure there is none.
    let sessions = children(processes.postgres).filter_map(|(pid, _)| share(pid)).sum::<u64>();
    let all = |kilobytes: Option<u64>| kilobytes.map(|kilobytes| kilobytes << 10);
    Parts {
        client: all(most(std::process::id())),
        server: all(most(processes.server)),
        postgres: all(share(processes.postgres).map(|own| own + sessions)),
        worker: all(processes.workers.iter().map(|pid| most(*pid)).sum()),
    }
}

/// Bytes that the files of a folder take on the disk.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    // Files that go while they are counted take nothing any more.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    bytes.sum()
}

/// One process, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stat {
    parent: u32,
    own: u64,
    /// Of its children that have ended.
    ended: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `/proc/PID/stat`, see proc(5). The program's name is in brackets and may hold anything.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The first of them is field 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(field(4)?).ok()?,
        own: field(14)? + field(15)?,
        ended: field(16)? + field(17)?,
    })
}

fn children(parent: u32) -> impl Iterator<Item = (u32, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, stat(pid)?))).filter(move |(_, stat)| stat.parent == parent)
}

/// A process, its children, and those of its children that have ended.
fn tree_ticks(pid: u32) -> Option<u64> {
    loop {
        let before = stat(pid)?;
        let living: u64 = children(pid).map(|(_, stat)| stat.own).sum();
        let after = stat(pid)?;
        // A child that ended in between would be counted twice or not at all.
        if before.ended == after.ended {
            return Some(after.own + after.ended + living);
        }
    }
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_program_is_called() {
        let line = "42 (a) S 7 (b) S 1 42 42 0 -1 4194560 100 200 0 0 31 11 500 60 20 0 1 0 9 8 7";
        assert_eq!(parse_stat(line), Some(Stat { parent: 1, own: 42, ended: 560 }));
        assert_eq!(parse_stat("42 (cut) S 1 42"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn sizes_are_told_in_kilobytes() {
        let text = "Name:\tx\nVmPeak:\t   99 kB\nVmHWM:\t  1234 kB\nThreads:\t1\n";
        assert_eq!(kilobytes(text, "VmHWM:"), Some(1_234));
        assert_eq!(kilobytes(text, "Threads:"), None);
        assert_eq!(kilobytes(text, "Pss:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found_with_what_it_uses() {
        let processes = Processes {
            server: std::process::id(),
            workers: vec![std::process::id(); 2],
            postgres: std::process::id(),
        };
        let memory = memory_bytes(&processes);
        // About twice as much: other tests of this process may take more between two looks.
        assert!(memory.worker > memory.server.map(|bytes| bytes / 2 * 3), "{memory:?}");
        assert!(memory.client.is_some_and(|bytes| bytes > 1 << 20) && memory.postgres.is_some());
        let times = cpu_times(&processes);
        assert!(times.named().iter().all(|(_, time)| time.is_some()), "{times:?}");
    }

    #[test]
    fn a_folder_is_as_large_as_all_its_files() {
        let folder = std::env::temp_dir().join(format!("sudoku-batch-usage-{}", std::process::id()));
        fs::create_dir_all(folder.join("inner")).unwrap();
        fs::write(folder.join("inner/file"), vec![1; 100_000]).unwrap();
        let bytes = folder_bytes(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert!(bytes >= 100_000, "{bytes}");
        assert_eq!(folder_bytes(&folder), 0);
    }
}
