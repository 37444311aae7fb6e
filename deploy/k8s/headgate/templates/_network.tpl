{{- /* Parts of network.yaml. */ -}}

{{- define "headgate.pods" -}}
podSelector: { matchLabels: { app.kubernetes.io/name: headgate, app.kubernetes.io/instance: {{ .root.Release.Name }}, app.kubernetes.io/component: {{ .part }} } }
{{- end }}

{{- define "headgate.dnsEgress" -}}
- ports: [{ port: 53, protocol: UDP }, { port: 53, protocol: TCP }]
{{- end }}

{{- define "headgate.storeEgress" -}}
{{- if .Values.trialStore.enabled -}}
- to:
    - {{ include "headgate.pods" (dict "root" . "part" "s3") }}
  ports: [{ port: 7070 }]
{{- else if not (hasPrefix "/" .Values.store) -}}
- ports:
    {{- range .Values.networkPolicy.storePorts }}
    - { port: {{ . }} }
    {{- end }}
  {{- with .Values.networkPolicy.store }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "headgate.metricsIngress" -}}
{{- with .Values.networkPolicy.metrics }}
- from:
    {{- toYaml . | nindent 4 }}
  ports: [{ port: 9090 }]
{{- end }}
{{- end }}

{{- define "headgate.clientsIngress" -}}
{{- with .Values.networkPolicy.clients }}
- from:
    {{- toYaml . | nindent 4 }}
  ports: [{ port: 7070 }]
{{- end }}
{{- end }}
