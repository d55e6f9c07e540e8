{{- /* # Copyright (c) 2026 railops.rdma contributors */}}
{{- /* # GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt) */}}
{{- /* # SPDX-License-Identifier: GPL-3.0-or-later */}}
{{- define "stub.selector" -}}
app.kubernetes.io/name: spiderpool
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}
{{- define "stub.labels" -}}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{ include "stub.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}
{{- define "stub.metadata" -}}
name: {{ .name }}
{{- if not .wide }}
namespace: {{ .root.Release.Namespace | quote }}
{{- end }}
{{- if .component }}
labels: {{- include "stub.labels" . | nindent 2 }}
{{- end }}
{{- end }}
{{- define "stub.pod" -}}
metadata:
  labels: {{- include "stub.selector" . | nindent 4 }}
  {{- with .more }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  containers:
    - name: stub
      image: {{ .image | default "registry.k8s.io/pause:3.10" }}
      {{- range $name, $value := .env }}
      env: [{name: {{ $name }}, value: {{ $value | quote }}}]
      {{- end }}
      {{- with .reads }}
      volumeMounts:
        {{- range . }}
        - {name: {{ . }}, mountPath: /{{ . }}}
        {{- end }}
    {{- if ($.multus | default dict).install }}
    - name: multus-cni
      image: {{ $.image | default "registry.k8s.io/pause:3.10" }}
      volumeMounts: [{name: cni, mountPath: /host/etc/cni/net.d}]
      {{- if $.multus.uninstall }}
      lifecycle: {preStop: {exec: {command: [/bin/sh, -c, "rm -rf /host/etc/cni/net.d/00-multus.conf /host/etc/cni/net.d/multus.d"]}}}
      {{- end }}
    {{- end }}
  volumes:
    {{- range . }}
    - name: {{ . }}
      configMap: {name: {{ . }}}
    {{- end }}
      {{- end }}
    {{- range $name, $path := .hosts }}
    - name: {{ $name }}
      hostPath: {path: {{ $path }}}
    {{- end }}
{{- end }}
