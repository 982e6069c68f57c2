"""Threads from the cgroup's limit, on file trees as the kernel lays them (ORT-01)."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.backends.cpus import available_cpus, cgroup_quota


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_version_2_quota(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/\n")
    write(tmp_path, "sys/fs/cgroup/cpu.max", "200000 100000\n")
    assert cgroup_quota(tmp_path) == 2.0
    assert available_cpus(tmp_path, affinity=64) == 2


def test_version_2_takes_the_least_of_all_parents(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/kubepods/pod1/app\n")
    write(tmp_path, "sys/fs/cgroup/kubepods/pod1/app/cpu.max", "max 100000\n")
    write(tmp_path, "sys/fs/cgroup/kubepods/pod1/cpu.max", "150000 100000\n")
    write(tmp_path, "sys/fs/cgroup/kubepods/cpu.max", "max 100000\n")
    assert cgroup_quota(tmp_path) == 1.5
    assert available_cpus(tmp_path, affinity=12) == 2, "a half CPU still runs a second thread half the time"


def test_version_2_inside_a_container_whose_path_is_not_mounted(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/../../system.slice/docker-1.scope\n")
    write(tmp_path, "sys/fs/cgroup/cpu.max", "400000 100000\n")
    assert available_cpus(tmp_path, affinity=32) == 4


@pytest.mark.parametrize("mount", ["cpu", "cpu,cpuacct"])
def test_version_1_quota(tmp_path: Path, mount: str) -> None:
    write(tmp_path, "proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n")
    write(tmp_path, f"sys/fs/cgroup/{mount}/docker/abc/cpu.cfs_quota_us", "300000\n")
    write(tmp_path, f"sys/fs/cgroup/{mount}/docker/abc/cpu.cfs_period_us", "100000\n")
    assert available_cpus(tmp_path, affinity=48) == 3


def test_version_1_without_a_quota(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "4:cpu:/\n")
    write(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    write(tmp_path, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert cgroup_quota(tmp_path) is None
    assert available_cpus(tmp_path, affinity=7) == 7


def test_affinity_is_a_limit_too(tmp_path: Path) -> None:
    write(tmp_path, "sys/fs/cgroup/cpu.max", "800000 100000\n")
    assert available_cpus(tmp_path, affinity=3) == 3


@pytest.mark.parametrize("text", ["", "garbage", "max", "0 100000", "100000 0"])
def test_unreadable_limits_are_no_limits(tmp_path: Path, text: str) -> None:
    write(tmp_path, "sys/fs/cgroup/cpu.max", text)
    assert available_cpus(tmp_path, affinity=5) == 5


def test_a_small_quota_still_gives_one(tmp_path: Path) -> None:
    write(tmp_path, "sys/fs/cgroup/cpu.max", "10000 100000\n")
    assert available_cpus(tmp_path, affinity=8) == 1
