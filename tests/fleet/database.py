"""A PostgreSQL of its own, in a directory of its own, that listens on a socket in there and nowhere else."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from processes import Process, start, wait_for
from programs import Missing
from server import SHIPPED

VERSIONS = Path("/usr/lib/postgresql")


def programs() -> Path:
    """The directory with `initdb` and `postgres`, which Debian keeps off the PATH."""
    newest = sorted(VERSIONS.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = str(newest[-1]) if newest else shutil.which("initdb")
    if found is None or shutil.which("psql") is None:
        raise Missing("PostgreSQL is not installed: `apt-get install postgresql` on Debian and Ubuntu")
    return Path(found).parent


class Database:
    """From `with` until its end."""

    def __init__(self) -> None:
        self.programs = programs()
        self.directory = Path(tempfile.mkdtemp(prefix="hookyard-db-"))
        self.process: Process | None = None

    def __enter__(self) -> Database:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        # PostgreSQL does not run as root.
        others = []
        if os.getuid() == 0:
            user = next((name for name in ("postgres", "nobody") if name in {entry.pw_name for entry in pwd.getpwall()}), "nobody")
            shutil.chown(self.directory, user)
            others = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"]
        data = self.directory / "data"
        make = [*others, str(self.programs / "initdb"), "-D", str(data), "-U", "audit", "-A", "trust"]
        make += ["-E", "UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(make, cwd="/", capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"initdb: {done.stderr.strip()}")
        command = [*others, str(self.programs / "postgres"), "-D", str(data), "-k", str(self.directory), "-c", "listen_addresses="]
        self.process = start("database", command, self.directory / "log", self.directory)
        wait_for(lambda: self._psql("select 1").returncode == 0, f"the database; see {self.directory / 'log'}")

    def __exit__(self, *_: object) -> None:
        if self.process and self.process.alive():
            self.process.send(signal.SIGINT)
            self.process.wait()
        shutil.rmtree(self.directory)

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return kept | {"PGHOST": str(self.directory), "PGUSER": "audit", "PGDATABASE": "postgres", "PYTHONDONTWRITEBYTECODE": "1"}

    def _psql(self, query: str) -> subprocess.CompletedProcess[str]:
        words = ["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", query]
        return subprocess.run(words, env=self._environment(), capture_output=True, text=True, timeout=60)

    def rows(self, query: str) -> list[list[str]]:
        done = self._psql(query)
        if done.returncode != 0:
            raise RuntimeError(f"psql: {done.stderr.strip()}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def load(self, store: Path, at_once: int) -> None:
        """Runs load.py, several times at once."""
        words = [sys.executable, str(SHIPPED / "load.py"), "--store", str(store)]
        started = [
            subprocess.Popen(words, env=self._environment(), stderr=subprocess.PIPE, text=True) for _ in range(at_once)
        ]
        for loading in started:
            errors = loading.communicate(timeout=120)[1]
            if loading.returncode != 0:
                raise RuntimeError(f"load.py: {errors.strip()}")
