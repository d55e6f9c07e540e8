# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An MPI program over pods with rails, as an Indexed Job that needs nothing installed. Pure.

Index 0 of the Job starts the program, the others run sshd. One key, made for the run, is host key and user key of all
of them. The Job owns its Secret and the headless Service that names the pods. Kubernetes ends and removes all of them
automatically, whatever happens to the controller.
"""

from __future__ import annotations

import base64
import typing as t
import uuid

from .._cluster.model import Json
from .._fabric.labels import HOSTNAME, PROBE_LABEL, RUN_LABEL
from .._fabric.labels import labels as labels_of
from .scheduling import by_name, with_gate

PROBE = "collective"
CONTAINER = "main"
SSH_PORT = 2222
# The script's first line: a log without it has lost its beginning.
BEGIN = "railops: begin"
# Seconds for pods to start, and seconds that Kubernetes keeps a finished Job.
START_SECONDS = 300
JOB_TTL_SECONDS = 300
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


def indexed_job(params: t.Mapping[str, t.Any], template: Json, env: t.Mapping[str, str]) -> Json:
    """Return the Job of a run: one pod a node, with the annotations and limits of the plan.

    :param params: of the module: `{hosts}` and `{count}` in its `words` are replaced.
    :param template: a PodTemplate's `template`, with the rails' annotations and limits: workload/pod.yaml of the plan.
    :param env: the environment of all pods, such as workload/nccl-pods.env.
    """
    nodes, run = sorted(set(params["nodes"])), uuid.uuid4().hex[:8]
    # So short that `NAME-INDEX` is a DNS label.
    name = f"{params['fabric'][:30].rstrip('-')}-{PROBE}-{run}"
    labels = {**labels_of(params["fabric"]), PROBE_LABEL: PROBE, RUN_LABEL: run}
    hosts = ",".join(f"{name}-{index}.{name}" for index in range(len(nodes)))
    words = [word.replace("{hosts}", hosts).replace("{count}", str(len(nodes))) for word in params["words"]]
    first = (template.get("spec") or {}).get("containers", [{}])[0]
    limits = {key: str(value) for key, value in params["limits"].items()}
    limits = {**((first.get("resources") or {}).get("limits") or {}), **limits}
    apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": HOSTNAME}
    secrets = [{"name": secret} for secret in params["image_pull_secrets"]]
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "subdomain": name,
        "affinity": {**by_name(nodes), "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
        "tolerations": with_gate(params["tolerations"]),
        **({"imagePullSecrets": secrets} if secrets else {}),
        "containers": [
            {
                "name": CONTAINER,
                "image": params["image"],
                "command": ["sh", "-c", SCRIPT, "railops", str(SSH_PORT), hosts, *words],
                "env": [{"name": key, "value": value} for key, value in env.items()],
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
            {"name": "key", "secret": {"secretName": name, "defaultMode": 0o400}},
        ],
    }
    annotations = dict((template.get("metadata") or {}).get("annotations") or {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": params["namespace"], "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": len(nodes),
            "parallelism": len(nodes),
            "backoffLimit": 0,
            "activeDeadlineSeconds": START_SECONDS + params["seconds"],
            "ttlSecondsAfterFinished": JOB_TTL_SECONDS,
            "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod},
        },
    }


def belongings(job: Json, uid: str, private: bytes, public: bytes) -> list[Json]:
    """Return what goes with a Job: the Secret with the run's key, and the Service that gives its pods names.

    :param job: as `indexed_job` made it.
    :param uid: of the Job, which owns both.
    :param private: the private key.
    :param public: the public one.
    """
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": uid, "controller": False}
    meta = {**job["metadata"], "ownerReferences": [owner]}
    data = {KEY: base64.b64encode(private).decode(), PUBLIC: base64.b64encode(public).decode()}
    # Pods are looked for before they are ready: sshd is what makes them so.
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": meta["labels"]}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": data},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec},
    ]
