# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An MPI program over pods with rails, as an Indexed Job that needs nothing installed. Pure.

Index 0 of the Job starts the program, the others run sshd. One key, made for the run, is host key and user key of all
of them; its Secret and the headless Service that gives the pods names belong to the Job and go with it. Kubernetes ends
and removes all of it by itself, whatever becomes of the controller.
"""

from __future__ import annotations

import base64
import typing as t
from dataclasses import dataclass, field

from .._fabric.labels import HOSTNAME, PROBE_LABEL, RUN_LABEL
from .._fabric.labels import labels as labels_of
from .checks import Json
from .place import by_name, with_gate

PROBE = "collective"
CONTAINER = "main"
SSH_PORT = 2222
# The script's first line: a log without it has lost its beginning.
BEGIN = "railops: begin"
# Seconds for pods to start, and seconds that Kubernetes keeps what nobody removed.
START_SECONDS = 300
KEPT = 300
KEY, PUBLIC = "id", "id.pub"
KEY_FOLDER = "/railops/key"

# Open MPI 4 (ORTE) and 5 (PRRTE). Names keep their domains: the Service's name is one.
SCRIPT = r"""
set -eu
say() { echo "railops: $*" >&2; }
say begin
port=$1 names=$2; shift 2
for program in sshd ssh "$1"; do
  command -v "$program" >/dev/null || { say "the image has no $program"; exit 3; }
done
umask 077
here=${TMPDIR:-/tmp}/railops; mkdir -p "$here" /run/sshd
cp /railops/key/id /railops/key/id.pub "$here/"
if [ "${JOB_COMPLETION_INDEX:-0}" != 0 ]; then
  cat >"$here/sshd" <<END
Port $port
HostKey $here/id
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
AuthorizedKeysFile $here/id.pub
END
  exec "$(command -v sshd)" -D -e -f "$here/sshd"
fi
echo "railops $(cat "$here/id.pub")" >"$here/known"
args="-p $port -i $here/id -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=yes -o HostKeyAlias=railops"
args="$args -o UserKnownHostsFile=$here/known"
for name in $(echo "${names#*,}" | tr , ' '); do
  tries=60
  until ssh $args "$name" true 2>"$here/said"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { say "ssh: connect to host $name failed: $(tail -n 1 "$here/said")"; exit 4; }
    sleep 2
  done
done
export OMPI_MCA_plm_rsh_args="$args" PRTE_MCA_plm_ssh_args="$args"
export OMPI_MCA_orte_keep_fqdn_hostnames=1 PRTE_MCA_prte_keep_fqdn_hostnames=1
export OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec "$@"
"""


# No more than sshd needs as root (privilege separation), beside memory that RDMA locks.
_CONFINED: Json = {
    "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK", "SETGID", "SETUID", "SYS_CHROOT"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


@dataclass(frozen=True)
class CollectivePlan:
    """One run of a program over pods, one on each of the nodes.

    :param name: of the Job; so short that `NAME-INDEX` is a DNS label.
    :param template: a PodTemplate's `template`, with the rails' annotations and limits: workload/pod.yaml of the plan.
    :param words: the program; `{hosts}` and `{count}` in a word are replaced.
    :param env: the environment of all pods, such as workload/nccl-pods.env.
    :param limits: more limits of the container, such as {"nvidia.com/gpu": "8"}.
    :param seconds: that the program may take.
    :param tolerations: of the pods; that of our gate is added.
    :param pull_secrets: names of the Secrets by which the image is pulled.
    """

    name: str
    namespace: str
    fabric: str
    run: str
    nodes: t.Sequence[str]
    image: str
    template: Json
    words: t.Sequence[str]
    env: t.Mapping[str, str] = field(default_factory=dict)
    limits: t.Mapping[str, str] = field(default_factory=dict)
    seconds: int = 300
    tolerations: t.Sequence[Json] = ()
    pull_secrets: t.Sequence[str] = ()

    @property
    def hosts(self) -> list[str]:
        """Return the names by which the pods of the Job find each other."""
        return [f"{self.name}-{index}.{self.name}" for index in range(len(self.nodes))]

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of everything that belongs to the run."""
        return {**labels_of(self.fabric), PROBE_LABEL: PROBE, RUN_LABEL: self.run}


def indexed_job(wanted: CollectivePlan) -> Json:
    """Return the Job: one pod a node, with the annotations and limits of the plan."""
    count = len(wanted.nodes)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": wanted.name, "namespace": wanted.namespace, "labels": wanted.labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimit": 0,
            "activeDeadlineSeconds": START_SECONDS + wanted.seconds,
            "ttlSecondsAfterFinished": KEPT,
            "template": {
                "metadata": {
                    "labels": wanted.labels,
                    "annotations": dict((wanted.template.get("metadata") or {}).get("annotations") or {}),
                },
                "spec": _pod_spec(wanted),
            },
        },
    }


def _pod_spec(wanted: CollectivePlan) -> Json:
    listed, count = ",".join(wanted.hosts), str(len(wanted.nodes))
    words = [word.replace("{hosts}", listed).replace("{count}", count) for word in wanted.words]
    first = (wanted.template.get("spec") or {}).get("containers", [{}])[0]
    limits = {**((first.get("resources") or {}).get("limits") or {}), **wanted.limits}
    apart = {"labelSelector": {"matchLabels": wanted.labels}, "topologyKey": HOSTNAME}
    secrets = {"imagePullSecrets": [{"name": name} for name in wanted.pull_secrets]} if wanted.pull_secrets else {}
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "subdomain": wanted.name,
        "affinity": {
            **by_name(wanted.nodes),
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
        },
        "tolerations": with_gate(wanted.tolerations),
        **secrets,
        "containers": [
            {
                "name": CONTAINER,
                "image": wanted.image,
                "command": ["sh", "-c", SCRIPT, "railops", str(SSH_PORT), listed, *words],
                "env": [{"name": name, "value": value} for name, value in wanted.env.items()],
                "securityContext": _CONFINED,
                "volumeMounts": [
                    {"name": "shm", "mountPath": "/dev/shm"},
                    {"name": "key", "mountPath": KEY_FOLDER, "readOnly": True},
                ],
                **({"resources": {"limits": limits}} if limits else {}),
            }
        ],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
            {"name": "key", "secret": {"secretName": wanted.name, "defaultMode": 0o400}},
        ],
    }


def belongings(wanted: CollectivePlan, uid: str, private: bytes, public: bytes) -> list[Json]:
    """Return what goes with a Job: the Secret with the run's key, and the Service that gives its pods names.

    :param private: the private key.
    :param public: the public one.
    :param uid: of the Job, which owns both.
    """
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": wanted.name, "uid": uid, "controller": False}
    meta = {
        "name": wanted.name,
        "namespace": wanted.namespace,
        "labels": wanted.labels,
        "ownerReferences": [owner],
    }
    data = {KEY: base64.b64encode(private).decode(), PUBLIC: base64.b64encode(public).decode()}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": data},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            # Pods are looked for before they are ready: sshd is what makes them so.
            "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": wanted.labels},
        },
    ]
