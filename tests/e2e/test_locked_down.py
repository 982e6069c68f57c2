"""OPS-05 without a container engine: the kernel's own means take everything away, and the service still answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pictures import drawn_circle

TOOLS = ("unshare", "setpriv", "mount")
NAMESPACES = ("unshare", "--mount", "--net", "--propagation", "private")

# In namespaces of its own: the whole file system read-only, no network but loopback, a user id that no file knows, and
# of root's rights only that of reading (checkouts and interpreters often lie where other users may not look).
LOCK_DOWN = """
set -e
mount -o remount,ro,bind /
"$1" - <<'PY'
import fcntl, socket, struct
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING))
PY
exec setpriv --reuid 12345 --regid 12345 --clear-groups --bounding-set=-all,+dac_read_search \
    --inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search "$@"
"""

SERVE_AND_ASK = """
import os, subprocess, sys, time, httpx
try:
    open("/tmp/probe", "w")
except OSError:
    pass
else:
    sys.exit("the file system can be written")
server = subprocess.Popen([sys.argv[1], "serve", "--port", "8123"])
try:
    for _ in range(600):
        assert server.poll() is None, "the server ended"
        try:
            if httpx.get("http://127.0.0.1:8123/readyz").status_code == 200:
                break
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    fields = {"question": "what color is the circle?"}
    picture = sys.stdin.buffer.read()
    print(os.getuid(), httpx.post("http://127.0.0.1:8123/answer", data=fields, files={"image": picture}).text)
finally:
    server.terminate()
    server.wait(20)
"""


def possible() -> bool:
    if os.getuid() != 0 or not all(map(shutil.which, TOOLS)):
        return False
    probe = [*NAMESPACES, "mount", "-o", "remount,ro,bind", "/"]
    return subprocess.run(probe, capture_output=True).returncode == 0


# Several workers need one folder for their metrics; this one is a memory of its own, which stays writable.
@pytest.mark.parametrize("variables", [{}, {"VQA_WORKERS": "2", "TMPDIR": "/dev/shm"}], ids=["one", "two workers"])
@pytest.mark.skipif(not possible(), reason="needs root, unshare and setpriv, and a kernel that lets them")
def test_read_only_with_no_network_as_an_unknown_user(variables: dict[str, str]) -> None:
    vqa = str(Path(sys.executable).with_name("vqa"))
    environment = {"HOME": "/nonexistent", "PATH": os.environ["PATH"]} | variables
    done = subprocess.run(
        [*NAMESPACES, "bash", "-c", LOCK_DOWN, "lock-down", sys.executable, "-c", SERVE_AND_ASK, vqa],
        input=drawn_circle(),
        capture_output=True,
        timeout=120,
        env=environment | {name: value for name, value in os.environ.items() if name.startswith("VQA_")},
        cwd="/",
    )
    assert done.returncode == 0, done.stderr.decode()
    user, _, reply = done.stdout.decode().partition(" ")
    assert user == "12345"
    assert json.loads(reply)["answer"] == "red"
