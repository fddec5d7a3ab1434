"""How far a run is: on a terminal a bar with rate, time to go and counts; elsewhere nothing but one plain line at the end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable
from types import TracebackType

from puzzles import OUTCOMES
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class Numbers(ProgressColumn):
    """How many of how many, and how many a second."""

    def render(self, task: Task) -> Text:
        # Of the last seconds; in the first moments, and after a quick end, there is but the mean.
        rate = task.speed or task.completed / max(task.elapsed or 0.0, 0.001)
        return Text(f"{task.completed:,.0f}/{task.total:,.0f}  {rate:,.0f}/s")


class Meter:
    """Counts what is sent and what comes back, and shows it on stderr."""

    def __init__(self, total: int) -> None:
        # Where results are printed on the same terminal, they are the progress.
        self.is_shown = sys.stderr.isatty() and not sys.stdout.isatty()
        self.total, self.results, self.counts, self.begun = total, 0, Counter[int](), time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), Numbers(), TimeRemainingColumn(), TextColumn("{task.fields[counts]}"))
        own = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}  # results are not the terminal's
        self.bars = Progress(*columns, console=Console(stderr=True), disable=not self.is_shown, **own)
        self.sent_bar = self.bars.add_task("sent", total=total, counts="")
        self.results_bar = self.bars.add_task("results", total=total, counts="")

    def __enter__(self) -> Meter:
        self.bars.start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self.bars.stop()

    def sent(self, puzzles: int) -> None:
        """So many puzzles are at the service by now."""
        self.bars.update(self.sent_bar, completed=puzzles)

    def take(self, outcomes: Iterable[int], reached: int | None) -> None:
        """Results have come. `reached`: how far in the batch that is, where they come in order, so that what an earlier run has printed counts."""
        self.counts.update(outcomes)
        self.results = self.counts.total()
        self.bars.update(self.results_bar, completed=reached or self.results, counts=self.summary())

    def tell(self, text: str) -> None:
        """Says something else, above the bar if there is one."""
        if self.is_shown:
            self.bars.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr)

    def summary(self) -> str:
        """The counts by outcome."""
        return ", ".join(f"{OUTCOMES.get(outcome, outcome)} {count:,}" for outcome, count in sorted(self.counts.items()))

    def last_line(self) -> str:
        """What it came to."""
        seconds = time.monotonic() - self.begun
        summary = f": {self.summary()}" if self.counts else ""
        return f"{self.results:,} results of {self.total:,} puzzles in {seconds:.1f} s, {self.results / max(seconds, 0.001):,.0f}/s{summary}"
