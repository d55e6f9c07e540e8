#!/usr/bin/env bash
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Configure a host that is a network namespace, twice, and remove everything again.
set -euxo pipefail
name="target$$"
lab() { python3 ../../../lab/lab.py "$@"; }
work=$(mktemp -d)
trap 'lab down "$name"; rm -rf "$work"' EXIT
inventory=$(lab up --name "$name" --kind netns --nodes 1 --rails 2 | tail -n 1)
play() { ansible-playbook -i "$inventory" -e "fabric_plan_dir=$work/plan" play.yml "$@"; }

play
play | tee "$work/second"
grep -q 'node1 .* changed=0 ' "$work/second"
play -e rail_network_state=absent
