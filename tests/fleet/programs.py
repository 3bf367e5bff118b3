"""Programs of this machine that an example needs, and how to get those that are missing."""

from __future__ import annotations

import shutil


class Missing(Exception):
    """A program is not on this machine."""


def find(name: str, package: str, what: str, path: str = "/usr/sbin:/usr/local/sbin:/sbin") -> str:
    found = shutil.which(name) or shutil.which(name, path=path)
    if found is None:
        raise Missing(f"{what} is not installed: `apt-get install {package}` on Debian and Ubuntu")
    return found
