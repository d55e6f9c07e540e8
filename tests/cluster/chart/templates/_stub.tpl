{{- /* # Copyright (c) 2026 railops.rdma contributors */}}
{{- /* # GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt) */}}
{{- /* # SPDX-License-Identifier: GPL-3.0-or-later */}}
{{- define "stub.labels" -}}
app.kubernetes.io/name: spiderpool
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "stub.pod" -}}
containers:
  - name: stub
    image: registry.k8s.io/pause:3.10
{{- end }}
