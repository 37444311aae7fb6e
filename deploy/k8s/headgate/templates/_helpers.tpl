{{- /* What several templates share. Names: RELEASE-part. */ -}}

{{- define "headgate.check" -}}
{{- if not .Values.store }}{{ fail "store is missing: --set store=s3://bucket/prefix (gs://…, az://…, or /folder with storage.volume.claim)" }}{{ end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" .Release.Name) }}{{ fail "the release's name has to begin with a letter and have letters, digits and hyphens alone: Services are named by it" }}{{ end }}
{{- if gt (len .Release.Name) 40 }}{{ fail "the release's name is too long: at most 40 characters, so that pods' names fit" }}{{ end }}
{{- if and .Values.storage.s3.roleArn .Values.storage.existingSecret }}{{ fail "storage.s3.roleArn and storage.existingSecret: give one of them; keys in the environment would hide the role" }}{{ end }}
{{- if and (hasPrefix "http://" .Values.storage.s3.endpoint) (not .Values.storage.s3.allowHttp) }}{{ fail "storage.s3.endpoint is http://: set storage.s3.allowHttp=true if rows may be sent in plaintext" }}{{ end }}
{{- if and (hasPrefix "/" .Values.store) (not .Values.storage.volume.claim) }}{{ fail "store is a folder: storage.volume.claim names a claim that all pods mount (ReadWriteMany)" }}{{ end }}
{{- if and .Values.storage.volume.claim (not (or (eq .Values.store .Values.storage.volume.path) (hasPrefix (printf "%s/" .Values.storage.volume.path) .Values.store))) }}{{ fail "store has to lie below storage.volume.path" }}{{ end }}
{{- if and (not .Values.redis.bundled) (not .Values.redis.address) }}{{ fail "redis.bundled is false: redis.address=host:port names yours" }}{{ end }}
{{- if and .Values.redis.bundled .Values.redis.address }}{{ fail "redis.address is given: set redis.bundled=false, so that there is one Redis" }}{{ end }}
{{- if and (not .Values.redis.bundled) (not .Values.redis.existingSecret) (not .Values.insecure) }}{{ fail "redis.existingSecret is missing: a Secret with the key password" }}{{ end }}
{{- if and .Values.trialStore.enabled (ne .Values.store "s3://trial") (not (hasPrefix "s3://trial/" .Values.store)) }}{{ fail "trialStore has the bucket trial alone: store=s3://trial/…" }}{{ end }}
{{- if and .Values.trialStore.enabled (or .Values.storage.existingSecret .Values.storage.s3.endpoint .Values.storage.s3.roleArn) }}{{ fail "trialStore brings its own endpoint and keys: leave storage.existingSecret, storage.s3.endpoint and storage.s3.roleArn empty" }}{{ end }}
{{- if and .Values.credentials.clientCaSecret .Values.insecure }}{{ fail "credentials.clientCaSecret: with insecure=true clients have no TLS, and so no certificates" }}{{ end }}
{{- if and .Values.credentials.clientCaSecret .Values.front.enabled }}{{ fail "credentials.clientCaSecret wants front.enabled=false: Envoy ends the TLS of clients, and services would not see their certificates" }}{{ end }}
{{- if lt (int .Values.autoscaling.writer.maxReplicas) (int .Values.autoscaling.writer.minReplicas) }}{{ fail "autoscaling.writer.maxReplicas is below minReplicas" }}{{ end }}
{{- if lt (int .Values.autoscaling.compactor.maxReplicas) (int .Values.autoscaling.compactor.minReplicas) }}{{ fail "autoscaling.compactor.maxReplicas is below minReplicas" }}{{ end }}
{{- end }}

{{- define "headgate.selector" -}}
app.kubernetes.io/name: headgate
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "headgate.labels" -}}
{{ include "headgate.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: headgate
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "headgate.meta" -}}
name: {{ .root.Release.Name }}{{ if .name }}-{{ .name }}{{ end }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "headgate.labels" . | nindent 2 }}
{{- end }}

{{- define "headgate.image" -}}
{{ .repository }}:{{ .tag }}
{{- end }}

{{- define "headgate.ownImage" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "headgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "headgate.security" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{- define "headgate.certManager" -}}
{{- $mode := .Values.credentials.certificates -}}
{{- if or (eq $mode "cert-manager") (and (eq $mode "auto") (.Capabilities.APIVersions.Has "cert-manager.io/v1")) }}yes{{ end }}
{{- end }}

{{- /* What the Job makes, as words. */ -}}
{{- define "headgate.jobParts" -}}
{{- $own := and (not (include "headgate.certManager" .)) (ne .Values.credentials.certificates "existing") -}}
{{- $parts := list -}}
{{- if and $own (not .Values.insecure) }}{{ $parts = append $parts "tls" }}{{ end -}}
{{- if $own }}{{ $parts = append $parts "cluster" }}{{ end -}}
{{- if and (not .Values.insecure) (not .Values.credentials.accessSecret) }}{{ $parts = append $parts "access" }}{{ end -}}
{{- if .Values.redis.bundled }}{{ $parts = append $parts "redis" }}{{ end -}}
{{- if and .Values.redis.bundled $own }}{{ $parts = append $parts "redis-tls" }}{{ end -}}
{{- if .Values.trialStore.enabled }}{{ $parts = append $parts "s3" }}{{ end -}}
{{- join " " $parts -}}
{{- end }}

{{- /* Names by which clients call servers, as words. */ -}}
{{- define "headgate.dnsNames" -}}
{{- $space := printf "%s.svc" .Release.Namespace -}}
{{- $names := list .Release.Name (printf "%s.%s" .Release.Name .Release.Namespace) (printf "%s.%s" .Release.Name $space) (printf "%s.%s.cluster.local" .Release.Name $space) -}}
{{- range list "coordinator" "writer" }}
{{- $service := printf "%s-%s.%s" $.Release.Name . $space -}}
{{- $names = concat $names (list (printf "*.%s" $service) (printf "*.%s.cluster.local" $service)) -}}
{{- end }}
{{- join " " (concat $names .Values.credentials.dnsNames) -}}
{{- end }}

{{- define "headgate.redisDnsNames" -}}
{{ .Release.Name }}-redis {{ .Release.Name }}-redis.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "headgate.behindFront" -}}
{{- if and .Values.front.enabled (not .Values.insecure) }}yes{{ end }}
{{- end }}

{{- define "headgate.s3Endpoint" -}}
{{- if .Values.trialStore.enabled }}http://{{ .Release.Name }}-s3:7070{{ else }}{{ .Values.storage.s3.endpoint }}{{ end -}}
{{- end }}

{{- /* Pods leave a machine that is lost soon, whatever else they tolerate. */ -}}
{{- define "headgate.tolerations" -}}
{{- range list "not-ready" "unreachable" }}
- { key: node.kubernetes.io/{{ . }}, operator: Exists, effect: NoExecute, tolerationSeconds: {{ $.root.Values.evictAfterSeconds }} }
{{- end }}
{{- with .tolerations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* 500m times 3 is 1500m. */ -}}
{{- define "headgate.timesCpu" -}}
{{- $milli := hasSuffix "m" .cpu | ternary (int (trimSuffix "m" .cpu)) (int (mulf (float64 .cpu) 1000)) -}}
{{ mul $milli .times }}m
{{- end }}
