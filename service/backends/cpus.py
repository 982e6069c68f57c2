"""How many CPUs this process may use: the least of the machine, the affinity mask and the cgroup's quota.

ONNX Runtime sizes its pool to the host and knows no quota; in a container with two of a host's 64 cores that means 64
threads on two cores. So the number is worked out here and given to it.
"""

from __future__ import annotations

import math
import os
from pathlib import Path


def available_cpus(root: Path = Path("/"), affinity: int | None = None) -> int:
    """CPUs that this process may keep busy, at least 1.

    Args:
        root: where `proc` and `sys` are found (a test gives its own).
        affinity: size of the affinity mask; None asks the kernel.
    """
    allowed = affinity if affinity is not None else len(os.sched_getaffinity(0))
    quota = cgroup_quota(root)
    return max(1, allowed if quota is None else min(allowed, math.ceil(quota)))


def cgroup_quota(root: Path = Path("/")) -> float | None:
    """CPUs that the process's cgroup and all its parents allow, as a fraction; None where none sets a limit."""
    limits = [limit for limit in (*_v2_limits(root), *_v1_limits(root)) if limit is not None]
    return min(limits) if limits else None


def _v2_limits(root: Path) -> list[float | None]:
    base = root / "sys/fs/cgroup"
    return [_v2_limit(folder / "cpu.max") for folder in _with_parents(base, _own_path(root, ""))]


def _v1_limits(root: Path) -> list[float | None]:
    found: list[float | None] = []
    for mount in ("cpu", "cpu,cpuacct"):
        base = root / "sys/fs/cgroup" / mount
        found += [_v1_limit(folder) for folder in _with_parents(base, _own_path(root, "cpu"))]
    return found


def _own_path(root: Path, controller: str) -> str:
    """The process's own cgroup path for a controller ("" for version 2), "/" where it is not told."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return "/"
    for line in lines:
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if (controller == "" and names == "") or (controller and controller in names.split(",")):
            return path
    return "/"


def _with_parents(base: Path, path: str) -> list[Path]:
    """The folder of a cgroup and those of its parents, up to the mount point.

    Inside a container the path told by the kernel may lie outside the mount; then only the mount itself is there.
    """
    folder = base / path.lstrip("/")
    chain = [folder, *folder.parents]
    return [place for place in chain if place == base or base in place.parents]


def _v2_limit(file: Path) -> float | None:
    try:
        quota, period = file.read_text().split()[:2]
    except (OSError, ValueError):
        return None
    return None if quota == "max" else _ratio(quota, period)


def _v1_limit(folder: Path) -> float | None:
    try:
        quota = (folder / "cpu.cfs_quota_us").read_text()
        period = (folder / "cpu.cfs_period_us").read_text()
    except OSError:
        return None
    return _ratio(quota, period)


def _ratio(quota: str, period: str) -> float | None:
    try:
        amount, every = float(quota), float(period)
    except ValueError:
        return None
    return amount / every if amount > 0 and every > 0 else None
