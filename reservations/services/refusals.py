"""Why a reservation cannot be had or changed: each one sentence for people, and a code."""

from __future__ import annotations


class BookingError(Exception):
    """The text is one sentence and `code` says which kind."""

    def __init__(self, sentence: str, code: str) -> None:
        super().__init__(sentence)
        self.code = code


class GpuTaken(BookingError):
    """Somebody has one of the GPUs at a moment of the span."""


class RuleRefusal(BookingError):
    """A limit, the grants, or the state of a GPU says no."""


class WrongState(BookingError):
    """The reservation is over, or running, or cancelled: this cannot be done to it."""
