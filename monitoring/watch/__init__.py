"""The watch: a long background task that probes the hosts of one shard every few seconds.

Rows decide, the queue only rings: whoever holds the shard's lease watches, and writes nothing
once the lease is lost.
"""

from monitoring.watch.loop import watch

__all__ = ["watch"]
