"""How many puzzles a second one Python client gets solved on one call: SolverService.Solve, through a durable batch like every other.

    PYTHONPATH=target/python/stubs target/python/bin/python crates/e2e/python/solve_rate.py --puzzles 2000000 puzzles.txt

It sends while it reads, checks that every index comes once, and prints one object of JSON. The time is that of the whole call, from its first message,
which is made then like all others, to the batch as it ended. Exit code 1 when anything is missing, comes twice or is not answered.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import grpc
from refusals import describe
from sudoku.v1.batch_service_pb2 import Batch
from sudoku.v1.puzzle_pb2 import PuzzleChunk, SolveOptions
from sudoku.v1.solver_service_pb2 import SolveConfig, SolveRequest
from sudoku.v1.solver_service_pb2_grpc import SolverServiceStub

EXAMPLE = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
DIFFERENT = 10_000  # puzzles that are made where there is no file
CELLS = 81


def puzzles_of(path: Path | None, count: int) -> list[str]:
    """So many puzzles: those of a file, again and again, or the example with its digits exchanged."""
    if path:
        lines = [line for line in path.read_text(encoding="ascii").split("\n") if line and not line.startswith("#")]
    else:
        chance = random.Random(1)
        lines = [EXAMPLE.translate(str.maketrans("123456789", "".join(chance.sample("123456789", 9)))) for _ in range(DIFFERENT)]
    if not lines:
        raise ValueError(f"there is no puzzle in {path}")
    return list(islice(cycle(lines), count))


def requests(puzzles: list[str], arguments: argparse.Namespace) -> Iterator[SolveRequest]:
    """The messages of the call, each made when it is its turn."""
    options = SolveOptions(placement_limit=arguments.placement_limit)
    yield SolveRequest(config=SolveConfig(options=options, ordered=arguments.ordered, packed_results=arguments.packed))
    for start in range(0, len(puzzles), arguments.message):
        grids = puzzles[start : start + arguments.message]
        packed = {"packed_grids": "".join(grids).encode()} if arguments.packed else {"grids": grids}
        yield SolveRequest(chunk=PuzzleChunk(**packed))


class Seen:
    """Which indexes have come."""

    def __init__(self, count: int) -> None:
        self.come = bytearray(count)

    def take(self, results: Any) -> None:
        """Takes the results of one message: each index for the first time, each with its columns filled."""
        count = len(results.outcomes)
        run = slice(results.start_index, results.start_index + count)
        if run.stop > len(self.come) or any(self.come[run]):
            raise ValueError(f"results {run.start} to {run.stop} come twice, or were not asked for")
        if max(len(results.solutions), len(results.packed_solutions) // CELLS) != count:
            raise ValueError(f"solutions are missing from {run.start} on")
        self.come[run] = b"\1" * count

    def missing(self) -> int:
        """How many have not come."""
        return self.come.count(0)


def measure(channel: grpc.Channel, arguments: argparse.Namespace) -> dict[str, Any]:
    """One call, from its first message to its last."""
    puzzles, seen, end = puzzles_of(arguments.file, arguments.puzzles), Seen(arguments.puzzles), Batch()
    grpc.channel_ready_future(channel).result(timeout=10)
    begun, cpu = time.monotonic(), time.process_time()
    for message in SolverServiceStub(channel).Solve(requests(puzzles, arguments)):
        if message.HasField("results"):
            seen.take(message.results)
        elif message.HasField("batch"):
            end = message.batch
    seconds, cpu = time.monotonic() - begun, time.process_time() - cpu
    if seen.missing() or end.state != Batch.STATE_SUCCEEDED or end.progress.done_count != len(puzzles):
        raise ValueError(f"{seen.missing()} results have not come; the batch: {end}")
    return {
        "puzzles": len(puzzles),
        "puzzles_per_message": arguments.message,
        "packed": arguments.packed,
        "ordered": arguments.ordered,
        "unique": end.progress.unique_count,
        "seconds": round(seconds, 3),
        "puzzles_per_second": round(len(puzzles) / seconds),
        "client_cpu_seconds": round(cpu, 3),
    }


def main() -> int:
    """Reads the command line and prints the figures."""
    parser = argparse.ArgumentParser(description="Measures SolverService.Solve from Python, and prints one object of JSON.")
    parser.add_argument("file", nargs="?", type=Path, help="puzzles, one a line, each of 81 characters; without it an example with its digits exchanged")
    parser.add_argument("--server", default="127.0.0.1:50051", help="HOST:PORT or http://HOST:PORT (default: %(default)s)")
    parser.add_argument("--puzzles", type=int, default=1_000_000, help="how many to send; those of the file come again (default: %(default)s)")
    parser.add_argument("--message", type=int, default=512, help="puzzles in one message (default: %(default)s)")
    parser.add_argument("--placement-limit", type=int, default=0, help="placements to count at the most; 0 counts none (default: %(default)s)")
    parser.add_argument("--packed", action="store_true", help="grids and solutions end to end as bytes, not as strings")
    parser.add_argument("--ordered", action="store_true", help="results in the order sent, not as they finish")
    arguments = parser.parse_args()
    try:
        with grpc.insecure_channel(arguments.server.removeprefix("http://").rstrip("/")) as channel:
            print(json.dumps(measure(channel, arguments)))
            return 0
    except grpc.RpcError as error:
        message = describe(error)
    except grpc.FutureTimeoutError:
        message = f"no server answers at {arguments.server}"
    except (OSError, ValueError) as error:
        message = str(error)
    print(f"error: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
