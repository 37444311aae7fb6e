{{- /* Parts of the pods of coordinators, writers and compactors. Arguments: root, part (coordinator, …), values (of the part). */ -}}

{{- define "headgate.env" -}}
{{- $root := .root -}}
- { name: POD_NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
- { name: POD_IP, valueFrom: { fieldRef: { fieldPath: status.podIP } } }
- { name: HEADGATE_STORE, value: {{ $root.Values.store | quote }} }
{{- with $root.Values.storage.options }}
- { name: HEADGATE_STORAGE_OPTIONS, value: {{ toJson . | quote }} }
{{- end }}
- { name: HEADGATE_HEALTH_LISTEN, value: "0.0.0.0:7073" }
- { name: HEADGATE_METRICS_LISTEN, value: "0.0.0.0:9090" }
- { name: HEADGATE_LOG_FORMAT, value: {{ index .values.settings "log_format" | default "json" }} }
- { name: HEADGATE_DRAIN_TIMEOUT, value: {{ .values.drainSeconds }}s }
# The end of a container shows its reason in kubectl describe.
- { name: HEADGATE_START_TIMEOUT, value: {{ index .values.settings "start_timeout" | default "60s" | quote }} }
- { name: HEADGATE_CLUSTER_CERT, value: /etc/headgate/cluster/tls.crt }
- { name: HEADGATE_CLUSTER_KEY, value: /etc/headgate/cluster/tls.key }
- { name: HEADGATE_CLUSTER_CA, value: /etc/headgate/cluster/ca.crt }
{{- range $name, $value := omit .values.settings "log_format" "start_timeout" }}
- { name: HEADGATE_{{ upper $name }}, value: {{ $value | quote }} }
{{- end }}
{{- include "headgate.storageEnv" $root }}
{{- end }}

{{- /* What coordinators and writers have besides: they serve clients. */ -}}
{{- define "headgate.serverEnv" -}}
{{- $root := .root -}}
- { name: HEADGATE_LISTEN, value: "{{ if include "headgate.behindFront" $root }}127.0.0.1:7072{{ else }}0.0.0.0:7070{{ end }}" }
- { name: HEADGATE_ADVERTISE, value: "$(POD_NAME).{{ $root.Release.Name }}-{{ .part }}.{{ $root.Release.Namespace }}.svc:7070" }
- { name: HEADGATE_CLUSTER_LISTEN, value: "0.0.0.0:7071" }
- { name: HEADGATE_CLUSTER_ADVERTISE, value: "$(POD_IP):7071" }
{{- if $root.Values.insecure }}
- { name: HEADGATE_INSECURE, value: "true" }
{{- else }}
- { name: HEADGATE_ACCESS, value: /etc/headgate/access/access.toml }
{{- if not (include "headgate.behindFront" $root) }}
- { name: HEADGATE_TLS_CERT, value: /etc/headgate/tls/tls.crt }
- { name: HEADGATE_TLS_KEY, value: /etc/headgate/tls/tls.key }
{{- if $root.Values.credentials.clientCaSecret }}
- { name: HEADGATE_CLIENT_CA, value: /etc/headgate/clients/ca.crt }
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "headgate.storageEnv" -}}
{{- with .Values.storage.s3.region }}
- { name: AWS_REGION, value: {{ . | quote }} }
{{- end }}
{{- with include "headgate.s3Endpoint" . }}
- { name: AWS_ENDPOINT, value: {{ . | quote }} }
{{- end }}
{{- if or .Values.storage.s3.allowHttp .Values.trialStore.enabled }}
- { name: AWS_ALLOW_HTTP, value: "true" }
{{- end }}
{{- with .Values.storage.s3.roleArn }}
- { name: AWS_ROLE_ARN, value: {{ . | quote }} }
- { name: AWS_ROLE_SESSION_NAME, value: {{ $.Release.Name | quote }} }
- { name: AWS_WEB_IDENTITY_TOKEN_FILE, value: /var/run/secrets/store/token }
{{- end }}
{{- end }}

{{- define "headgate.envFrom" -}}
{{- $secret := .Values.storage.existingSecret -}}
{{- if .Values.trialStore.enabled }}{{ $secret = printf "%s-s3" .Release.Name }}{{ end -}}
{{- with $secret }}
envFrom:
  - secretRef: { name: {{ . }} }
{{- end }}
{{- end }}

{{- define "headgate.mounts" -}}
- { name: tmp, mountPath: /tmp }
- { name: cluster, mountPath: /etc/headgate/cluster, readOnly: true }
{{- if .root.Values.storage.s3.roleArn }}
- { name: store-token, mountPath: /var/run/secrets/store, readOnly: true }
{{- end }}
{{- if .root.Values.storage.volume.claim }}
- { name: store, mountPath: {{ .root.Values.storage.volume.path }} }
{{- end }}
{{- if and .serves (not .root.Values.insecure) }}
- { name: access, mountPath: /etc/headgate/access, readOnly: true }
{{- if not (include "headgate.behindFront" .root) }}
- { name: tls, mountPath: /etc/headgate/tls, readOnly: true }
{{- if .root.Values.credentials.clientCaSecret }}
- { name: clients, mountPath: /etc/headgate/clients, readOnly: true }
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "headgate.volumes" -}}
{{- $root := .root -}}
- name: tmp
  emptyDir: { sizeLimit: {{ .scratch | default "2Gi" }} }
- name: cluster
  secret: { secretName: {{ $root.Release.Name }}-cluster-{{ .part }}, defaultMode: 0440 }
{{- if $root.Values.storage.s3.roleArn }}
- name: store-token
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken: { audience: {{ $root.Values.storage.s3.audience }}, expirationSeconds: 3600, path: token }
{{- end }}
{{- if $root.Values.storage.volume.claim }}
- name: store
  persistentVolumeClaim: { claimName: {{ $root.Values.storage.volume.claim }} }
{{- end }}
{{- if and .serves (not $root.Values.insecure) }}
- name: access
  secret: { secretName: {{ $root.Values.credentials.accessSecret | default (printf "%s-access" $root.Release.Name) }}, defaultMode: 0440 }
- name: tls
  secret: { secretName: {{ $root.Release.Name }}-tls, defaultMode: 0440 }
{{- with $root.Values.credentials.clientCaSecret }}
- name: clients
  secret: { secretName: {{ . }}, defaultMode: 0440 }
{{- end }}
{{- if include "headgate.behindFront" $root }}
- name: front
  configMap: { name: {{ $root.Release.Name }}-front }
{{- end }}
{{- end }}
{{- end }}

{{- /* "live": the process answers. It waits for nothing, so Redis or a store that is away restarts nobody. */ -}}
{{- define "headgate.probes" -}}
startupProbe:
  grpc: { port: 7073, service: live }
  periodSeconds: 1
  failureThreshold: 120
  timeoutSeconds: 3
livenessProbe:
  grpc: { port: 7073, service: live }
  # Two minutes: a process that gets no CPU, on a machine that is short of it, is not better off after a restart.
  periodSeconds: 10
  failureThreshold: 12
  timeoutSeconds: 10
readinessProbe:
  grpc: { port: 7073 }
  periodSeconds: 2
  failureThreshold: 3
  timeoutSeconds: 3
{{- end }}

{{- /* A sidecar of Kubernetes: it is there before the service, and ends after it, so that a drain is not cut off. */ -}}
{{- define "headgate.front" -}}
{{- if include "headgate.behindFront" . }}
initContainers:
  - name: front
    image: {{ include "headgate.image" .Values.front.image }}
    imagePullPolicy: {{ .Values.front.image.pullPolicy }}
    restartPolicy: Always
    command: [envoy]
    args: [--config-path, /etc/headgate/front/front.yaml, --concurrency, "{{ .Values.front.concurrency }}", --disable-hot-restart, --log-level, warn]
    ports:
      - { name: clients, containerPort: 7070 }
    startupProbe:
      tcpSocket: { port: 7070 }
      periodSeconds: 1
      failureThreshold: 60
    resources:
      requests: { cpu: {{ .Values.front.cpu }}, memory: {{ div .Values.front.memoryMiB 4 }}Mi }
      limits: { memory: {{ .Values.front.memoryMiB }}Mi }
    {{- include "headgate.security" . | nindent 4 }}
    volumeMounts:
      - { name: front, mountPath: /etc/headgate/front, readOnly: true }
      - { name: tls, mountPath: /etc/headgate/tls, readOnly: true }
{{- end }}
{{- end }}

{{- define "headgate.podMeta" -}}
labels:
  {{- include "headgate.labels" . | nindent 2 }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := .root.Values.podAnnotations -}}
{{- if and .serves (include "headgate.behindFront" .root) }}
{{- $annotations = set (deepCopy $annotations) "headgate/front" (include "headgate.frontConfig" .root | sha256sum) -}}
{{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "headgate.podCommon" -}}
serviceAccountName: {{ .root.Release.Name }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
terminationGracePeriodSeconds: {{ add .values.drainSeconds 20 }}
tolerations:
  {{- include "headgate.tolerations" (dict "root" .root "tolerations" .values.tolerations) | nindent 2 }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "headgate.selector" $ | nindent 8 }}
  {{- end }}
# Apart, if two machines can take them: the scheduler weighs the constraint above against the load of machines, and with few
# pods that put both on one. Preferred, so that a cluster of one machine, or with one left, still runs all.
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "headgate.selector" . | nindent 14 }}
securityContext:
  {{- include "headgate.podSecurity" . | nindent 2 }}
{{- end }}
