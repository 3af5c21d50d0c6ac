"""Deadlines, and the one thread that keeps them: it cuts what still runs when its time is over."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Deadline:
    """A moment on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.began = time.monotonic()
        self.ends = self.began + seconds

    def left(self, at_most: float = 3600.0) -> float:
        """Seconds left, at least a moment, so that it can be given as a time-out."""
        return min(max(self.ends - time.monotonic(), 0.05), at_most)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.ends

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began


@dataclass(order=True, slots=True)
class _Alarm:
    at: float
    number: int
    act: Callable[[], object] | None = field(compare=False)


class _Watchman:
    """Acts when an alarm's time comes. A timer thread for each question would cost more CPU than
    the question itself.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: a forked child has neither the thread nor any connection of its own."""
        self._condition = threading.Condition()
        self._alarms: list[_Alarm] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def set(self, at: float, act: Callable[[], object]) -> _Alarm:
        alarm = _Alarm(at, next(self._numbers), act)
        with self._condition:
            heapq.heappush(self._alarms, alarm)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="ssh-limits", daemon=True)
                self._thread.start()
            elif self._alarms[0] is alarm:
                self._condition.notify()
        return alarm

    def cancel(self, alarm: _Alarm) -> None:
        """After this the alarm does not act, not even late."""
        with self._condition:
            alarm.act = None

    def _watch(self) -> None:
        with self._condition:
            while True:
                if not self._alarms:
                    self._condition.wait()
                elif (rest := self._alarms[0].at - time.monotonic()) > 0:
                    self._condition.wait(rest)
                elif act := heapq.heappop(self._alarms).act:
                    act()


_watchman = _Watchman()
os.register_at_fork(after_in_child=_watchman.forget)


@contextmanager
def limited(cut: Callable[[], object], seconds: float) -> Iterator[None]:
    """Call `cut`, from another thread, if the block is not left after that many seconds.

    `cut` must be quick and must not raise.
    """
    alarm = _watchman.set(time.monotonic() + seconds, cut)
    try:
        yield
    finally:
        _watchman.cancel(alarm)
