"""A client of sudoku-batch, made from its proto files alone: a file of puzzles in, one line of JSON a puzzle out.

    .ci/ensure-python    # once: makes target/python, with the libraries and the generated stubs
    PYTHONPATH=target/python/stubs target/python/bin/python crates/e2e/python/sudoku_client.py puzzles.txt

A batch outlives its clients. What breaks off is repeated: every call may be sent twice and does its work once, and results go on after the last
message that was printed. With --resume-file this holds for the program's own death too: started again with the same file, it prints the rest. (Killed
after a message's lines are out and before the file says so, it prints the lines of that one message again.)

Results go to stdout, everything else to stderr: on a terminal a bar, elsewhere one line at the end. What else it takes: puzzles.py (the file, the lines),
retries.py (what is tried again, and when), refusals.py (what an error says), progress.py (the bar).

Exit codes: 0 every puzzle answered; 1 an error; 2 wrong usage; 3 finished, but some invalid, undecided or failed; 4 cancelled or not finished.
"""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import grpc
from google.protobuf import json_format
from progress import Meter
from puzzles import json_lines, read_chunks
from refusals import describe
from retries import NotFinished, Retries
from sudoku.v1 import batch_service_pb2 as wire
from sudoku.v1.batch_service_pb2_grpc import BatchServiceStub
from sudoku.v1.puzzle_pb2 import PuzzleChunk, SolveOptions
from sudoku.v1.solver_service_pb2 import SolveConfig, SolveRequest, SolveResponse
from sudoku.v1.solver_service_pb2_grpc import SolverServiceStub

# By itself a channel waits for up to two minutes before it connects again, and for ever for a server that went without a word.
CHANNEL_OPTIONS = (("grpc.max_reconnect_backoff_ms", 2_000), ("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 10_000))


class Printer:
    """Prints results, and keeps the place: the request that asks for what comes after them."""

    def __init__(self, place: wire.StreamResultsRequest, resume_file: Path | None, limit: int, meter: Meter) -> None:
        self.place, self.resume_file, self.limit, self.meter = place, resume_file, limit, meter

    def take(self, message: wire.StreamResultsResponse | SolveResponse) -> None:
        """Prints the results of one message; one without any is a heartbeat."""
        if not message.HasField("results"):
            return
        sys.stdout.writelines(json_lines(message.results, self.limit))
        # The lines first, then the place: a client that dies in between prints them twice, but never loses them.
        sys.stdout.flush()
        reached = message.results.start_index + len(message.results.outcomes)
        if message.resume_token:
            self.place.resume_token = message.resume_token
        elif self.place.ordered:
            self.place.start_index = reached
        else:
            self.place.ClearField("start")
        self.keep()
        self.meter.take(message.results.outcomes, reached if self.place.ordered else None)

    def keep(self) -> None:
        """Writes the place to its file; a reader finds the old one or the new one there, and nothing in between."""
        if self.resume_file:
            fresh = self.resume_file.with_name(f"{self.resume_file.name}.new")
            fresh.write_text(json_format.MessageToJson(self.place) + "\n", encoding="utf-8")
            fresh.replace(self.resume_file)


def finish(batches: BatchServiceStub, printer: Printer, chunks: list[PuzzleChunk], retries: Retries) -> wire.Batch:
    """Sends what the batch has not got, seals it and prints its results to the end; returns the batch as it ended."""
    offset = 0
    for chunk in chunks:
        # At its own offset, a chunk that is there already is compared and not stored twice.
        retries.call(batches.AppendPuzzles, wire.AppendPuzzlesRequest(name=printer.place.name, offset=offset, chunk=chunk))
        offset += len(chunk.grids)
        printer.meter.sent(offset)
    retries.call(batches.SealBatch, wire.SealBatchRequest(name=printer.place.name, expected_puzzle_count=offset))
    while printer.place.WhichOneof("start"):
        try:
            for message in batches.StreamResults(printer.place, timeout=retries.left()):
                retries.failures = 0
                printer.take(message)
                if message.HasField("batch"):
                    return message.batch
            retries.wait(None)
        except grpc.RpcError as error:
            retries.wait(error)
    raise NotFinished("this server gives no resume tokens, and without them only results in order go on")


def solve(channel: grpc.Channel, printer: Printer, chunks: list[PuzzleChunk], retries: Retries) -> wire.Batch:
    """Puzzles out and results in on one call; returns the batch as it ended."""

    def requests() -> Iterator[SolveRequest]:
        options, sent = SolveOptions(placement_limit=printer.limit), 0
        yield SolveRequest(config=SolveConfig(options=options, ordered=printer.place.ordered))
        for chunk in chunks:
            yield SolveRequest(chunk=chunk)
            sent += len(chunk.grids)
            printer.meter.sent(sent)

    try:
        for message in SolverServiceStub(channel).Solve(requests(), timeout=retries.left()):
            printer.take(message)
            if message.HasField("batch"):
                # It comes twice: when it is made, and when it has ended.
                if printer.place.name:
                    return message.batch
                printer.place.name = message.batch.name
    except grpc.RpcError as error:
        if not printer.place.name:
            raise
        retries.wait(error)
    # The call was cut, but its batch stays: the durable calls bring it to its end.
    return finish(BatchServiceStub(channel), printer, chunks, retries)


def place_of(arguments: argparse.Namespace) -> wire.StreamResultsRequest:
    """Where to begin: at the beginning of a batch, or where the resume file says."""
    name = "" if arguments.solve else f"batches/{arguments.id or uuid.uuid4()}"
    place = wire.StreamResultsRequest(name=name, start_index=0, ordered=not arguments.as_finished, follow=True)
    if not (arguments.resume_file and arguments.resume_file.exists()):
        return place
    kept = json_format.Parse(arguments.resume_file.read_text(encoding="utf-8"), wire.StreamResultsRequest())
    if kept.ordered != place.ordered or (arguments.id and kept.name != name):
        raise ValueError(f"{arguments.resume_file} is of another run: {kept.name}, {'ordered' if kept.ordered else 'as finished'}")
    return kept


def run(arguments: argparse.Namespace) -> int:
    """Does what was asked; returns the exit code."""
    chunks = read_chunks(arguments.file)
    if not chunks:
        raise ValueError(f"there is no puzzle in {arguments.file}")
    place = place_of(arguments)
    server = arguments.server.removeprefix("http://").rstrip("/")
    with Meter(sum(len(chunk.grids) for chunk in chunks)) as meter, grpc.insecure_channel(server, CHANNEL_OPTIONS) as channel:
        retries = Retries(arguments.deadline, meter.tell)
        printer = Printer(place, arguments.resume_file, arguments.placement_limit, meter)
        if arguments.solve:
            batch = solve(channel, printer, chunks, retries)
        else:
            batches, new = BatchServiceStub(channel), wire.Batch(options=SolveOptions(placement_limit=printer.limit))
            request = wire.CreateBatchRequest(batch_id=place.name.removeprefix("batches/"), batch=new)
            # Not tried again: a server that is not there at all is better told at once. The same id and options again give the same batch.
            batches.CreateBatch(request, timeout=retries.left())
            printer.keep()
            meter.tell(f"{place.name} is begun; --id {request.batch_id} goes on with it")
            batch = finish(batches, printer, chunks, retries)
    if batch.state != wire.Batch.STATE_SUCCEEDED:
        raise NotFinished(f"{batch.name} was cancelled")
    print(meter.last_line(), file=sys.stderr)
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
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="ends after so long at the latest; the batch stays, and goes on")
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
    print(f"error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
