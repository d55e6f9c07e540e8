# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stranger's machine: a pristine system with a plain clone of this checkout, and what is typed there.

    bare.py [--suite NAME] [--user] [WORDS ...]    run a command there, e.g. make demo; without one, a shell

It sees nothing of this machine but its network, its package sources and their downloads. The clone is HEAD with what
git would commit (`git diff HEAD`); a new file counts once it is added. Everything is gone afterwards.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

import env
import progress
import roots

PLACE = "rdma"
USER, USER_HOME = 1000, "/home/stranger"


class Ran(t.NamedTuple):
    """How a command ended: exit code, all that it printed, seconds in all, and the longest silence in seconds."""

    code: int
    output: str
    seconds: float
    silence: float


class Machine:
    """A pristine system in a folder of its own while it is entered.

    :param suite: one of roots.SUITES.
    """

    def __init__(self, suite: str = "bookworm") -> None:
        self.suite = suite
        self.root = Path(tempfile.mkdtemp(prefix=f"stranger-{os.getpid()}-", dir=env.cache()))

    def __enter__(self) -> Machine:
        for old in env.cache().glob("stranger-*"):
            if not Path("/proc", old.name.split("-")[1]).exists():
                shutil.rmtree(old, ignore_errors=True)
        roots.copied(roots.pristine(self.suite), self.root)
        add_user = ["useradd", "--root", str(self.root), "--uid", str(USER), "--create-home", "--home-dir", USER_HOME]
        subprocess.run([*add_user, "--shell", "/bin/bash", "stranger"], check=True, capture_output=True)
        homes = ("/root", USER_HOME)
        self._environ = roots.take_sources(self.root, *homes)
        for home in homes:
            self._clone(home)
        self._binds = (*roots.folders(self.root, self._environ, *homes), *self._downloads())
        subprocess.run(["chown", "-R", f"{USER}:{USER}", str(self._inside(USER_HOME))], check=True)
        return self

    def __exit__(self, *_exc: object) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def _inside(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def _downloads(self) -> t.Iterator[tuple[str, str, bool]]:
        """Bind what was downloaded before: packages for apt, wheels for pip (which uses no cache of another user)."""
        debs = str(roots.archives(self.suite))
        yield debs, "/var/cache/apt/archives", True
        for number, home in ((0, "/root"), (USER, USER_HOME)):
            wheels = env.cache() / f"wheels-{number}"
            wheels.mkdir(exist_ok=True)
            os.chown(wheels, number, number)
            yield str(wheels), f"{home}/.cache/pip", True
            self._inside(f"{home}/.cache/railops-rdma").mkdir(parents=True)
            self._inside(f"{home}/.cache/pip").mkdir()
        # The guests' image is made of the same packages.
        yield str(roots.archives("bookworm")), "/root/.cache/railops-rdma/debs", True

    def _clone(self, home: str) -> None:
        target = self._inside(f"{home}/{PLACE}")
        git = ["git", "-C", str(env.CHECKOUT)]
        subprocess.run([*git, "clone", "-q", "--no-hardlinks", ".", str(target)], check=True)
        changes = subprocess.run([*git, "diff", "--binary", "HEAD"], check=True, capture_output=True).stdout
        if changes:
            subprocess.run(["git", "-C", str(target), "apply"], input=changes, check=True)

    def clone(self, *, user: bool = False) -> Path:
        """Return the folder of the clone, as this machine sees it."""
        return self._inside(f"{USER_HOME if user else '/root'}/{PLACE}")

    def command(self, words: t.Sequence[str], *, user: bool = False, **environ: str) -> list[str]:
        """Return the command that runs another one in the clone."""
        home = USER_HOME if user else "/root"
        room = roots.Room(
            root=str(self.root),
            binds=self._binds,
            environ={**self._environ, "HOME": home, "TERM": os.environ.get("TERM", "dumb"), **environ},
            user=USER if user else 0,
            folder=f"{home}/{PLACE}",
        )
        return roots.entering(room, words)

    def run(self, words: t.Sequence[str], *, user: bool = False, timeout: float = 3600, **environ: str) -> Ran:
        """Run a command in the clone to its end.

        :raises TimeoutError: it did not end in time (seconds).
        """
        started = heard = time.monotonic()
        output, silence = b"", 0.0
        with subprocess.Popen(
            self.command(words, user=user, **environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            assert process.stdout
            while chunk := os.read(process.stdout.fileno(), 65536):
                output += chunk
                silence, heard = max(silence, time.monotonic() - heard), time.monotonic()
                if heard - started > timeout:
                    process.kill()
                    raise TimeoutError(f"{words} did not end within {timeout:.0f} s: {output[-2000:].decode()}")
        return Ran(process.returncode, output.decode(errors="replace"), heard - started, silence)


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--suite", choices=roots.SUITES, default="bookworm")
    out.add_argument("--user", action="store_true", help="as a user without root")
    out.add_argument("words", nargs=argparse.REMAINDER)
    return out


def main() -> None:
    """Run a command on a stranger's machine."""
    args = parser().parse_args()
    if os.geteuid():
        sys.exit("A pristine system needs root: it has mounts and processes of its own.")
    given = {name: os.environ[name] for name in os.environ if name.startswith("RAILOPS_")}
    env.stream = sys.stdout
    env.trust_checkout()
    try:
        with Machine(args.suite) as machine:
            command = machine.command(args.words or ["bash"], user=args.user, **given)
            sys.exit(subprocess.run(command, check=False).returncode)
    except progress.Failure as exc:
        sys.exit(str(exc))


if __name__ == "__main__":
    main()
