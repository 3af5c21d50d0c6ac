"""What people change about themselves, and grants with their weekly hours."""

from __future__ import annotations

import re
import zoneinfo
from functools import cache
from typing import Any

from django import forms

from accounts.models import Grant, GrantWindow, minute_label
from accounts.services import grants

_REGIONS = (
    *("Africa/", "America/", "Antarctica/", "Arctic/", "Asia/"),
    *("Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/"),
)


@cache
def time_zones() -> list[tuple[str, str]]:
    """The zones a person would look for: `Region/City` and UTC, without the old aliases."""
    cities = [name for name in zoneinfo.available_timezones() if name.startswith(_REGIONS)]
    return [(name, name.replace("_", " ")) for name in ["UTC", *sorted(cities)]]


class AccountForm(forms.Form):
    email = forms.EmailField(
        label="E-mail", required=False, help_text="Warnings and notices go there."
    )
    time_zone = forms.ChoiceField(
        label="Time zone", choices=time_zones, help_text="Pages show times in this zone."
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._keep_unusual_zone()

    def _keep_unusual_zone(self) -> None:
        """A zone set elsewhere, such as `CET`, stays a choice and is not lost on saving."""
        current = self.initial.get("time_zone")
        field = self.fields["time_zone"]
        if current and current not in dict(time_zones()):
            field.choices = [(current, current), *time_zones()]  # type: ignore[attr-defined]


class GrantForm(forms.ModelForm):
    """A grant in the console."""

    class Meta:
        model = Grant
        fields = [
            *("name", "everyone", "users", "groups"),
            *("everything", "hosts", "gpus", "starts_at", "ends_at"),
        ]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if {"users", "groups", "gpus", "hosts"} <= values.keys():
            grants.refuse_empty(values)
        return values


class HourField(forms.CharField):
    """HH:MM from 00:00 to 24:00; minutes since midnight inside."""

    widget = forms.TextInput(attrs={"size": 5, "placeholder": "HH:MM"})
    _FORM = re.compile(r"(?:([01]?\d|2[0-3]):([0-5]\d)|24:00)\Z", re.ASCII)

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if text in self.empty_values:
            return None
        match = self._FORM.match(str(text))
        if match is None:
            raise forms.ValidationError("Give the hour as HH:MM, from 00:00 to 24:00.")
        hours, minutes = match.groups()
        return 1440 if hours is None else int(hours) * 60 + int(minutes)

    def prepare_value(self, value: Any) -> Any:
        return minute_label(value) if isinstance(value, int) else value


class GrantWindowForm(forms.ModelForm):
    """Weekly hours of a grant, with days to tick instead of a bit mask."""

    days = forms.TypedMultipleChoiceField(
        choices=list(enumerate(grants.WEEKDAYS)),
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
    )
    begins = HourField(label="from")
    ends = HourField(label="to", help_text="24:00 is midnight; before the start: the next day.")

    class Meta:
        model = GrantWindow
        fields = ["time_zone"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        window = self.instance
        if window.pk is not None:
            self.initial["days"] = [day for day in range(7) if window.weekdays & 1 << day]
            self.initial["begins"] = window.starts_minute
            self.initial["ends"] = window.ends_minute

    def clean(self) -> dict[str, Any]:
        """Fill the row before the model's own rules judge it."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if {"days", "begins", "ends"} <= values.keys():
            self.instance.weekdays = sum(1 << day for day in values["days"])
            self.instance.starts_minute = values["begins"]
            self.instance.ends_minute = values["ends"] or 1440
            if self.instance.starts_minute == self.instance.ends_minute:
                raise forms.ValidationError("Hours must have a length; 00:00 to 24:00 is a day.")
            if self.instance.starts_minute == 1440:
                raise forms.ValidationError({"begins": "Begin at 00:00 of the next day instead."})
        return values
