"""When a call is made again, after how long, and when a client gives up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import grpc
from refusals import describe, reason, retry_seconds

PAUSES = (0.2, 0.5, 1.0, 2.0, *[5.0] * 12)  # seconds between tries; after as many failures in a row the client gives up
RETRY_SECONDS_MAX = 60.0  # the service may ask for a longer pause than ours, up to this
FULL = ("QUEUE_FULL", "DATABASE_FULL")  # no failures: there will be room, however long that takes


class NotFinished(Exception):
    """The batch was begun, and its end has not been seen."""


class Retries:
    """The failures in a row of one client, and the time that it has."""

    def __init__(self, seconds: float | None, tell: Callable[[str], None]) -> None:
        self.end = None if seconds is None else time.monotonic() + seconds
        self.tell, self.failures = tell, 0

    def left(self) -> float | None:
        """Seconds that the next call may take; None: as many as it likes. The service is told of them and ends the call by itself."""
        return None if self.end is None else max(self.end - time.monotonic(), 0.0)

    def call(self, call: Callable[..., Any], request: Any) -> Any:
        """One call, as often as it takes."""
        while True:
            try:
                response = call(request, timeout=self.left())
                self.failures = 0
                return response
            except grpc.RpcError as error:
                self.wait(error)

    def wait(self, error: grpc.RpcError | None) -> None:
        """Waits before the next try: longer after each failure in a row, and as long as the service asks for. No error: a stream was cut."""
        if error and error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            raise NotFinished("the time given by --deadline is over")
        broken = (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED)
        # Without the service's reason these three are the transport's: a connection that broke.
        full = error is not None and reason(error) in FULL
        passing = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED)
        if error and not full and error.code() not in passing and (error.code() not in broken or reason(error)):
            raise error
        failure = describe(error) if error else "the stream of results was cut"
        if self.failures == len(PAUSES):
            raise NotFinished(failure)
        pause = 0.0 if full else PAUSES[self.failures] * random.uniform(0.5, 1.0)
        asked = retry_seconds(error) if error else None
        if asked is not None or full:
            # Not at once with all others who were told the same.
            pause = max(pause, min(asked or 2.0, RETRY_SECONDS_MAX) * random.uniform(1.0, 1.25))
        if self.failures == 0:
            self.tell(f"{failure}; trying again in {pause:.2f} s")
        self.failures = max(self.failures, 1) if full else self.failures + 1
        time.sleep(pause if self.end is None else min(pause, self.left()))
