"""django-q2's cluster, after the checks that must hold before tasks run."""

from __future__ import annotations

from typing import Any

from django.core.checks import Tags
from django_q.management.commands import qcluster


class Command(qcluster.Command):
    help = "Run the cluster named by Q_CLUSTER_NAME; tensorhive_site.run_cluster starts this."

    def handle(self, *args: Any, **options: Any) -> None:
        self.check(tags=[Tags.database], databases=["default"])
        super().handle(*args, **options)
