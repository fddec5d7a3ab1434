//! Lives of processes: what starts, what ends, what is left.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{fs, path::Path, time::Instant};

use e2e::{
    Database, ENDLESS, ENDLESS_OPTIONS, ENDLESS_TAKEN, Process, SEED, SEED_SOLUTION, Service, eventually,
    processes_naming, run,
};
use nix::sys::signal::Signal;

fn up(data: &Path) -> (Process, String) {
    let data = data.to_str().unwrap();
    let args = ["up", "--listen", "127.0.0.1:0", "--data-dir", data, "--workers", "2"];
    let mut up = Process::start(&args, &[ENDLESS_TAKEN]);
    let url = up.line("ready ");
    (up, url)
}

/// A data folder, and a word in its path that no other process has.
fn data_dir() -> (tempfile::TempDir, std::path::PathBuf, String) {
    let folder = tempfile::Builder::new()
        .prefix("up-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .unwrap();
    let data = folder.path().join("data");
    let word = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
    (folder, data, word)
}

/// A folder where every account may make temporary folders, and a word in its path that no other process has.
fn open_folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::Builder::new().prefix("demo-").tempdir().unwrap();
    // Set apart from the making, which the umask narrows.
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let word = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
    (folder, word)
}

#[test]
fn up_serves_ends_everything_at_sigterm_and_keeps_its_batches() {
    let (_folder, data, word) = data_dir();
    let (mut first, url) = up(&data);
    let done = run(&["submit", "-", "--id", "kept", "--output", "jsonl", "--server", &url], &[], SEED);
    assert!(done.stdout.contains(SEED_SOLUTION), "{done:?}");
    assert!(processes_naming(&word).len() >= 5, "server, workers, PostgreSQL and its watcher");
    assert_eq!(first.stop(), 0);
    assert_eq!(processes_naming(&word), [], "nothing is left");

    let (mut second, url) = up(&data);
    let again = run(&["submit", "-", "--id", "kept", "--output", "jsonl", "--server", &url], &[], SEED);
    assert_eq!(again.stdout, done.stdout);
    let shown = run(&["get", "kept", "--server", &url], &[], "");
    assert!(shown.stdout.contains("1 of 1"), "{}", shown.stdout);
    second.signal(Signal::SIGINT);
    assert_eq!(second.wait(), 0);
    assert_eq!(processes_naming(&word), []);
}

#[test]
fn up_killed_leaves_no_child_and_starts_again() {
    let (_folder, data, word) = data_dir();
    // The children's own words when the database goes away under them; a panic is none of them.
    let loss = [" WARN ", " ERROR "];
    let (first, url) = up(&data);
    let mut first = first.allowing(&loss);
    let submit = ["submit", "-", "--id", "kept", "--output", "jsonl", "--server"];
    let done = run(&[&submit[..], &[&*url]].concat(), &[], SEED);
    // A search that goes on for much longer than this test waits must not keep its worker alive.
    let endless = [&["submit", "-", "--detach"], &ENDLESS_OPTIONS[..], &["--server", &url]].concat();
    assert_eq!(run(&endless, &[], ENDLESS).code, Some(0));
    first.signal(Signal::SIGKILL);
    assert_eq!(first.wait(), -9);
    // The next start comes at once: it may find the old cluster still stopping.
    let (second, url) = up(&data);
    let mut second = second.allowing(&loss);
    let again = run(&[&submit[..], &[&*url]].concat(), &[], SEED);
    assert_eq!(again.stdout, done.stdout);
    second.signal(Signal::SIGKILL);
    second.wait();
    eventually("no child is left", || processes_naming(&word).is_empty().then_some(()));
}

#[test]
fn up_refuses_a_folder_in_use() {
    let (_folder, data, _) = data_dir();
    let (mut first, _) = up(&data);
    let args = ["up", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    let done = run(&args, &[], "");
    assert_eq!(done.code, Some(1));
    assert!(
        done.stderr.contains(data.to_str().unwrap()) && done.stderr.lines().count() == 1,
        "{}",
        done.stderr
    );
    assert_eq!(first.stop(), 0);
}

#[test]
fn up_starts_dead_children_again_and_the_server_where_it_was() {
    let (_folder, data, word) = data_dir();
    let (up, url) = up(&data);
    let mut up = up.allowing(&["a child has ended"]);
    let children = |role: &str| -> Vec<u32> {
        let role = [b"\0", role.as_bytes(), b"\0"].concat();
        processes_naming(&word)
            .into_iter()
            .filter(|pid| {
                fs::read(format!("/proc/{pid}/cmdline"))
                    .is_ok_and(|line| line.windows(role.len()).any(|part| part == role))
            })
            .collect()
    };
    let before = [children("work"), children("serve")].concat();
    assert_eq!(before.len(), 3);
    for pid in &before {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(i32::try_from(*pid).unwrap()), Signal::SIGKILL)
            .unwrap();
    }
    eventually("three new ones", || {
        let now = [children("work"), children("serve")].concat();
        (now.len() == 3 && now.iter().all(|pid| !before.contains(pid))).then_some(())
    });
    let done = eventually("an answer at the same address", || {
        let done = run(&["submit", "-", "--output", "jsonl", "--server", &url], &[], SEED);
        (done.code == Some(0)).then_some(done)
    });
    assert!(done.stdout.contains(SEED_SOLUTION), "{done:?}");
    assert_eq!(up.stop(), 0);
}

#[test]
fn demo_shows_the_whole_and_leaves_nothing() {
    let (place, word) = open_folder();
    let done = run(&["demo"], &[("TMPDIR", place.path().to_str().unwrap())], "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    for text in [
        "the seed example     unique                   4,208",
        "69,175,316",
        "givens clash: r1c1 r1c2",
        "8 5 9 | 7 6 1 | 4 2 3",
    ] {
        assert!(done.stdout.contains(text), "{text:?} is not in {}", done.stdout);
    }
    assert!(done.stderr.contains("1,007/1,007 puzzles"), "{}", done.stderr);
    assert_eq!(processes_naming(&word), [], "no process is left");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "no file is left");
}

#[test]
fn a_worker_at_sigterm_gives_its_lease_back_within_five_seconds() {
    let mut service = Service::start(1, &[]);
    let submit = [&["submit", "-", "--detach"], &ENDLESS_OPTIONS[..]].concat();
    // The first is stored, the second would take minutes, the third was never begun.
    assert_eq!(service.run(&submit, &format!("{SEED}\n{ENDLESS}\n{SEED}\n")).code, Some(0));
    let held = "select count(*) from job where lo = 1 and owner is not null";
    eventually("the endless one is being solved", || (service.database.value(held) == "1").then_some(()));
    let begun = Instant::now();
    assert_eq!(service.workers[0].stop(), 0);
    let took = begun.elapsed();
    assert!(took.as_secs() < 5, "{took:?}");
    let left = service
        .database
        .query("select lo, hi, owner is null, lease_until is null, deaths from job order by lo");
    assert_eq!(
        left,
        ["1|2|t|t|0", "2|3|t|t|0"],
        "what was done is stored, the rest is free for anyone at once"
    );
}

#[test]
fn a_dead_workers_job_is_done_by_another_and_its_attempt_rises() {
    let database = Database::fresh();
    let (server, url) = Service::server(&database);
    let mut first = Service::worker(&database, &["--lease", "2"]);
    let submit = [&["submit", "-", "--detach"], &ENDLESS_OPTIONS[..], &["--server", &url]].concat();
    assert_eq!(run(&submit, &[], ENDLESS).code, Some(0));
    let attempt = "select coalesce(max(attempt) filter (where owner is not null), 0) from job";
    eventually("the first worker has it", || (database.value(attempt) == "1").then_some(()));
    first.signal(Signal::SIGKILL);
    first.wait();
    let mut second =
        Service::worker(&database, &["--lease", "2", "--grace", "0"]).allowing(&["a lease has run out"]);
    eventually("the second worker has it", || (database.value(attempt) == "2").then_some(()));
    second.logged("a lease has run out");
    assert_eq!(database.value("select deaths from job"), "1");
    assert_eq!(second.stop(), 0);
    drop(server);
}

#[test]
fn a_heartbeat_keeps_a_lease_through_a_search_much_longer_than_it() {
    let service = Service::start(1, &["--lease", "1", "--grace", "0"]);
    let submit = [&["submit", "-", "--detach"], &ENDLESS_OPTIONS[..]].concat();
    assert_eq!(service.run(&submit, ENDLESS).code, Some(0));
    let until = "select coalesce(extract(epoch from max(lease_until)), 0) from job";
    let first: f64 = eventually("a lease", || {
        let value = service.database.value(until).parse().unwrap();
        (value > 0.0).then_some(value)
    });
    // Prolonged for three times its length: without the heartbeat it would have been lost.
    eventually("a lease prolonged again and again", || {
        let now: f64 = service.database.value(until).parse().unwrap();
        (now > first + 3.0).then_some(())
    });
    assert_eq!(service.database.value("select attempt from job"), "1");
}

#[test]
fn a_role_ends_when_its_parents_pipe_closes() {
    let mut service = Service::start(1, &[]);
    service.server.close_stdin();
    assert_eq!(service.server.wait(), 0);
    service.workers[0].close_stdin();
    assert_eq!(service.workers[0].wait(), 0);
}

/// A submit of alice's that has printed its first result and waits for its second, which does not come; with its file.
fn half_done(service: &Service) -> (tempfile::TempDir, String, Process) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two puzzles.txt");
    fs::write(&file, format!("{SEED}\n{ENDLESS}\n")).unwrap();
    let file = file.to_str().unwrap().to_owned();
    let options = ["--tenant", "alice", "--output", "jsonl", "--server", &service.url];
    let mut submit = Process::start(&[&["submit", &*file], &options[..], &ENDLESS_OPTIONS[..]].concat(), &[]);
    submit.line("{\"index\":0");
    (folder, file, submit)
}

#[test]
fn an_interrupted_submit_says_what_became_of_the_batch_and_the_command_that_goes_on() {
    let service = Service::start(1, &["--grace", "0"]);
    let (_folder, file, mut submit) = half_done(&service);
    submit.signal(Signal::SIGINT);
    assert_eq!(submit.wait(), 4);
    let told = submit.log();
    let command = told.last().unwrap().trim();
    let begins = format!("{} submit --id=", e2e::binary().display());
    assert!(
        command.starts_with(&begins) && command.contains(&format!("'{file}' --tenant alice")),
        "{told:#?}"
    );
    assert!(told.concat().contains("interrupted, after 1 of 2 results"), "{told:#?}");
    // It is run as it was told, in a shell: it finds the same batch, and prints what was not printed yet.
    let id = service.database.value("select name from batch");
    let cancel = ["cancel", &*id, "--tenant", "alice", "--server", &service.url];
    assert_eq!(run(&cancel, &[], "").code, Some(0));
    let again = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
    assert_eq!(again.status.code(), Some(4), "the batch was cancelled");
    let rest = "{\"index\":1,\"outcome\":\"cancelled\",\"solution\":null,\"placements\":null}\n";
    assert_eq!(String::from_utf8(again.stdout).unwrap(), rest);
    assert_eq!(service.database.value("select count(*) from batch"), "1");
}

#[test]
fn an_interrupted_solve_prints_what_it_has_and_says_that_it_is_not_finished() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    fs::write(&file, format!("{}{ENDLESS}\n", format!("{SEED}\n").repeat(16))).unwrap();
    let args = ["solve", file.to_str().unwrap(), "--output", "jsonl"];
    let mut solve = Process::start(&[&args[..], &ENDLESS_OPTIONS[..]].concat(), &[]);
    solve.line("{\"index\":15");
    solve.signal(Signal::SIGINT);
    assert_eq!(solve.wait(), 4);
    solve.logged("interrupted after 16 of the 17 puzzles");
}

#[test]
fn an_interrupted_solve_loses_no_result_that_it_had_however_busy_it_is() {
    let made = run(&["generate", "-n", "5000", "--clues", "60"], &[], "");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("puzzles.txt");
    // However fast it is, it does not come to the end of the last.
    fs::write(&file, made.stdout.repeat(60) + ENDLESS).unwrap();
    let args = ["solve", file.to_str().unwrap(), "--output", "jsonl"];
    let mut solve = Process::start(&[&args[..], &ENDLESS_OPTIONS[..]].concat(), &[]);
    solve.line("{\"index\":0,");
    solve.signal(Signal::SIGINT);
    assert_eq!(solve.wait(), 4);
    solve.logged("interrupted after");
    let told = solve.log().concat();
    let done: usize =
        told.split("interrupted after ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    eventually("every result that was counted", || (solve.lines().len() == done).then_some(()));
    assert!(done > 0 && done <= 300_000, "{told}");
}

#[test]
fn solve_answers_what_it_has_read_while_its_input_stays_open() {
    let mut solve = Process::start(&["solve", "--output", "jsonl"], &[]);
    solve.write(&format!("{SEED}\n").repeat(32));
    solve.line("{\"index\":31,");
    solve.signal(Signal::SIGINT);
    assert_eq!(solve.wait(), 4);
}

#[test]
fn a_submit_that_waits_for_its_input_ends_when_it_is_told_to() {
    let service = Service::start(0, &[]);
    let mut submit = Process::start(&["submit", "--server", &service.url], &[]);
    submit.write(&format!("{SEED}\n"));
    // It takes over the signals before it connects.
    eventually("it is connected", || {
        let connected = fs::read_to_string(format!("/proc/{}/net/tcp", submit.pid())).unwrap();
        let port: u16 = service.url.rsplit(':').next().unwrap().parse().unwrap();
        connected.contains(&format!("0100007F:{port:04X} 01")).then_some(())
    });
    submit.signal(Signal::SIGTERM);
    assert_eq!(submit.wait(), 4);
    assert_eq!(service.database.value("select count(*) from batch"), "0");
}

#[test]
fn a_submit_whose_server_dies_tells_how_to_go_on() {
    let mut service = Service::start(1, &["--grace", "0"]);
    let (_folder, _, mut submit) = half_done(&service);
    service.server.signal(Signal::SIGKILL);
    service.server.wait();
    assert_eq!(submit.wait(), 4);
    submit.logged("sudoku-batch submit --id=");
}

#[test]
fn up_whose_output_nobody_reads_stops_in_order() {
    let (_folder, data, word) = data_dir();
    let args = ["up", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap(), "--workers", "1"];
    let mut up = std::process::Command::new(e2e::binary())
        .args(args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(up.stdout.take());
    let output = up.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!told.contains(" WARN ") && !told.contains(" ERROR "), "{told}");
    assert_eq!(processes_naming(&word), []);
}

#[test]
fn a_stop_while_up_or_demo_start_leaves_nothing() {
    let (_folder, data, word) = data_dir();
    let (place, demo_word) = open_folder();
    // At the first sign of life of each stage, in a folder of its own.
    for (number, stage) in ["", "postgres.log", "postgres/postmaster.pid"].iter().enumerate() {
        let data = data.with_file_name(number.to_string());
        let mut up = Process::start(
            &["up", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap(), "--workers", "1"],
            &[],
        );
        eventually("the stage", || data.join(stage).exists().then_some(()));
        up.signal(Signal::SIGTERM);
        assert_eq!(up.wait(), 0);
        assert_eq!(processes_naming(&word), [], "at {stage:?}");
    }
    let mut demo = Process::start(&["demo"], &[("TMPDIR", place.path().to_str().unwrap())]);
    eventually("a folder", || (fs::read_dir(place.path()).unwrap().count() > 0).then_some(()));
    demo.signal(Signal::SIGTERM);
    assert_eq!(demo.wait(), 4);
    assert_eq!(processes_naming(&demo_word), []);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "no folder is left");
}

#[test]
fn a_role_that_cannot_connect_ends_at_sigterm_all_the_same() {
    // It accepts and never answers.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://x@{}/x", mute.local_addr().unwrap());
    for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["work"]] {
        let mut role = Process::start(args, &[("DATABASE_URL", &url)]);
        let (_connection, _) = mute.accept().unwrap();
        let begun = Instant::now();
        assert_eq!(role.stop(), 0);
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }
}

#[test]
fn a_worker_leaves_a_job_that_it_cannot_read_alone_and_serves_the_others() {
    // The first version gave it back, claimed it again at once, and did nothing else.
    let service = Service::start(0, &[]);
    let submit =
        |id: &str| run(&["submit", "-", "--detach", "--id", id, "--server", &service.url], &[], SEED);
    assert_eq!(submit("damaged").code, Some(0));
    service.database.execute("delete from payload");
    let _worker = Service::worker(&service.database, &[]).allowing(&["cannot be read"]);
    let done = run(&["submit", "-", "--output", "jsonl", "--server", &service.url], &[], SEED);
    assert!(done.stdout.contains(SEED_SOLUTION), "{done:?}");
    assert_eq!(service.database.value("select attempt from job"), "2", "claimed once and held back");
    assert_eq!(service.database.value("select started from job"), "f", "and nobody is blamed for it");
}
