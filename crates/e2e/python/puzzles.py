"""Puzzles of a file into messages, and results of messages into lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from sudoku.v1.puzzle_pb2 import Outcome, PuzzleChunk, ResultChunk

MESSAGE_PUZZLES = 4_096  # grids in one message; the server takes up to 10,000
LINE_CHARACTERS = 200  # kept of a line: what is longer is no puzzle, and a message holds at most 5,000,000 bytes of grids
OUTCOMES = {value: name.removeprefix("OUTCOME_").lower() for name, value in Outcome.items()}
COUNTED = (Outcome.OUTCOME_UNIQUE, Outcome.OUTCOME_MULTIPLE, Outcome.OUTCOME_NO_SOLUTION)


def read_chunks(path: Path) -> list[PuzzleChunk]:
    """The puzzles of a file in messages: one a line, without blank lines and remarks. What is no puzzle is for the service to judge."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        lines = (line.strip(" \t\f\n") for line in file)
        grids = [line[:LINE_CHARACTERS] for line in lines if line and not line.startswith("#")]
    return [PuzzleChunk(grids=grids[start : start + MESSAGE_PUZZLES]) for start in range(0, len(grids), MESSAGE_PUZZLES)]


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
