"""Provokes the statuses of sudoku-batch and prints what each brings, details decoded: one line of JSON a row.

    PYTHONPATH=target/python/stubs target/python/bin/python crates/e2e/python/statuses.py --server 127.0.0.1:50051

Without names it does all rows that need nothing but a server and a worker. The others need a server in the right state, and are asked for by name:
queue-full one with --queued-max-tenant 10 and no worker; database-* one whose database is away; stopping-* one that stops (SIGTERM) after this
program has printed "open".
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from google.protobuf import json_format
from refusals import details, retry_seconds
from sudoku.v1.batch_service_pb2 import (
    AppendPuzzlesRequest,
    Batch,
    CancelBatchRequest,
    CreateBatchRequest,
    DeleteBatchRequest,
    GetBatchRequest,
    SealBatchRequest,
    StreamResultsRequest,
    WatchBatchRequest,
)
from sudoku.v1.batch_service_pb2_grpc import BatchServiceStub
from sudoku.v1.puzzle_pb2 import PuzzleChunk, SolveOptions
from sudoku.v1.solver_service_pb2 import SolveConfig, SolveRequest
from sudoku.v1.solver_service_pb2_grpc import SolverServiceStub

PUZZLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
OTHER = "..43..2.9..5..9..1.7..6..43..6..2.8719...74...5..83...6.....1.5..35.869..4291.3.."
DEADLINE = 1.0  # seconds

Row = Callable[[BatchServiceStub], Any]
ROWS: dict[str, Row] = {}
EXTRA_ROWS: dict[str, Row] = {}


def row(name: str, rows: dict[str, Row] = ROWS) -> Callable[[Row], Row]:
    """Enters a function as the one that provokes a row: it returns a response or raises a status."""

    def enter(function: Row) -> Row:
        rows[name] = function
        return function

    return enter


def create(batches: BatchServiceStub, batch_id: str = "", limit: int = 1_000, tenant: str = "default") -> Batch:
    options = SolveOptions(placement_limit=limit)
    request = CreateBatchRequest(batch_id=batch_id or str(uuid.uuid4()), batch=Batch(options=options))
    return batches.CreateBatch(request, metadata=[("sudoku-tenant", tenant)])


def append(batches: BatchServiceStub, batch: Batch, offset: int, *grids: str) -> Any:
    return batches.AppendPuzzles(AppendPuzzlesRequest(name=batch.name, offset=offset, chunk=PuzzleChunk(grids=grids)))


@row("append-repeated")
def append_repeated(batches: BatchServiceStub) -> Any:
    batch = create(batches)
    append(batches, batch, 0, PUZZLE, OTHER)
    return append(batches, batch, 0, PUZZLE, OTHER)


@row("create-repeated")
def create_repeated(batches: BatchServiceStub) -> Any:
    first = create(batches)
    again = create(batches, first.name.removeprefix("batches/"))
    assert again == first, f"{again} is not {first}"
    return again


@row("offset-taken")
def offset_taken(batches: BatchServiceStub) -> Any:
    batch = create(batches)
    append(batches, batch, 0, PUZZLE, PUZZLE, PUZZLE)
    return append(batches, batch, 0, PUZZLE, OTHER, PUZZLE)


@row("batch-exists")
def batch_exists(batches: BatchServiceStub) -> Any:
    return create(batches, create(batches, limit=5).name.removeprefix("batches/"), limit=6)


@row("too-many-grids")
def too_many_grids(batches: BatchServiceStub) -> Any:
    return append(batches, create(batches), 0, *[PUZZLE] * 10_001)


@row("too-many-bytes")
def too_many_bytes(batches: BatchServiceStub) -> Any:
    return append(batches, create(batches), 0, *["." * 2_500_001] * 2)


@row("bad-option")
def bad_option(batches: BatchServiceStub) -> Any:
    return create(batches, limit=-1)


@row("several-bad-fields")
def several_bad_fields(batches: BatchServiceStub) -> Any:
    bad = Batch(options=SolveOptions(placement_limit=-1), priority=10, display_name="x" * 121)
    return batches.CreateBatch(CreateBatchRequest(batch_id="no", batch=bad))


@row("deadline")
def deadline(batches: BatchServiceStub) -> Any:
    batch = create(batches)
    append(batches, batch, 0, PUZZLE)
    place = StreamResultsRequest(name=batch.name, ordered=True, follow=True)
    indexes: list[int] = []
    try:
        read(batches.StreamResults(place, timeout=DEADLINE), place, indexes)
    except grpc.RpcError as error:
        # The batch stays as it was: it takes puzzles, and a stream goes on right after the last message.
        append(batches, batch, 1, OTHER)
        batches.SealBatch(SealBatchRequest(name=batch.name, expected_puzzle_count=2))
        end = read(batches.StreamResults(place), place, indexes)
        assert indexes == [0, 1] and end.state == Batch.STATE_SUCCEEDED, f"{indexes}, {end}"
        raise error


def read(stream: Any, place: StreamResultsRequest, indexes: list[int]) -> Batch:
    """Reads results to the end, and keeps the place."""
    for message in stream:
        if message.HasField("results"):
            first = message.results.start_index
            indexes.extend(range(first, first + len(message.results.outcomes)))
            place.resume_token = message.resume_token
        if message.HasField("batch"):
            return message.batch
    raise AssertionError("the stream was cut without a status")


@row("offset-beyond-end")
def offset_beyond_end(batches: BatchServiceStub) -> Any:
    batch = create(batches)
    append(batches, batch, 0, PUZZLE)
    return append(batches, batch, 5, PUZZLE)


@row("append-to-sealed")
def append_to_sealed(batches: BatchServiceStub) -> Any:
    batch = create(batches)
    append(batches, batch, 0, PUZZLE)
    batches.SealBatch(SealBatchRequest(name=batch.name))
    return append(batches, batch, 1, PUZZLE)


@row("append-to-cancelled")
def append_to_cancelled(batches: BatchServiceStub) -> Any:
    batch = create(batches)
    batches.CancelBatch(CancelBatchRequest(name=batch.name))
    return append(batches, batch, 0, PUZZLE)


@row("seal-with-another-count")
def seal_with_another_count(batches: BatchServiceStub) -> Any:
    return batches.SealBatch(SealBatchRequest(name=create(batches).name, expected_puzzle_count=7))


@row("delete-unfinished")
def delete_unfinished(batches: BatchServiceStub) -> Any:
    return batches.DeleteBatch(DeleteBatchRequest(name=create(batches).name))


@row("of-another-tenant")
def of_another_tenant(batches: BatchServiceStub) -> Any:
    batch = create(batches, tenant="alice")
    return batches.GetBatch(GetBatchRequest(name=batch.name), metadata=[("sudoku-tenant", "bob")])


@row("queue-full", EXTRA_ROWS)
def queue_full(batches: BatchServiceStub) -> Any:
    batch = create(batches)
    # The message that reaches the quota is taken whole.
    append(batches, batch, 0, *[PUZZLE] * 12)
    return append(batches, batch, 12, PUZZLE)


@row("database-away-get", EXTRA_ROWS)
def database_away_get(batches: BatchServiceStub) -> Any:
    return batches.GetBatch(GetBatchRequest(name="batches/some-batch"))


@row("database-away-create", EXTRA_ROWS)
def database_away_create(batches: BatchServiceStub) -> Any:
    return create(batches)


def line(name: str, provoke: Callable[[], Any]) -> dict[str, Any]:
    """What a row brings."""
    try:
        response = provoke()
    except grpc.RpcError as error:
        brought = details(error)
        info = brought.pop("ErrorInfo", None)
        found: dict[str, Any] = {"row": name, "code": error.code().name, "message": error.details()}
        if info:
            found |= {"reason": info.reason, "domain": info.domain, "metadata": dict(info.metadata)}
        if (seconds := retry_seconds(error)) is not None:
            del brought["RetryInfo"]
            found["retry_seconds"] = seconds
        found |= {kind: json_format.MessageToDict(detail) for kind, detail in brought.items()}
        packed = [value for key, value in error.trailing_metadata() or () if key == "grpc-status-details-bin"]
        return found | {"details_bytes": sum(map(len, packed))}
    return {"row": name, "code": "OK", "response": json_format.MessageToDict(response)}


def stopping(channel: grpc.Channel) -> Iterator[dict[str, Any]]:
    """The statuses by which a server that stops ends its open streams."""
    batches, ended = BatchServiceStub(channel), threading.Event()
    name = create(batches).name
    streams = {
        "stopping-results": batches.StreamResults(StreamResultsRequest(name=name, follow=True)),
        "stopping-watch": batches.WatchBatch(WatchBatchRequest(name=name)),
        "stopping-solve": SolverServiceStub(channel).Solve(unfinished(ended)),
    }
    for stream in streams.values():
        stream.initial_metadata()  # the server has it
    print("open", flush=True)
    for name, stream in streams.items():
        yield line(name, lambda stream=stream: list(stream)[-1])
    ended.set()


def unfinished(ended: threading.Event) -> Iterator[SolveRequest]:
    """The requests of a Solve call that has more to send."""
    yield SolveRequest(config=SolveConfig())
    ended.wait()


def main() -> int:
    """Reads the command line and does the rows that it names."""
    parser = argparse.ArgumentParser(description="Provokes the statuses of sudoku-batch and prints what each brings, one line of JSON a row.")
    parser.add_argument("--server", default="127.0.0.1:50051", help="HOST:PORT or http://HOST:PORT (default: %(default)s)")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join([*ROWS, *EXTRA_ROWS])}, stopping (default: those before {next(iter(EXTRA_ROWS))})")
    arguments = parser.parse_args()
    every = ROWS | EXTRA_ROWS
    if unknown := set(arguments.rows) - every.keys() - {"stopping"}:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    with grpc.insecure_channel(arguments.server.removeprefix("http://").rstrip("/")) as channel:
        for name in arguments.rows or ROWS:
            found = stopping(channel) if name == "stopping" else [line(name, lambda name=name: every[name](BatchServiceStub(channel)))]
            for one in found:
                print(json.dumps(one, ensure_ascii=False), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
