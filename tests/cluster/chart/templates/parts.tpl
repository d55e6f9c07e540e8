# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
{{- $root := . }}
{{- $ctl := "spiderpool-controller" }}
{{- $agent := "spiderpool-agent" }}
{{- $op := "spiderpool-sriov-operator" }}
{{- $daemon := "sriov-network-config-daemon" }}
{{- $plugin := .Values.rdma.rdmaSharedDevicePlugin }}
{{- $rbac := "rbac.authorization.k8s.io/v1" }}
{{- $hooks := "admissionregistration.k8s.io/v1" }}
{{- /* Everything that has no more than a name: api, kind, name, component of its labels, "wide" without a namespace. */}}
{{- $rows := list
  (list "v1" "ServiceAccount" "spiderpool-init" "spiderpool-init" "")
  (list "v1" "ServiceAccount" $agent $agent "")
  (list "v1" "ServiceAccount" $ctl $ctl "")
  (list $rbac "ClusterRole" "spiderpool-admin" "" "wide")
  (list $rbac "ClusterRoleBinding" "spiderpool-admin" "" "wide")
  (list "v1" "Service" $ctl $ctl "")
  (list $hooks "MutatingWebhookConfiguration" $ctl "" "wide")
  (list $hooks "ValidatingWebhookConfiguration" $ctl "" "wide")
}}
{{- if .Values.spiderpoolAgent.prometheus.enabled }}
{{- $rows = append $rows (list "v1" "Service" $agent $agent "") }}
{{- end }}
{{- if .Values.sriov.install }}
{{- range (list $op $daemon) }}
{{- $rows = append $rows (list "v1" "ServiceAccount" . $op "") }}
{{- $rows = append $rows (list $rbac "ClusterRole" . $op "wide") }}
{{- $rows = append $rows (list $rbac "ClusterRoleBinding" . $op "wide") }}
{{- $rows = append $rows (list $rbac "Role" . $op "") }}
{{- $rows = append $rows (list $rbac "RoleBinding" . $op "") }}
{{- end }}
{{- $rows = append $rows (list $rbac "Role" "operator-webhook-sa" $op "") }}
{{- $rows = append $rows (list "v1" "Secret" "sriov-operator-webhook" "" "") }}
{{- $rows = append $rows (list "v1" "ConfigMap" "supported-nic-ids" $op "") }}
{{- $rows = append $rows (list "sriovnetwork.openshift.io/v1" "SriovOperatorConfig" "default" $op "") }}
{{- end }}
{{- if .Values.grafanaDashboard.install }}
{{- range (list "ipam" "rdma-cluster" "rdma-node" "rdma-pod" "rdma-workload") }}
{{- $rows = append $rows (list "grafana.integreatly.org/v1beta1" "GrafanaDashboard" (printf "spiderpool-%s" .) "" "") }}
{{- end }}
{{- end }}
{{- range $rows }}
---
apiVersion: {{ index . 0 }}
kind: {{ index . 1 }}
metadata: {{- include "stub.metadata" (dict "root" $root "name" (index . 2) "component" (index . 3) "wide" (index . 4)) | nindent 2 }}
{{- if eq (index . 1) "Service" }}
spec: {ports: [{port: 5722}]}
{{- else if hasSuffix "Binding" (index . 1) }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ index . 1 | trimSuffix "Binding" }}, name: {{ index . 2 }}}
{{- end }}
{{- end }}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {{- include "stub.metadata" (dict "root" . "name" .Values.spiderpoolController.tls.secretName) | nindent 2 }}
data:
  {{- with .Values.spiderpoolController.tls }}
  ca.crt: {{ ternary .provided.tlsCa "LQ==" (eq .method "provided") }}
  tls.crt: {{ ternary .provided.tlsCert "LQ==" (eq .method "provided") }}
  tls.key: {{ ternary .provided.tlsKey "LQ==" (eq .method "provided") }}
  {{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata: {{- include "stub.metadata" (dict "root" . "name" "spiderpool-conf" "component" $ctl) | nindent 2 }}
data:
  conf.yml: |
    enableIPv4: {{ .Values.ipam.enableIPv4 }}
    enableIPv6: {{ .Values.ipam.enableIPv6 }}
    enableSpiderSubnet: {{ .Values.ipam.spiderSubnet.enable }}
    enableGatewayDetection: {{ .Values.ipam.enableGatewayDetection }}
    podResourceInject: {{ .Values.spiderpoolController.podResourceInject | toJson }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: spiderpool-multus-entrypoint
  namespace: {{ .Release.Namespace | quote }}
  labels:
    helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
    app.kubernetes.io/name: spiderpool
    app.kubernetes.io/instance: {{ .Release.Name }}
    app.kubernetes.io/component: spiderpool-multus
    name: multus
    app.kubernetes.io/managed-by: {{ .Release.Service }}
    tier: node
    app: multus
data: {entrypoint.sh: ""}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{- include "stub.metadata" (dict "root" . "name" $ctl "component" $ctl) | nindent 2 }}
spec:
  replicas: 1
  selector:
    matchLabels: {{- include "stub.selector" (dict "root" . "component" $ctl) | nindent 6 }}
  template: {{- include "stub.pod" (dict "root" . "component" $ctl "annotations" .Values.spiderpoolController.podAnnotations "reads" (list "spiderpool-conf") "env" (dict "SPIDERPOOL_MULTUS_CONFIG_ENABLED" .Values.multus.enableMultusConfig)) | nindent 4 }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{- include "stub.metadata" (dict "root" . "name" $agent "component" $agent) | nindent 2 }}
spec:
  updateStrategy: {{- toYaml .Values.spiderpoolAgent.updateStrategy | nindent 4 }}
  selector:
    matchLabels: {{- include "stub.selector" (dict "root" . "component" $agent) | nindent 6 }}
  template: {{- include "stub.pod" (dict "root" . "component" $agent "annotations" .Values.spiderpoolAgent.podAnnotations "multus" .Values.multus.multusCNI "reads" (list "spiderpool-conf" "spiderpool-multus-entrypoint") "hosts" (dict "cni-bin-path" .Values.global.cniBinHostPath "cni" .Values.global.cniConfHostPath)) | nindent 4 }}
{{- if $plugin.install }}
---
apiVersion: v1
kind: ConfigMap
metadata: {{- include "stub.metadata" (dict "root" . "name" $plugin.name) | nindent 2 }}
data:
  config.json: {{ $plugin.deviceConfig | toPrettyJson | quote }}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{- include "stub.metadata" (dict "root" . "name" $plugin.name) | nindent 2 }}
spec:
  selector:
    matchLabels: {{- include "stub.selector" (dict "root" . "component" "spiderpool-rdma-shared-device-plugin") | nindent 6 }}
      name: multus
  template: {{- include "stub.pod" (dict "root" . "component" "spiderpool-rdma-shared-device-plugin" "image" "ghcr.io/mellanox/k8s-rdma-shared-dev-plugin:v1.5.2" "more" (dict "name" "multus" "app" $plugin.name) "annotations" $plugin.podAnnotations "reads" (list $plugin.name)) | nindent 4 }}
{{- end }}
{{- if .Values.sriov.install }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{- include "stub.metadata" (dict "root" . "name" $op "component" $op) | nindent 2 }}
spec:
  replicas: 1
  selector:
    matchLabels: {{- include "stub.selector" (dict "root" . "component" $op) | nindent 6 }}
  template: {{- include "stub.pod" (dict "root" . "component" $op) | nindent 4 }}
{{- end }}
---
apiVersion: batch/v1
kind: Job
metadata: {{- include "stub.metadata" (dict "root" . "name" "spiderpool-init") | nindent 2 }}
  annotations: {helm.sh/hook: post-install}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: stub, image: "registry.k8s.io/pause:3.10"}]}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: spiderpool-controller-hook-pre-delete
  annotations:
    helm.sh/hook: pre-delete
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: stub, image: "registry.k8s.io/pause:3.10"}]}
{{- if .Values.fail }}{{ fail .Values.fail }}{{ end }}
