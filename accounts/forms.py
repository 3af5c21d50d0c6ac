"""What people change about themselves."""

from __future__ import annotations

import zoneinfo
from functools import cache

from django import forms

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
