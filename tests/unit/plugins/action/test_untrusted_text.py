# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host says is no template and no escape, whichever way it comes to a task, with every ansible-core."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils._validation import shown
from ansible_collections.railops.rdma.plugins.plugin_utils._localhost import JSON_STRING, _spelled
from ansible_collections.railops.rdma.tests.unit.machines import put

CHECKOUT = Path(__file__).resolve().parents[4]
SITE = CHECKOUT / "tests/site"
PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - name: Try
      block:
        - name: Ask
          railops.rdma.rdma_info:
          register: answered
          MORE
      rescue:
        - name: Keep why
          ansible.builtin.set_fact:
            reported: "{{ ansible_failed_result.msg | default('') }}"
        - name: Say why
          ansible.builtin.debug:
            msg: "{{ reported }} {{ ansible_failed_result }}"
    - name: Say what came
      ansible.builtin.debug:
        msg: "{{ answered }} {{ hostvars[inventory_hostname].answered.msg | default('') }}"
    - name: The end
      ansible.builtin.debug:
        msg: all was said
"""
ODDS = ("\x1b[2J", "\x1b]0;gone\x07", "\x9b31m", "\u202e", "\b", "\x7f", "\U000e0041", "\ud800")


class Run:
    """A play over one host, whose Python and whose ssh are an attacker's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.canary = folder / "ran"
        self.template = f"{{{{ lookup('pipe', 'touch {self.canary}') }}}}"
        program = (SITE / "fake_host.py").read_text(encoding="utf-8")
        put(folder, "node1", f"#!{sys.executable}\n{program}")
        put(folder, "ssh", f"#!/bin/sh\ncat >&2 <<'END'\n{self.template}\nEND\nexit 255\n")
        for name in ("node1", "ssh"):
            (folder / name).chmod(0o755)

    def play(self, answer: dict[str, object], more: str, *words: str, connection: str = "local") -> str:
        """Return what was printed."""
        ways = {"connection": connection, "python_interpreter": str(self.folder / "node1")}
        ways |= {"ssh_executable": str(self.folder / "ssh"), "host": "192.0.2.1"}
        hosts = {"node1": {f"ansible_{name}": value for name, value in ways.items()}}
        put(self.folder, "hosts.json", json.dumps({"all": {"hosts": hosts}}))
        put(self.folder, "answers.json", json.dumps({"node1": {"*": answer}}))
        put(self.folder, "play.yml", PLAY.replace("MORE", more))
        argv = ["ansible-playbook", "-i", "hosts.json", "play.yml", *words]
        env = {**os.environ, "ANSIBLE_NOCOLOR": "true", "HOME": str(self.folder)}
        done = subprocess.run(
            argv, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300
        )
        return (done.stdout + done.stderr).decode(errors="surrogateescape")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@pytest.mark.parametrize(
    ("more", "connection"),
    [
        pytest.param("", "local", id="a-rescue-reads-why-it-failed"),
        pytest.param("ignore_errors: true", "local", id="a-failure-that-is-kept"),
        pytest.param("failed_when: false", "local", id="a-failure-that-is-none"),
        pytest.param("ignore_unreachable: true", "ssh", id="what-ssh-showed-before-it-lost-the-host"),
    ],
)
def test_host_answer_is_not_a_template(run: Run, more: str, connection: str) -> None:
    answer = {"failed": True, "fix": "x", "msg": run.template, "notes": [run.template], "exception": run.template}
    output = run.play(answer, more, connection=connection)
    assert "touch" in output, output
    assert "all was said" in output, output
    assert not run.canary.exists()


def test_escapes_in_answers_are_replaced(run: Run) -> None:
    text = "".join(ODDS)
    diff = {"before": f"a\n{text}b\n", "after": f"{text}c\n", "before_header": text, "after_header": text}
    answer = {
        "changed": True,
        "msg": text,
        "warnings": [f"first {text}"],
        "deprecations": [{"msg": f"second {text}", "version": "9.9", "collection_name": "railops.rdma"}],
        "diff": [diff, {"prepared": f"third {text}"}],
        "problems": [{"place": "host", "problem": f"fourth {text}", "fix": text}],
        "add_host": {"host_name": f"fifth {text}"},
        "add_group": f"sixth {text}",
        f"_ansible_{text}": f"seventh {text}",
        "results": f"eighth {text}",
        "ansible_facts": {f"x{text}": text},
    }
    output = run.play(answer, "", "--diff", "--check")
    assert [name for name in ("first", "third", "fourth") if name not in output] == [], output
    assert [char for char in output if unicodedata.category(char)[0] == "C" and char != "\n"] == []
    assert "\\x1b[2J" in output


def test_escapes_outside_answers_are_replaced(run: Run) -> None:
    program = run.folder / "node1"
    answer = """printf 'a \\033[2J\\n{"changed": false}\\nb \\033[2J\\233\\n'"""
    program.write_text(f"#!/bin/sh\n{answer}\nprintf '\\033[2J' >&2\n", encoding="utf-8")
    output = run.play({}, "")
    assert "junk after the JSON data" in output, output
    program.write_text("#!/bin/sh\nprintf 'a \\033[2J'\nprintf 'Traceback \\033[2J' >&2\nexit 1\n")
    output += run.play({}, "")
    assert [char for char in output if unicodedata.category(char)[0] == "C" and char != "\n"] == []


def test_an_answer_is_measured_before_it_is_cleaned(run: Run) -> None:
    program = run.folder / "node1"
    program.write_text(
        f"#!{sys.executable}\nprint('{{\"msg\": \"' + 'a\\x01' * 5_000_000 + '\"}}')\n", encoding="utf-8"
    )
    output = run.play({}, "")
    assert "has 10,000,012 characters; the limit is 8,000,000." in output, output[:2000]
    assert "x01" not in output


# --- the letters of an answer -----------------------------------------------------------------------------------------

LETTERS = st.one_of(
    st.sampled_from([*ODDS, "\n", "\t", "\r", "\r\n", "\\", '"', "/", "\\u001b", "u001b", "ä", "\U0001f600", "\ud83d"]),
    st.characters(exclude_characters="\0"),
)
TEXTS = st.lists(LETTERS, max_size=40).map("".join)
VALUES = st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))


def decoded(value: object) -> object:
    if isinstance(value, dict):
        return {decoded(key): decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(decoded, value))
    parts = re.split(r"(\r\n|[\n\t])", str(value))
    return "".join(part if part in ("\r\n", "\n", "\t") else shown(part) for part in parts)


@given(VALUES, st.booleans())
def test_an_answer_is_itself_but_for_what_is_shown_by_its_number(value: object, plain: bool) -> None:
    # Two halves of a letter that were none come together in JSON.
    value = json.loads(json.dumps(value))
    text = json.dumps(value, ensure_ascii=plain)
    made = JSON_STRING.sub(_spelled, text)
    assert json.loads(made) == decoded(value)
    assert all(char.isprintable() or char in "\n\t" or unicodedata.category(char) == "Zs" for char in made)


@pytest.mark.parametrize("part", ["A", "\\n", "\\u001b", "\x1b", "\\ud83d\\ude00", "\\u00e4\\ud83d\\ude00"])
def test_long_runs_are_read_as_short_ones_are(part: str) -> None:
    text = part * 100_000
    assert json.loads(f'"{JSON_STRING.sub(_spelled, text)}"') == decoded(json.loads(f'"{text}"', strict=False))
