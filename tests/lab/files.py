"""Writing files that other processes read at the same moment."""

import threading
from pathlib import Path


def write_atomically(path: Path, data: str | bytes) -> None:
    """Replace a file, readable for all, so that a reader sees the old text or the new one."""
    new = path.with_name(f".{path.name}.{threading.get_ident()}")
    new.write_bytes(data.encode() if isinstance(data, str) else data)
    new.chmod(0o644)
    new.replace(path)
