"""A part of a processor for each node: a control group of its own, so that few processors show what many nodes do together."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from network import Unavailable

ROOT = Path("/sys/fs/cgroup")
# The shortest that the kernel divides time into: a node that has used up its part waits no longer than this.
PERIOD_US = 10_000


@dataclass(frozen=True)
class Group:
    """Directories of one control group: one with cgroup 2, one for each controller before that."""

    directories: tuple[Path, ...]

    @classmethod
    def make(cls, name: str, share: float) -> Group:
        """One whose processes have this part of one processor together."""
        old = [ROOT / controller for controller in ("cpu", "cpuacct")]
        directories = tuple(above / name for above in (old if (old[0] / "cpu.shares").exists() else [ROOT]))
        try:
            if directories[0].parent == ROOT:
                (ROOT / "cgroup.subtree_control").write_text("+cpu")
            for directory in directories:
                directory.mkdir()
            group = cls(directories)
            group._limit(str(int(share * PERIOD_US)))
        except OSError as error:
            raise Unavailable(f"a part of a processor for each node needs root and cgroups: {error}") from error
        return group

    def _limit(self, quota: str) -> None:
        first = self.directories[0]
        if (first / "cpu.max").exists():
            (first / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        else:
            (first / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (first / "cpu.cfs_quota_us").write_text("-1" if quota == "max" else quota)

    def lift(self) -> None:
        """Processes that end need not do so slowly."""
        self._limit("max")

    def into(self) -> list[str]:
        """What a command begins with that runs in the group."""
        files = " ".join(shlex.quote(str(directory / "cgroup.procs")) for directory in self.directories)
        return ["sh", "-c", f'for file in {files}; do echo $$ >"$file" || exit; done; exec "$@"', "sh"]

    def cpu_seconds(self) -> float:
        """What its processes have used, also those that have ended."""
        last = self.directories[-1]
        if (last / "cpuacct.usage").exists():
            return int((last / "cpuacct.usage").read_text()) / 1e9
        lines = (last / "cpu.stat").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("usage_usec")) / 1e6

    def remove(self) -> None:
        for directory in self.directories:
            directory.rmdir()
