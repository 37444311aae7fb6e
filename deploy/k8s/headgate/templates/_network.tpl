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
{{- $ports := list }}
{{- range .Values.networkPolicy.storePorts }}{{ $ports = append $ports (toString .) }}{{ end }}
{{- with .Values.storage.s3.endpoint }}
{{- $port := regexFind ":[0-9]+$" (urlParse .).host | trimPrefix ":" }}
{{- $ports = append $ports ($port | default (ternary "80" "443" (hasPrefix "http:" .))) }}
{{- end -}}
- ports:
    {{- range uniq $ports }}
    - { port: {{ . }} }
    {{- end }}
  {{- with .Values.networkPolicy.store }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- if not (or .Values.storage.existingSecret .Values.storage.s3.roleArn) }}
# The machine's own identity, or the one that a cloud gives its pods: 988 on Google's Kubernetes, 80 elsewhere.
- to: [{ ipBlock: { cidr: 169.254.0.0/16 } }]
  ports: [{ port: 80 }, { port: 988 }]
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
