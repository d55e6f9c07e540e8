# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calico is changed only where its setting may choose a rail, and what it had comes back."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.calico import may_choose_rail, patches

RAILS, PREFIXES = {"ens1np0", "ens2np0"}, {"172.17.0.0/20"}
V4, V6 = "IP_AUTODETECTION_METHOD", "IP6_AUTODETECTION_METHOD"
FIELD4, FIELD6 = "nodeAddressAutodetectionV4", "nodeAddressAutodetectionV6"


@pytest.mark.parametrize(
    ("method", "may"),
    [
        ("first-found", True),
        ("", True),
        ("kubernetes-internal-ip", False),
        ("can-reach=192.0.2.1", False),
        ("can-reach=www.example.org", False),
        ("interface=eth.*", False),
        ("interface=eth0,ens.*", True),
        ("interface=ens1np0", True),
        ("skip-interface=ens.*", False),
        ("skip-interface=ens1.*", True),
        ("cidr=192.0.2.0/24", False),
        ("cidr=192.0.2.0/24,172.16.0.0/12", True),
        ("cidr=fd00::/8", False),
        ("interface=[", True),
        ("something-new", True),
    ],
)
def test_which_methods_may_choose_a_rail(method, may):
    assert may_choose_rail(method, RAILS, PREFIXES) is may


def node(*env):
    boxes = [
        {"name": "other", "env": [{"name": V4, "value": "interface=eth0"}]},
        {"name": "calico-node", "env": list(env)},
    ]
    return {"metadata": {"namespace": "kube-system"}, "spec": {"template": {"spec": {"containers": boxes}}}}


def env_of(patch):
    return patch["spec"]["template"]["spec"]["containers"][0]["env"]


def test_a_variable_that_is_not_there_is_taken_away_again():
    made = patches(node(), None, RAILS, PREFIXES)
    assert (made["kind"], made["namespace"], made["names"]) == ("DaemonSet", "kube-system", [V4])
    assert env_of(made["new"]) == [{"name": V4, "value": "kubernetes-internal-ip"}]
    assert env_of(made["back"]) == [{"name": V4, "$patch": "delete"}]


def test_what_kubespray_set_is_kept_or_unchanged():
    # calico_ip_auto_method, and what it sets of addresses.
    own = {"name": V4, "value": "interface=ens.*"}
    made = patches(node({"name": "IP", "value": "autodetect"}, own), None, RAILS, PREFIXES)
    assert env_of(made["back"]) == [own]
    assert patches(node({**own, "value": "can-reach=192.0.2.1"}), None, RAILS, PREFIXES) == {}
    assert patches(node({"name": "IP", "value": "192.0.2.7"}), None, RAILS, PREFIXES) == {}


def test_a_family_that_is_looked_for_is_changed_too():
    made = patches(node({"name": "IP6", "value": "autodetect"}), None, RAILS, PREFIXES)
    assert made["names"] == sorted((V4, V6))


def test_a_value_from_elsewhere_comes_back_from_there():
    own = {"name": V4, "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}
    made = patches(node(own), None, RAILS, PREFIXES)
    assert env_of(made["new"]) == [{"name": V4, "value": "kubernetes-internal-ip", "valueFrom": None}]
    assert env_of(made["back"]) == [{**own, "value": None}]


def installation(**network):
    return {"spec": {"calicoNetwork": network}}


@pytest.mark.parametrize(
    ("own", "changed"),
    [
        (None, True),
        ({"firstFound": True}, True),
        ({"kubernetes": "NodeInternalIP"}, False),
        ({"interface": "eth.*"}, False),
        ({"skipInterface": "ens.*"}, False),
        ({"skipInterface": "docker.*"}, True),
        ({"canReach": "192.0.2.1"}, False),
        ({"cidrs": ["192.0.2.0/24"]}, False),
        ({"cidrs": ["172.16.0.0/12"]}, True),
    ],
)
def test_tigeras_operator_is_configured_in_its_own_fields(own, changed):
    given = {} if own is None else {FIELD4: own}
    made = patches(node(), installation(ipPools=[{"cidr": "192.168.0.0/16"}], **given), RAILS, PREFIXES)
    if not changed:
        assert made == {}
        return
    assert (made["kind"], made["names"]) == ("Installation", [FIELD4])
    new, back = made["new"]["spec"]["calicoNetwork"], made["back"]["spec"]["calicoNetwork"]
    assert {key: row for key, row in new[FIELD4].items() if row} == {"kubernetes": "NodeInternalIP"}
    assert None in new[FIELD4].values(), "two methods at once are refused"
    # A merge takes away what is null.
    left = back[FIELD4] and {key: row for key, row in back[FIELD4].items() if row is not None}
    assert left == own
    assert own is None or "kubernetes" in back[FIELD4]


def test_only_the_families_of_its_pools_are_set():
    made = patches(node(), installation(ipPools=[{"cidr": "fd00::/48"}]), RAILS, PREFIXES)
    assert made["names"] == [FIELD6]
    assert patches(node(), installation(), RAILS, PREFIXES)["names"] == [FIELD4]
