# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The phases of acceptance on a planned fleet whose hosts are played: steps, files, the verdict, a run cut off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.railops.rdma.plugins.action import acceptance, verdict
from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok
from ansible_collections.railops.rdma.plugins.plugin_utils._accept.collect import outcome
from ansible_collections.railops.rdma.plugins.plugin_utils._accept.stages import StepGroup
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import files, merge
from ansible_collections.railops.rdma.tests.unit.actions import action_of
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts

COUNT = 5
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures/nccl"
NAMES = [f"node{number}" for number in range(1, COUNT + 1)]
NETPIPE = (
    "[1.0] [x] ucp_worker.c:1 UCX INFO ep_cfg[1]: tag(rc_verbs/rxe1:1)\n"
    "  0:    4096 bytes      5 times -->    80.0 Mbps in  40.0 usec\n"
)


class SimulatedFleet:
    """A fleet in a folder, whose tests pass."""

    def __init__(self, folder):
        self.folder = folder
        self.requests = []
        plan({**exclusive(), "plan_dir": str(folder)}, hosts(COUNT), check_mode=False)
        self.plan = json.loads((folder / "fabric/plan.json").read_text())
        self.verified(lambda host: [ok("network_link", "up", "up", rail="rail1")])

    def verified(self, checks):
        for host in NAMES:
            made = merge.host_result(host, host, self.plan["digest"], checks(host))
            files.write_json(files.result_path(str(self.folder / "verify"), host), made)
        self.act(verdict, hosts=NAMES, fail=False, show=False)

    def act(self, module, host="localhost", *, check=False, **args):
        folders = {"plan_dir": str(self.folder / "fabric"), "verify_dir": str(self.folder / "verify")}
        action = action_of(module, {**folders, **args}, check_mode=check)
        action._execute_module = lambda module_name, module_args, task_vars: self.probe(host, module_args)
        return action.run(task_vars={"inventory_hostname": host, "ansible_forks": 50})

    def probe(self, host, args):
        """Do what rdma_probe would."""
        self.requests.append((host, args))
        if args["end"] == "none":
            return {"changed": False, "ended": [], "checks": []}
        made = []
        for test in args.get("tests", []):
            assert {"rail", "interface", "address", "port", "peer", "peer_address"} <= set(test)
            if args["end"] == "server":
                made.append({**test, "status": "ok"})
            elif test.get("argv"):
                made.append({**test, "status": "ok", "code": 0, "output": NETPIPE})
            elif test["test"] == "read_lat":
                made.append({**test, "status": "ok", "latency_us": 3.0})
            else:
                made.append({**test, "status": "ok", "gbits": 100.0})
        return {"changed": False, "tests": made, "checks": []}

    def steps(self, most=100, **args):
        """Run acceptance until it ends; return how many steps it took."""
        more = self.act(acceptance, phase="begin", hosts=NAMES, **args)["more"]
        count = 0
        while more and count < most:
            for phase in ("serve", "send", "end"):
                for host in NAMES:
                    self.act(acceptance, host, phase=phase, **args)
            more = self.act(acceptance, phase="next", **args)["more"]
            count += 1
        return count

    def finish(self, **args):
        found = self.act(acceptance, phase="finish", **args)
        self.act(verdict, hosts=NAMES, keep=True, cluster=found, fail=False, show=False)
        return json.loads((self.folder / "verify/verdict.json").read_text())


@pytest.fixture
def fleet(tmp_path):
    return SimulatedFleet(tmp_path)


def bad_of(found):
    return {
        (host, check["rail"], check["id"])
        for host, entry in found["hosts"].items()
        for check in entry["checks"]
        if check["status"] == "deviation"
    }


def test_a_sound_fleet_passes(fleet):
    fleet.steps()
    assert fleet.finish()["status"] == "pass"
    reported = json.loads((fleet.folder / "verify/hosts/node1.json").read_text())["checks"]
    rows = {check["id"]: check for check in reported}
    assert rows["accept_bandwidth"]["observed"] == "100 Gb/s at worst, in 16 runs"
    assert rows["accept_collective"]["cause"] == "none is set (accept_collectives)"
    assert rows["network_link"]["status"] == "ok"


def test_a_run_that_was_cut_off_goes_on(fleet):
    assert fleet.steps(most=2) == 2
    done = len(fleet.requests)
    left = fleet.steps()
    again = SimulatedFleet(fleet.folder / "again") if (fleet.folder / "again").mkdir() is None else None
    assert left + 2 == again.steps()
    assert len(fleet.requests) > done
    # A whole one starts again.
    assert fleet.steps() == left + 2


def test_others_stages_restart(fleet):
    fleet.steps(most=2)
    assert fleet.steps(stages=["latency"]) == 3


def test_what_the_verdict_has_against_a_host_stops_it(fleet):
    fleet.verified(
        lambda host: [{"id": "network_link", "rail": "rail1", "status": "deviation" if host == "node2" else "ok"}]
    )
    assert fleet.steps() == 0
    assert ("node2", None, "accept_hosts") in bad_of(fleet.finish())
    ping = deviation("ping_neighbor", "answer", "none", "no answer", "look", rail="rail1", peers=["node2"])
    fleet.verified(lambda host: [] if host == "node2" else [ping])
    assert fleet.steps() == 0
    assert {host for host, _rail, name in bad_of(fleet.finish()) if name == "accept_hosts"} == {"node2"}
    # It is no verdict on itself.
    fleet.verified(lambda host: [ok("network_link", "up", "up", rail="rail1")])
    assert fleet.steps() > 0


def test_netpipe_by_every_rail_at_once(fleet):
    args = {
        "stages": ["collective"],
        "collectives": {"netpipe": ["mpirun", "--host", "{hosts}", "-x", "UCX_NET_DEVICES={devices}", "NPopenmpi"]},
        "devices": {f"rail{number}": f"rxe{number}" for number in range(1, 9)},
    }
    assert fleet.steps(**args) == 1
    sent = [args["tests"] for host, args in fleet.requests if args["end"] == "client" and host == "node1"]
    assert {test["slot"] for test in sent[0]} == {0}
    assert sent[0][0]["argv"] == ["mpirun", "--host", "node1,node2", "-x", "UCX_NET_DEVICES=rxe1:1", "NPopenmpi"]
    assert fleet.finish(**args)["status"] == "pass"
    args["min_gbytes"] = 1
    fleet.steps(**args)
    assert fleet.finish(**args)["status"] == "deviation"


COLLECTIVE = {
    "stages": ["collective"],
    "collectives": {"all_reduce": ["mpirun", "--host", "{hosts}", "-x", "NCCL_IB_HCA=={devices}", "all_reduce_perf"]},
    "devices": {f"rail{number}": f"mlx5_{number}" for number in range(1, 9)},
    "image": "registry.example/nccl",
    "min_gbytes": 40,
}


def test_in_pods(fleet):
    step = fleet.act(acceptance, phase="begin", hosts=NAMES, **COLLECTIVE)
    assert [group["nodes"] for group in step["groups"]] == [NAMES]
    assert step["groups"][0]["words"][2] == "{hosts}"
    assert step["groups"][0]["words"][4].startswith("NCCL_IB_HCA==mlx5_1:1,mlx5_2:1")
    assert all(fleet.act(acceptance, host, phase="send", **COLLECTIVE)["skipped"] for host in NAMES)
    came = {"code": 0, "output": (FIXTURES / "slow-2.13.txt").read_text()}
    # The whole is slow: each rail by itself is next.
    step = fleet.act(acceptance, phase="next", collective=[came], **COLLECTIVE)
    assert len(step["groups"]) == 8
    good = {"code": 0, "output": (FIXTURES / "good-2.17.txt").read_text()}
    while step["more"]:
        bad = [
            any("mlx5_3:1" in word for word in group["words"]) and "node2" in group["nodes"] for group in step["groups"]
        ]
        results = [came if slow else good for slow in bad]
        step = fleet.act(acceptance, phase="next", collective=results, **COLLECTIVE)
    assert bad_of(fleet.finish(**COLLECTIVE)) == {("node2", "rail3", "accept_collective")}
    assert fleet.requests == []


def test_jobs_that_do_not_start_end_it_and_the_next_run_goes_on(fleet):
    args = {"stages": ["collective"], "collectives": {"alltoall": ["x"]}, "image": "registry.example/nccl"}
    fleet.act(acceptance, phase="begin", hosts=NAMES, **args)
    with pytest.raises(AnsibleActionFail, match="No pods ran the program: no quota"):
        fleet.act(acceptance, phase="next", collective=[{"failed": True, "msg": "no quota"}], **args)
    assert fleet.act(acceptance, phase="begin", hosts=NAMES, **args)["more"]


def test_a_job_that_fails_is_the_failure_of_its_rail(fleet):
    why = "Kubernetes has ended the Job x: BackoffLimitExceeded. Fix what the pod reports. [job_failed]"
    slow, good = ({"code": 0, "output": (FIXTURES / name).read_text()} for name in ("slow-2.13.txt", "good-2.17.txt"))
    step = fleet.act(acceptance, phase="begin", hosts=NAMES, **COLLECTIVE)
    step = fleet.act(acceptance, phase="next", collective=[slow], **COLLECTIVE)
    came = [{"msg": why} if "mlx5_3:1" in group["words"][4] else good for group in step["groups"]]
    while step["more"]:
        step = fleet.act(acceptance, phase="next", collective=came, **COLLECTIVE)
        came = [good for _group in step.get("groups", ())]
    found = fleet.finish(**COLLECTIVE)
    (check,) = [check for check in found["cluster"]["checks"] if check["status"] == "deviation"]
    assert check["object"].endswith(", rail3")
    assert why in check["cause"]


def test_check_mode_sends_nothing(fleet, capsys):
    assert fleet.act(acceptance, phase="begin", hosts=NAMES, check=True)["more"] is False
    assert not (fleet.folder / "verify/accept.json").exists()


def test_it_wants_a_verdict_of_this_plan(fleet):
    (fleet.folder / "verify/verdict.json").unlink()
    with pytest.raises(AnsibleActionFail, match=r"is missing .*railops\.rdma\.verify"):
        fleet.act(acceptance, phase="begin", hosts=NAMES)


@pytest.mark.parametrize(
    "args",
    [
        {"collectives": {"linpack": ["x"]}},
        {"collectives": {"netpipe": ["x"]}, "image": "x"},
        {"collectives": {"alltoall": "mpirun alltoall_perf"}},
        {"min_relative_percent": 200},
        {"seconds": 0},
    ],
)
def test_what_cannot_be_is_refused(fleet, args):
    with pytest.raises(AnsibleActionFail, match="Not known or out of bounds"):
        fleet.act(acceptance, phase="begin", hosts=NAMES, **args)


def test_a_command_with_devices_that_are_not_known_is_refused(fleet):
    args = {"stages": ["collective"], "collectives": {"alltoall": ["-n", 4, "{devices}"]}, "image": "x"}
    with pytest.raises(AnsibleActionFail, match="accept_devices"):
        fleet.act(acceptance, phase="begin", hosts=NAMES, **args)


def test_what_a_program_said_goes_along_with_its_cause():
    text = "[node2:811] opal_os_dirpath_create: /tmp/ompi.node2.0: No such file or directory"
    test = {"rail": "rail1", "peer": "node3", "code": 1, "output": f"Using no perturbations\n{text}\n"}
    entry = StepGroup(("node2", "node3"), (("rail1",),))
    came = outcome("netpipe", entry, ("rail1",), {"node2": {"send": [test]}})
    assert came["cause"].startswith("node2 to node3, rail1: Open MPI's folders")
    assert came["cause"].endswith(f"({text})")


def test_a_collective_through_host_memory_does_not_pass_where_gpu_memory_can_be_reached():
    test = {"rail": "rail1", "peer": "", "code": 0, "output": (FIXTURES / "alltoall-tagged.txt").read_text()}
    entry, found = StepGroup(("node1", "node2"), (("rail1",),)), {"node1": {"send": [test]}}
    assert outcome("alltoall", entry, ("rail1",), found, {"node1"})["value"] > 0
    assert "no GDRDMA" in outcome("alltoall", entry, ("rail1",), found, {"node1", "node2"})["cause"]
