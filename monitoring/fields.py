"""Fields of the API that take JSON at its word: a number is no text, "true" is no boolean."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.core.exceptions import ValidationError as ModelValidationError
from django.utils.dateparse import parse_datetime
from rest_framework import serializers

from monitoring import naming

_FIRST_YEAR, _LAST_YEAR = 2000, 2200


class TextField(serializers.CharField):
    """Text only, in NFC, without invisible characters; `lines` allows several of them."""

    def __init__(self, *, lines: bool = False, **options: Any) -> None:
        self.may_have_lines = lines
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        text = naming.normalized(super().to_internal_value(data))
        check = naming.validate_plain_lines if self.may_have_lines else naming.validate_plain_text
        try:
            check(text)
        except ModelValidationError as error:
            raise serializers.ValidationError(error.messages, code="unsafe_text") from None
        return text


class NamedField(serializers.SlugRelatedField):
    """A row by its name; anything but text names none."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or "\0" in data:
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictBooleanField(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=naming.printable(str(data), 40))
        return data


class StrictIntegerField(serializers.IntegerField):
    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


class MomentField(serializers.DateTimeField):
    """A moment with its offset from UTC; without one it would be a guess, so it is refused."""

    default_error_messages = {
        "naive": "Give the moment with its offset, for example 2026-12-01T14:00:00Z.",
        "out_of_range": f"Give a moment in the years {_FIRST_YEAR} to {_LAST_YEAR}.",
    }

    def to_internal_value(self, value: Any) -> dt.datetime:
        if isinstance(value, str) and _is_naive(value):
            self.fail("naive")
        moment = super().to_internal_value(value)
        if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
            self.fail("out_of_range")
        return moment


def _is_naive(text: str) -> bool:
    try:
        parsed = parse_datetime(text)
    except ValueError:  # no such day or hour: the field says so
        return False
    return parsed is not None and parsed.tzinfo is None
