"""A client of sudoku-batch, made from its proto files alone: a file of puzzles in, one line of JSON a puzzle out.

    .ci/ensure-python    # once: makes target/python, with the libraries and the generated stubs
    PYTHONPATH=target/python/stubs target/python/bin/python crates/e2e/python/sudoku_client.py puzzles.txt

A batch outlives its clients. What breaks off is repeated: every call may be sent twice and does its work once, and results go on after the last
message that was printed. With --resume-file this holds for the program's own death too: started again with the same file, it prints the rest. (Killed
after a message's lines are out and before the file says so, it prints the lines of that one message again.)

Exit codes: 0 every puzzle answered; 1 an error; 2 wrong usage; 3 finished, but some invalid, undecided or failed; 4 cancelled or not finished.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import json_format
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status
from sudoku.v1 import batch_service_pb2 as wire
from sudoku.v1.batch_service_pb2_grpc import BatchServiceStub
from sudoku.v1.puzzle_pb2 import Outcome, PuzzleChunk, ResultChunk, SolveOptions
from sudoku.v1.solver_service_pb2 import SolveConfig, SolveRequest, SolveResponse
from sudoku.v1.solver_service_pb2_grpc import SolverServiceStub

MESSAGE_PUZZLES = 4_096  # grids in one message; the server takes up to 10,000
LINE_CHARACTERS = 200  # kept of a line: what is longer is no puzzle, and a message holds at most 5,000,000 bytes of grids
PAUSES = (0.2, 0.5, 1.0, 2.0, *[5.0] * 12)  # seconds between tries; after as many failures in a row the client gives up
FULL = ("QUEUE_FULL", "DATABASE_FULL")  # no failures: there will be room, however long that takes
# By itself a channel waits for up to two minutes before it connects again, and for ever for a server that went without a word.
CHANNEL_OPTIONS = (("grpc.max_reconnect_backoff_ms", 2_000), ("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 10_000))
OUTCOMES = {value: name.removeprefix("OUTCOME_").lower() for name, value in Outcome.items()}
CLEAR = "\r\x1b[K" if sys.stderr.isatty() else ""  # takes the progress away before another line is told
COUNTED = (Outcome.OUTCOME_UNIQUE, Outcome.OUTCOME_MULTIPLE, Outcome.OUTCOME_NO_SOLUTION)


class NotFinished(Exception):
    """The batch was begun, and its end has not been seen."""


class Printer:
    """Prints results, and keeps the place: the request that asks for what comes after them."""

    def __init__(self, place: wire.StreamResultsRequest, resume_file: Path | None, limit: int, total: int) -> None:
        self.place, self.resume_file, self.limit, self.total, self.printed = place, resume_file, limit, total, 0

    def take(self, message: wire.StreamResultsResponse | SolveResponse) -> None:
        """Prints the results of one message; one without any is a heartbeat."""
        if not message.HasField("results"):
            return
        sys.stdout.writelines(json_lines(message.results, self.limit))
        # The lines first, then the place: a client that dies in between prints them twice, but never loses them.
        sys.stdout.flush()
        count = len(message.results.outcomes)
        if message.resume_token:
            self.place.resume_token = message.resume_token
        elif self.place.ordered:
            self.place.start_index = message.results.start_index + count
        else:
            self.place.ClearField("start")
        self.keep()
        self.printed += count
        if CLEAR and not sys.stdout.isatty():
            print(f"{CLEAR}{self.printed:,} results of {self.total:,} puzzles", end="", file=sys.stderr, flush=True)

    def keep(self) -> None:
        """Writes the place to its file; a reader finds the old one or the new one there, and nothing in between."""
        if self.resume_file:
            fresh = self.resume_file.with_name(f"{self.resume_file.name}.new")
            fresh.write_text(json_format.MessageToJson(self.place) + "\n", encoding="utf-8")
            fresh.replace(self.resume_file)


def json_lines(chunk: ResultChunk, limit: int) -> Iterator[str]:
    """One line a puzzle, from the columns of one message."""
    placements = chunk.placements or [None] * len(chunk.outcomes)  # an empty column: nothing was to be counted
    for place, (outcome, solution, count) in enumerate(zip(chunk.outcomes, chunk.solutions, placements, strict=True)):
        line = {"index": chunk.start_index + place, "outcome": OUTCOMES.get(outcome, f"unknown_{outcome}"), "solution": solution or None}
        if outcome == Outcome.OUTCOME_INVALID:
            line["placements"] = 0
        elif count == -1:
            line |= {"placements": None, "placements_over": limit}
        else:
            line["placements"] = count if outcome in COUNTED else None
        yield json.dumps(line, separators=(",", ":")) + "\n"


def read_chunks(path: Path) -> list[PuzzleChunk]:
    """The puzzles of a file in messages: one a line, without blank lines and remarks. What is no puzzle is for the service to judge."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        lines = (line.strip(" \t\f\n") for line in file)
        grids = [line[:LINE_CHARACTERS] for line in lines if line and not line.startswith("#")]
    return [PuzzleChunk(grids=grids[start : start + MESSAGE_PUZZLES]) for start in range(0, len(grids), MESSAGE_PUZZLES)]


def reason(error: grpc.RpcError) -> str:
    """The service's own word for an error; "" for an error of the transport."""
    info = ErrorInfo()
    status = rpc_status.from_call(error)
    return info.reason if status and any(detail.Unpack(info) for detail in status.details) else ""


def describe(error: grpc.RpcError) -> str:
    """An error in one line: code, message and reason."""
    why = reason(error)
    return " ".join(f"{error.code().name}: {error.details()}".split()) + (f" ({why})" if why else "")


def wait(failures: int, error: grpc.RpcError | None) -> int:
    """Waits before the next try, longer after each failure in a row. No error: a stream ended without its last message."""
    broken = (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED)
    # Without the service's reason these three are the transport's: a connection that broke.
    full = error is not None and reason(error) in FULL
    if error and not full and error.code() != grpc.StatusCode.UNAVAILABLE and (error.code() not in broken or reason(error)):
        raise error
    failure = describe(error) if error else "the stream of results was cut"
    if failures == len(PAUSES):
        raise NotFinished(failure)
    if failures == 0:
        print(f"{CLEAR}{failure}; trying again", file=sys.stderr)
    time.sleep((2.0 if full else PAUSES[failures]) * random.uniform(0.5, 1.0))
    return max(failures, 1) if full else failures + 1


def retried(call: Callable[[Any], Any], request: Any) -> Any:
    """One call, as often as it takes."""
    failures = 0
    while True:
        try:
            return call(request)
        except grpc.RpcError as error:
            failures = wait(failures, error)


def finish(batches: BatchServiceStub, printer: Printer, chunks: list[PuzzleChunk]) -> wire.Batch:
    """Sends what the batch has not got, seals it and prints its results to the end; returns the batch as it ended."""
    offset = 0
    for chunk in chunks:
        # At its own offset, a chunk that is there already is compared and not stored twice.
        retried(batches.AppendPuzzles, wire.AppendPuzzlesRequest(name=printer.place.name, offset=offset, chunk=chunk))
        offset += len(chunk.grids)
    retried(batches.SealBatch, wire.SealBatchRequest(name=printer.place.name, expected_puzzle_count=offset))
    failures = 0
    while printer.place.WhichOneof("start"):
        try:
            for message in batches.StreamResults(printer.place):
                failures = 0
                printer.take(message)
                if message.HasField("batch"):
                    return message.batch
            failures = wait(failures, None)
        except grpc.RpcError as error:
            failures = wait(failures, error)
    raise NotFinished("this server gives no resume tokens, and without them only results in order go on")


def solve(channel: grpc.Channel, printer: Printer, chunks: list[PuzzleChunk]) -> wire.Batch:
    """Puzzles out and results in on one call; returns the batch as it ended."""

    def requests() -> Iterator[SolveRequest]:
        options = SolveOptions(placement_limit=printer.limit)
        yield SolveRequest(config=SolveConfig(options=options, ordered=printer.place.ordered))
        for chunk in chunks:
            yield SolveRequest(chunk=chunk)

    try:
        for message in SolverServiceStub(channel).Solve(requests()):
            printer.take(message)
            if message.HasField("batch"):
                # It comes twice: when it is made, and when it has ended.
                if printer.place.name:
                    return message.batch
                printer.place.name = message.batch.name
    except grpc.RpcError as error:
        if not printer.place.name:
            raise
        wait(0, error)
    # The call was cut, but its batch stays: the durable calls bring it to its end.
    return finish(BatchServiceStub(channel), printer, chunks)


def run(arguments: argparse.Namespace) -> int:
    """Does what was asked; returns the exit code."""
    chunks = read_chunks(arguments.file)
    if not chunks:
        raise ValueError(f"there is no puzzle in {arguments.file}")
    name = "" if arguments.solve else f"batches/{arguments.id or uuid.uuid4()}"
    place = wire.StreamResultsRequest(name=name, start_index=0, ordered=not arguments.as_finished, follow=True)
    if arguments.resume_file and arguments.resume_file.exists():
        kept = json_format.Parse(arguments.resume_file.read_text(encoding="utf-8"), wire.StreamResultsRequest())
        if kept.ordered != place.ordered or (arguments.id and kept.name != name):
            raise ValueError(f"{arguments.resume_file} is of another run: {kept.name}, {'ordered' if kept.ordered else 'as finished'}")
        place = kept
    printer = Printer(place, arguments.resume_file, arguments.placement_limit, sum(len(chunk.grids) for chunk in chunks))
    with grpc.insecure_channel(arguments.server.removeprefix("http://").rstrip("/"), CHANNEL_OPTIONS) as channel:
        if arguments.solve:
            batch = solve(channel, printer, chunks)
        else:
            batches, new = BatchServiceStub(channel), wire.Batch(options=SolveOptions(placement_limit=printer.limit))
            # Not tried again: a server that is not there at all is better told at once. The same id and options again give the same batch.
            batches.CreateBatch(wire.CreateBatchRequest(batch_id=place.name.removeprefix("batches/"), batch=new))
            printer.keep()
            print(f"{place.name} is begun; --id {place.name.removeprefix('batches/')} goes on with it", file=sys.stderr)
            batch = finish(batches, printer, chunks)
    print(end=CLEAR, file=sys.stderr)
    if batch.state != wire.Batch.STATE_SUCCEEDED:
        raise NotFinished(f"{batch.name} was cancelled")
    return 3 if batch.progress.invalid_count + batch.progress.undecided_count + batch.progress.failed_count else 0


def main() -> int:
    """Reads the command line and tells errors, each in one line."""
    parser = argparse.ArgumentParser(description="Sends a file of puzzles to sudoku-batch and prints one line of JSON a puzzle.")
    parser.add_argument("file", type=Path, help="puzzles, one a line: 81 characters, 1 to 9, and . or 0 for an empty cell")
    parser.add_argument("--server", default="127.0.0.1:50051", help="HOST:PORT or http://HOST:PORT (default: %(default)s)")
    parser.add_argument("--id", help="id of the batch; the same id again goes on with the same batch")
    parser.add_argument("--resume-file", type=Path, help="keeps the place there, for a client that is started again")
    parser.add_argument("--as-finished", action="store_true", help="results as they finish, not in order")
    parser.add_argument("--placement-limit", type=int, default=100_000_000, help="placements to count at the most; 0 counts none")
    parser.add_argument("--solve", action="store_true", help="one call for puzzles and results, SolverService.Solve")
    arguments = parser.parse_args()
    if arguments.solve and (arguments.id or arguments.resume_file):
        parser.error("--solve makes a batch of its own: neither --id nor --resume-file goes with it")
    try:
        return run(arguments)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has had enough: nothing is left to tell
        return 0
    except grpc.RpcError as error:
        message, code = describe(error), 1
    except (OSError, ValueError, json_format.ParseError) as error:
        message, code = str(error), 1
    except (NotFinished, KeyboardInterrupt) as error:
        message, code = str(error) or "interrupted", 4
    print(f"{CLEAR}error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
