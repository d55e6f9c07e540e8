# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bundle takes what this collection has written, by name, and refuses what looks like a secret."""

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._record.scrub import Scrub
from ansible_collections.railops.rdma.plugins.plugin_utils._record.bundle import bundle
from ansible_collections.railops.rdma.tests.unit.fabric_samples import EXAMPLES, example
from ansible_collections.railops.rdma.tests.unit.fabrics import plan
from ansible_collections.railops.rdma.tests.unit.machines import put


@pytest.mark.parametrize(
    "name", ["kubeconfig.yaml", "values-acme.yaml", "run.log", "notes.txt", "hosts/a/b.json", "cluster/secret.yaml"]
)
def test_what_nobody_of_us_has_written_is_not_taken(tmp_path, name):
    put(tmp_path, "fabric/plan.json", "{}")
    put(tmp_path, f"fabric/{name}", "token: abc")
    assert bundle([str(tmp_path / "fabric")], "key", []) == [["plan/plan.json", "{}"]]


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        "users: [{user: {token: hunter2secret}}]",
        'imageCredentials:\n  password: "hunter2secret"',
        "HF_TOKEN=hunter2secret",
        '"apiKey": "hunter2secret"',
        "see eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig",
        "http_proxy=http://svc:hunter2secret@proxy.example:3128",
        "client-key-data: hunter2secrethunter2secrethunter2secret",
    ],
)
@pytest.mark.parametrize("name", ["workload/nccl-hosts.env", "cluster/values.yaml", "verdict.json"])
def test_a_secrets_form_is_refused_by_place(tmp_path, name, text):
    put(tmp_path, f"fabric/{'verdict.md' if name == 'verdict.json' else 'plan.json'}", "{}")
    put(tmp_path, f"fabric/{name}", f"first\n{text}\n")
    with pytest.raises(RdmaError, match=rf"looks like a secret in 1 places.*{name}, line [23]") as failed:
        bundle([str(tmp_path / "fabric")], "key", [])
    assert "hunter2" not in str(failed.value)


def test_plan_and_verdict_do_not_share_paths(tmp_path):
    for folder, name in (("plan/f", "plan.json"), ("verify/f", "verdict.json")):
        put(tmp_path, f"{folder}/{name}", "{}")
        put(tmp_path, f"{folder}/hosts/gpu17.json", '{"host": "gpu17"}')
    rows = dict(bundle([str(tmp_path / "plan/f"), str(tmp_path / "verify/f")], "key", []))
    assert len(rows) == 4
    assert [path for path in rows if "gpu17" in path or "gpu17" in rows[path]] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_planned_is_taken_whole(tmp_path, name):
    raw, nodes = example(name)
    texts = plan(raw, nodes).files
    for path, text in texts.items():
        put(tmp_path, f"fabric/{path}", text)
    taken = [path.partition("/")[2] for path, _text in bundle([str(tmp_path / "fabric")], "key", [])]
    assert len([path for path in taken if path.startswith("hosts/")]) == len(nodes)
    own = {path for path in taken if not path.startswith("hosts/")}
    assert own == {
        path for path in texts if not path.startswith("hosts/") and not path.endswith((".html", ".gitattributes"))
    }


def test_a_folder_of_texts(tmp_path):
    put(tmp_path, "plan/a/plan.json", '{"node1": "10.1.2.3", "leaf": "su1-leaf7"}')
    put(tmp_path, "plan/a/hosts/retired9.json", "{}")
    put(tmp_path, "plan/a/key.pem", "secret")
    put(tmp_path, "plan/a/notes.json", "{}")
    rows = dict(bundle([str(tmp_path / "plan/a")], "key", ["node1"]))
    scrub = Scrub("key")
    words = {name: scrub.name(name) for name in ("node1", "su1-leaf7", "retired9")}
    text = json.dumps({words["node1"]: scrub.address("10.1.2.3"), "leaf": words["su1-leaf7"]})
    assert rows == {"plan/plan.json": text, f"plan/hosts/{words['retired9']}.json": "{}"}
