"""What a command writes down of what it has started, for those that come after it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path


def write(file: Path, record: dict) -> None:
    new = file.with_name(f"{file.name}.new")
    new.write_text(json.dumps(record, indent=1))
    new.rename(file)


def read(file: Path) -> dict:
    """Of a directory of this user only: the record names processes that are ended."""
    found = file.parent.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077 or not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{file.parent} is not a directory of this user alone")
    return json.loads(file.read_text())
