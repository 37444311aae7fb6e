{{- /* Part of autoscaling.yaml. */ -}}

{{- define "headgate.behavior" -}}
scaleDown:
  # One at a time: each hands over what it has before the next goes.
  stabilizationWindowSeconds: {{ .windowSeconds }}
  policies: [{ type: Pods, value: 1, periodSeconds: 60 }]
scaleUp:
  stabilizationWindowSeconds: 0
  policies: [{ type: Pods, value: 2, periodSeconds: 30 }]
{{- end }}
