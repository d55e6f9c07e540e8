# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook upgrade on namespace hosts: real apt and dpkg with a mirror in a folder, the API double as the cluster.

Nothing boots here; on the guests of the matrix's case `upgrade` it does. The tests share one fleet and run in their
order: node2 is made worse by its new package.
"""

from __future__ import annotations

import json
import shutil

import pytest
from api_double import ApiDouble

from ansible_collections.railops.rdma.tests.lab.mirror import BREAKS, drivers

HOSTS = ("node1", "node2", "node3")
FLEET_RAILS = 3
APT = (
    'Dir::Cache "/etc/lab-apt"; Dir::Cache::archives "archives/"; Dir::Log "/etc/lab-apt"; APT::Sandbox::User "root";\n'
    'DPkg::Options {"--log=/dev/null";};\n'
)
NEEDED = ("apt-get", "dpkg-deb")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason=f"needs {', '.join(NEEDED)}"),
]


class Site:
    """A fleet in a cluster, with version 1.0-1 of the driver."""

    def __init__(self, fleet, double, mirror):
        self.fleet, self.double = fleet, double
        drivers(mirror)
        for host in HOSTS:
            double.add_node(host)
            self.on(
                host,
                f"rm -rf /etc/apt/sources.list* && mkdir -p /etc/lab-apt/archives/partial && echo '{APT}' >"
                f" /etc/apt/apt.conf.d/99lab && echo 'deb [trusted=yes] file:{mirror} ./' > /etc/apt/sources.list",
            )
        more = {"rdma_driver_packages": [], "rdma_host_reboot": False, "upgrade_retries": 2, "upgrade_delay": 1}
        hosts = json.loads(fleet.extra.read_text(encoding="utf-8"))
        hosts["all"]["vars"] = {**more, "fabric_kubeconfig": str(double.kubeconfig(fleet.folder / "kubeconfig"))}
        fleet.extra.write_text(json.dumps(hosts), encoding="utf-8")

    def on(self, host, command):
        return self.fleet.lab("exec", self.fleet.name, "--host", host, "--", "sh", "-c", command)

    def play(self, playbook, version, *words, roles=("rdma_driver", "rail_network"), **more):
        values = {"rdma_driver_versions": {"lab-driver": version}, "site_host_roles": list(roles)}
        return self.fleet.play(playbook, "-e", json.dumps(values), *words, **more)

    def upgrade(self, *words, **more):
        return self.play("upgrade", "2.0-1", *words, roles=["rail_network"], **more)

    def versions(self):
        return [self.on(host, "cat /etc/lab-driver/version").strip() for host in HOSTS]

    def nodes(self):
        """Return whether each node is cordoned, and what notes of ours it has."""
        found = self.double.objects("Node")
        notes = [found[host]["metadata"].get("annotations") or {} for host in HOSTS]
        return [bool(found[host]["spec"].get("unschedulable")) for host in HOSTS], [
            {key: value for key, value in note.items() if key.startswith("railops.io/")} for note in notes
        ]

    def unfinished(self):
        return sorted(path.stem for path in self.fleet.folder.glob("verify/fabric/upgrade/unfinished/*.json"))


@pytest.fixture(scope="module")
def site(fleet, tmp_path_factory):
    """Give a site whose hosts were prepared with the old version."""
    mirror = tmp_path_factory.mktemp("mirror")
    for folder in (mirror, *mirror.parents[:2]):
        folder.chmod(0o755)
    with fleet.inside(ApiDouble) as double:
        made = Site(fleet, double, mirror)
        fleet.plan()
        made.play("hosts", "1.0-1")
        yield made


def test_check_mode_says_whose_turn_it_would_be_and_touches_nothing(site):
    assert site.versions() == ["1.0-1"] * 3
    run = site.upgrade("--check")
    for turn, host in enumerate(HOSTS, start=1):
        assert f"turn {turn}: {host}: lab-driver 1.0-1 -> 2.0-1; drain, verify, uncordon" in run.output
    assert sorted(row.partition(":")[0] for row in run.changed()) == list(HOSTS), "what the packages would be"
    assert (site.versions(), site.unfinished(), site.nodes()[0]) == (["1.0-1"] * 3, [], [False] * 3)


def test_it_stops_at_the_first_node_that_is_worse_than_before(site):
    site.on("node2", f"touch {BREAKS}")
    others = {host: site.fleet.dump(host) for host in ("node1", "node3")}
    run = site.upgrade(code=2)
    sentence = "node2 is worse than before its upgrade, stays cordoned, and no further node is touched: "
    assert f"{sentence}rail3 network_link: ens3np0: down; " in run.output
    assert "it continues with node2. [upgrade_regression]" in run.output
    assert "[upgrade_stopped]" not in run.output
    assert site.versions() == ["2.0-1", "2.0-1", "1.0-1"]
    assert site.unfinished() == ["node2"]
    assert site.nodes() == ([False, True, False], [{}, {"railops.io/upgrade-drain": "schedulable"}, {}])
    assert {host: site.fleet.dump(host) for host in others} == others, "the fleet keeps its rails"


def test_no_other_node_is_changed_while_it_is_worse(site):
    run = site.upgrade("--limit", "node3", code=2)
    assert "The upgrade of node2 is unfinished" in run.output
    assert site.versions() == ["2.0-1", "2.0-1", "1.0-1"]


def test_the_next_run_goes_on_where_it_stopped(site):
    site.fleet.ip("node2", "link", "set", "ens3np0", "up")
    site.play("hosts", "1.0-1", "--limit", "node2", roles=["rail_network"])
    run = site.upgrade()
    assert "turn 1: node2: resumes an earlier run; nothing new to install" in run.output
    assert "turn 2: node3: lab-driver 1.0-1 -> 2.0-1" in run.output
    assert "skip: 1 hosts have the wanted versions and are healthy" in run.output
    assert site.versions() == ["2.0-1"] * 3
    assert site.unfinished() == []
    assert site.nodes() == ([False] * 3, [{}] * 3)


def test_a_run_over_an_upgraded_fleet_does_nothing(site):
    run = site.upgrade()
    assert "skip: 3 hosts have the wanted versions and are healthy" in run.output
    assert run.changed() == []
