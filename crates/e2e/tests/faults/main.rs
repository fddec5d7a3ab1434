//! Everything that can fail, a thousand times and mixed: in the end every batch has ended, and the tables hold what they must and nothing else.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use e2e::{
    Database, Numbers, PATIENCE, Process, Proxy, Service, eventually, limit_for, run, with_long_searches,
};
use nix::sys::signal::Signal;
use submitter::{End, Submitter};
use tables::{REMEMBER_FALLS, WRONG, count, states};

mod submitter;
mod tables;

/// Faults at the most, and the time for them.
const FAULTS_MAX: usize = 1_000;
const TIME_MAX: Duration = Duration::from_secs(30);
/// Clients that submit at the same time.
const SUBMITTERS: u64 = 4;
/// Puzzles that batches are cut from.
const PUZZLES: u64 = 4_000;
/// A stopped process goes on when its lease is over.
const PAUSE: Duration = Duration::from_millis(2_500);
const LEASE: [&str; 2] = ["--lease", "2"];
/// The next fault does not wait longer for something to go well.
const WELL_MAX: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    /// A client goes away in the middle of an append.
    Append,
    /// A client leaves a stream of results.
    Stream,
    /// A batch is cancelled before it has ended.
    Cancel,
    /// A batch is deleted before it has ended.
    Delete,
    /// All connections to the server are cut.
    Cut,
    /// A session of the service is ended by the database.
    Session,
    /// A lease runs out under its living owner.
    Lease,
    /// A worker is stopped until its leases are over.
    Pause,
    /// A worker is killed, and another started.
    Kill,
    /// The server is killed, and started again where it was.
    Server,
}

const FAULTS: [Fault; 10] = [
    Fault::Append,
    Fault::Stream,
    Fault::Cancel,
    Fault::Delete,
    Fault::Cut,
    Fault::Session,
    Fault::Lease,
    Fault::Pause,
    Fault::Kill,
    Fault::Server,
];

/// What all who take part share.
struct Scene {
    proxy: Proxy,
    puzzles: Vec<String>,
    /// Their solutions, of those that have one.
    solutions: Vec<Option<String>>,
    limit: u64,
    counts: [AtomicUsize; FAULTS.len()],
    is_over: AtomicBool,
    went_well: Sender<()>,
}

impl Scene {
    fn new(server: &str) -> (Self, Receiver<()>) {
        let made = run(&["generate", "-n", &PUZZLES.to_string(), "--clues", "32", "--seed", "3"], &[], "");
        let text = with_long_searches(&made.stdout, 100);
        let limit = limit_for(Duration::from_millis(10));
        let options = ["--output", "jsonl", "--placement-limit", &limit.to_string()];
        let solved = run(&[&["solve", "-"], &options[..]].concat(), &[], &text).stdout;
        let solution = |line: &str| {
            let result: serde_json::Value = serde_json::from_str(line).unwrap();
            result["solution"].as_str().map(str::to_owned)
        };
        let (went_well, all_went_well) = channel();
        let scene = Self {
            proxy: Proxy::start(server),
            puzzles: text.lines().map(str::to_owned).collect(),
            solutions: solved.lines().map(solution).collect(),
            limit,
            counts: Default::default(),
            is_over: AtomicBool::new(false),
            went_well,
        };
        (scene, all_went_well)
    }

    fn happened(&self, fault: Fault) {
        self.counts[fault as usize].fetch_add(1, SeqCst);
    }

    /// A client has got on.
    fn went_well(&self) {
        // An error means that nobody breaks things any more.
        self.went_well.send(()).ok();
    }

    fn is_over(&self) -> bool {
        self.is_over.load(SeqCst)
    }

    fn counts(&self) -> BTreeMap<Fault, usize> {
        FAULTS.into_iter().map(|fault| (fault, self.counts[fault as usize].load(SeqCst))).collect()
    }
}

/// Who breaks things.
struct Breaker {
    scene: Arc<Scene>,
    service: Service,
    /// What went well since.
    went_well: Receiver<()>,
    numbers: Numbers,
    paused: Option<(usize, Instant)>,
}

impl Breaker {
    fn worker(database: &Database) -> Process {
        Service::worker(database, &LEASE).allowing(&[" WARN "])
    }

    /// Breaks things until the time or the number is over; gives the service back as it is then, with nothing stopped.
    fn run(mut self) -> Service {
        let begun = Instant::now();
        while begun.elapsed() < TIME_MAX && self.scene.counts().values().sum::<usize>() < FAULTS_MAX {
            // So that something is under way when the next comes.
            self.went_well.recv_timeout(WELL_MAX).ok();
            match self.numbers.below(100) {
                0 => self.kill_server(),
                1..4 => self.kill_worker(),
                4..10 => self.pause_or_go_on(),
                10..25 => {
                    self.scene.proxy.cut();
                    self.scene.happened(Fault::Cut);
                }
                25..50 => self.expire_a_lease(),
                _ => self.end_a_session(),
            }
        }
        if let Some((at, _)) = self.paused.take() {
            self.service.workers[at].signal(Signal::SIGCONT);
        }
        self.scene.is_over.store(true, SeqCst);
        self.service
    }

    fn kill_server(&mut self) {
        self.service.server.signal(Signal::SIGKILL);
        self.service.server.wait();
        let listen = self.service.url.trim_start_matches("http://");
        let (server, _) = Service::server_at(&self.service.database, listen);
        self.service.server = server.allowing(&[" WARN "]);
        self.scene.happened(Fault::Server);
    }

    fn kill_worker(&mut self) {
        let at = usize::try_from(self.numbers.below(2)).unwrap();
        self.paused.take_if(|(paused, _)| *paused == at);
        let worker = &mut self.service.workers[at];
        worker.signal(Signal::SIGKILL);
        worker.wait();
        *worker = Self::worker(&self.service.database);
        self.scene.happened(Fault::Kill);
    }

    fn pause_or_go_on(&mut self) {
        if let Some((at, _)) = self.paused.take_if(|(_, since)| since.elapsed() > PAUSE) {
            self.service.workers[at].signal(Signal::SIGCONT);
        } else if self.paused.is_none() {
            let at = usize::try_from(self.numbers.below(2)).unwrap();
            self.service.workers[at].signal(Signal::SIGSTOP);
            self.paused = Some((at, Instant::now()));
            self.scene.happened(Fault::Pause);
        }
    }

    fn expire_a_lease(&mut self) {
        let any = self.numbers.below(1_000);
        let expired = self.service.database.query(&format!(
            "update job set lease_until = now() - interval '1 second'
            where (batch_id, lo) = (select batch_id, lo from job where owner is not null order by md5(lo::text || {any}) limit 1)
                and owner is not null
            returning 'expired'"
        ));
        if !expired.is_empty() {
            self.scene.happened(Fault::Lease);
        }
    }

    fn end_a_session(&mut self) {
        let any = self.numbers.below(1_000);
        let ended = self.service.database.query(&format!(
            "select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and application_name like 'sudoku-batch%' order by md5(pid::text || {any}) limit 1"
        ));
        if !ended.is_empty() {
            self.scene.happened(Fault::Session);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_thousand_random_faults_every_batch_has_ended_and_the_tables_hold_what_they_must() {
    let database = Database::fresh();
    let (server, url) = Service::server(&database);
    database.execute(REMEMBER_FALLS);
    let workers = (0..2).map(|_| Breaker::worker(&database)).collect();
    let (scene, went_well) = Scene::new(&url);
    let scene = Arc::new(scene);
    let service = Service { workers, server: server.allowing(&[" WARN "]), url, database };
    let mut submitters = Vec::new();
    for number in 1..=SUBMITTERS {
        submitters.push(tokio::spawn(Submitter::start(Arc::clone(&scene), number).await.run()));
    }
    let breaker =
        Breaker { scene: Arc::clone(&scene), service, went_well, numbers: Numbers::of(7), paused: None };
    let service = tokio::task::spawn_blocking(|| breaker.run()).await.unwrap();
    let mut ends = BTreeMap::new();
    for submitter in submitters {
        ends.extend(tokio::time::timeout(PATIENCE, submitter).await.expect("all goes on").unwrap());
    }
    let counts = scene.counts();
    let told = format!("{counts:?}, {} batches", ends.len());
    assert!(counts.values().all(|count| *count > 0), "there were all kinds: {told}");
    let [jobs, batches, lasting @ ..] = WRONG;
    for (what, rows) in [jobs, batches] {
        eventually(what, || (count(&service.database, rows) == 0).then_some(()));
    }
    for (what, rows) in lasting {
        assert_eq!(count(&service.database, rows), 0, "{what} after {told}");
    }
    let states = states(&service.database);
    for (id, end) in &ends {
        match end {
            End::Sealed => assert_eq!(states.get(id), Some(&true), "{id} after {told}"),
            End::Cancelled => assert!(states.contains_key(id), "{id} after {told}"),
            End::Deleted => assert_eq!(states.get(id), None, "{id} after {told}"),
        }
    }
    let kept = ends.values().filter(|end| **end != End::Deleted).count();
    assert_eq!(states.len(), kept, "no other batch is there: {told}");
}
