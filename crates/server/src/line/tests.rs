use std::{
    pin::{Pin, pin},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    task::{Context, Poll, Wake, Waker},
};

use proto::v1;
use store::{BatchKey, BatchState};
use time::OffsetDateTime;

use super::*;

/// Stands in the only line, with a first look at a batch that does not reach the offset; nobody else is expected.
fn stand(lines: &Lines<()>, offset: u64) -> InLine<()> {
    let mut place = lines.join((), Some(offset));
    place.gap_deadline = Instant::now();
    place.arm();
    place
}

fn leave(mut place: InLine<()>, end: u64) {
    place.tell(ends_at(end));
}

fn ends_at(puzzle_count: u64) -> Batch {
    Batch {
        key: BatchKey::default(),
        name: String::new(),
        state: BatchState::Open,
        placement_limit: 0,
        priority: 0,
        display_name: String::new(),
        labels: BTreeMap::new(),
        puzzle_count,
        created_at: OffsetDateTime::UNIX_EPOCH,
        sealed_at: None,
        ended_at: None,
        expires_at: None,
    }
}

fn puzzles(count: usize) -> Arc<PackedPuzzles> {
    let chunk = v1::PuzzleChunk { packed_grids: vec![b'.'; 81 * count].into(), ..v1::PuzzleChunk::default() };
    Arc::new(PackedPuzzles::of(&chunk).expect("within the limits"))
}

/// One turn, with some puzzles of its own.
async fn turn(place: &mut InLine<()>, drain: &Drain) -> Result<Turn, Refusal> {
    place.turn(drain, &puzzles(1)).await
}

/// What a wait has come to by now, for one that began before.
fn now<T>(wait: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    wait.poll(&mut Context::from_waker(Waker::noop()))
}

/// Whether a place would still wait if it began now.
fn waits(place: &mut InLine<()>, drain: &Drain) -> bool {
    now(pin!(turn(place, drain))).is_pending()
}

#[tokio::test]
async fn a_gap_waits_for_nobody_behind_it_nor_beside_it() {
    let (_start, drain) = Drain::new();
    let lines = Lines::default();
    let mut places = [8, 8, 16].map(|offset| stand(&lines, offset));
    assert!(matches!(turn(&mut places[0], &drain).await, Ok(Turn::Nobody)));
    assert!(matches!(turn(&mut places[1], &drain).await, Ok(Turn::Nobody)));
    assert!(waits(&mut places[2], &drain));
}

#[tokio::test]
async fn only_the_one_whose_turn_it_is_looks_again_and_a_join_wakes_nobody() {
    let (_start, drain) = Drain::new();
    let lines = Lines::default();
    let mut places: Vec<_> = (0..32).map(|number| stand(&lines, number * 10)).collect();
    let mut first = places.remove(0);
    assert!(matches!(turn(&mut first, &drain).await, Ok(Turn::Nobody)), "nobody is before it");
    leave(first, 10);
    let waiting: Vec<bool> = places.iter_mut().map(|place| waits(place, &drain)).collect();
    assert_eq!(waiting.iter().position(|waits| *waits), Some(1));
    assert!(waiting[1..].iter().all(|waits| *waits));

    let mut last = places.pop().expect("31 of them");
    let mut wait = pin!(turn(&mut last, &drain));
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(Arc::clone(&flag));
    assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let joined = stand(&lines, 5);
    assert!(!flag.0.load(SeqCst));
    leave(joined, 310);
    assert!(flag.0.load(SeqCst));
    assert!(matches!(now(wait), Poll::Ready(Ok(Turn::At(_)))), "the batch reaches its offset by another way");
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

#[tokio::test]
async fn those_who_wait_look_again_when_the_last_before_them_has_left_without_success() {
    let (_start, drain) = Drain::new();
    let lines = Lines::default();
    let (first, mut second, mut third) = (stand(&lines, 0), stand(&lines, 10), stand(&lines, 20));
    assert!(waits(&mut second, &drain) && waits(&mut third, &drain));
    drop(first);
    assert!(matches!(turn(&mut second, &drain).await, Ok(Turn::Look)));
    assert!(waits(&mut third, &drain), "the second may still fill the gap");
    second.arm();
    assert!(matches!(turn(&mut second, &drain).await, Ok(Turn::Nobody)), "it looked in vain");
    drop(second);
    assert!(matches!(turn(&mut third, &drain).await, Ok(Turn::Look)));
    drop(third);
    assert!(lines.lock().is_empty(), "nothing is kept of a line in which nobody stands");
}

#[tokio::test]
async fn one_deadline_bounds_all_waits_and_a_drain_ends_them() {
    let (start, drain) = Drain::new();
    let lines = Lines::default();
    let (_first, mut second) = (stand(&lines, 0), stand(&lines, 10));
    start.raise();
    assert!(matches!(turn(&mut second, &drain).await, Err(Refusal::Stopping)));
    second.deadline = Instant::now();
    assert!(matches!(turn(&mut second, &drain).await, Ok(Turn::Nobody)));
    // What is stored elsewhere in the line prolongs nothing.
    leave(stand(&lines, 5), 7);
    assert!(matches!(turn(&mut second, &drain).await, Ok(Turn::Nobody)));
}

#[tokio::test]
async fn what_waits_behind_each_other_is_stored_by_one_and_told_to_each() {
    let (_start, drain) = Drain::new();
    let lines = Lines::default();
    let leader = stand(&lines, 0);
    // The one at 20 is behind a gap.
    let own = async |offset: u64, count: usize| {
        let mut place = stand(&lines, offset);
        place.turn(&drain, &puzzles(count)).await
    };
    let (mut second, mut third, mut fifth) = (Box::pin(own(8, 3)), Box::pin(own(11, 4)), pin!(own(20, 1)));
    assert!(now(second.as_mut()).is_pending());
    assert!(now(third.as_mut()).is_pending() && now(fifth.as_mut()).is_pending());
    assert!(leader.take(8, |_| None::<()>).is_none(), "it does not agree");
    assert!(leader.take(9, |_| Some(())).is_none(), "there is none");
    let (one, ()) = leader.take(8, |puzzles| (puzzles.len() == 3).then_some(())).expect("offered");
    let (other, ()) = leader.take(11, |puzzles| (puzzles.len() == 4).then_some(())).expect("offered");
    assert!(leader.take(15, |_| Some(())).is_none());
    for (offer, next_offset) in [(one, 11), (other, 15)] {
        offer.stored(Appended { next_offset, duplicate: false });
    }
    leave(leader, 15);
    assert!(now(fifth.as_mut()).is_pending(), "those who were told still stand there");
    for (turn, end) in [(second, 11), (third, 15)] {
        let Ok(Turn::Stored(appended)) = turn.await else { panic!("stored") };
        assert_eq!(appended, Appended { next_offset: end, duplicate: false });
    }
    assert!(matches!(fifth.await, Ok(Turn::Look)));
}

#[tokio::test]
async fn a_message_that_comes_before_those_it_follows_is_stored_with_them() {
    let (_start, drain) = Drain::new();
    let lines = Lines::default();
    let mut early = lines.join((), Some(8));
    early.arm();
    let packed = puzzles(3);
    let mut turn = pin!(early.turn(&drain, &packed));
    assert!(now(turn.as_mut()).is_pending(), "they may be on their way");
    let leader = stand(&lines, 0);
    let (offer, ()) = leader.take(8, |_| Some(())).expect("offered");
    offer.stored(Appended { next_offset: 11, duplicate: false });
    leave(leader, 11);
    assert!(matches!(turn.await, Ok(Turn::Stored(Appended { next_offset: 11, .. }))));
}

#[tokio::test]
async fn what_was_taken_but_not_stored_is_for_its_owner() {
    let (start, drain) = Drain::new();
    let lines = Lines::default();
    let (leader, mut second) = (stand(&lines, 0), stand(&lines, 8));
    let packed = puzzles(3);
    let mut turn = pin!(second.turn(&drain, &packed));
    assert!(now(turn.as_mut()).is_pending());
    let (offer, ()) = leader.take(8, |_| Some(())).expect("offered");
    // Its fate is waited for even now.
    start.raise();
    assert!(now(turn.as_mut()).is_pending());
    drop(offer);
    assert!(matches!(turn.await, Ok(Turn::Look)));
    assert!(leader.take(8, |_| Some(())).is_none(), "nothing is offered by one who does not wait");
}

#[tokio::test]
async fn the_first_that_comes_when_the_end_is_known_needs_no_look() {
    let (_start, drain) = Drain::new();
    let lines = Lines::default();
    let (leader, _far) = (stand(&lines, 0), stand(&lines, 100));
    leave(leader, 8);
    let mut next = lines.join((), Some(8));
    assert!(matches!(next.turn(&drain, &puzzles(1)).await, Ok(Turn::At(batch)) if batch.puzzle_count == 8));
    let mut beyond = lines.join((), Some(9));
    let packed = puzzles(1);
    assert!(now(pin!(beyond.turn(&drain, &packed))).is_pending(), "one is before it");
    drop(next);
    assert!(matches!(beyond.turn(&drain, &packed).await, Ok(Turn::Look)));
}
