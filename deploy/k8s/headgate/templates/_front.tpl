{{- /* Envoy, deploy/envoy/sidecar.yaml, with the ports and folders of the pods. */ -}}

{{- define "headgate.frontConfig" -}}
{{ .Files.Get "files/sidecar.yaml" | replace "port_value: 7071" "port_value: 7072" | replace "/etc/envoy/" "/etc/headgate/front/" }}
{{- end }}
