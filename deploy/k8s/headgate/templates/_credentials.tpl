{{- /* The pod of the Job and the CronJob. */ -}}

{{- define "headgate.credentialsPod" -}}
{{- $part := dict "root" . "part" "credentials" -}}
metadata:
  labels:
    {{- include "headgate.labels" $part | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ .Release.Name }}-credentials
  automountServiceAccountToken: true
  enableServiceLinks: false
  restartPolicy: OnFailure
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "headgate.podSecurity" . | nindent 4 }}
  containers:
    - name: credentials
      image: {{ include "headgate.ownImage" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [headgate, kubernetes, credentials]
      args:
        - --name={{ .Release.Name }}
        - --valid={{ .Values.credentials.valid }}
        {{- range splitList " " (include "headgate.jobParts" .) }}
        - --part={{ . }}
        {{- end }}
        {{- range splitList " " (include "headgate.dnsNames" .) }}
        - --dns={{ . }}
        {{- end }}
        {{- range splitList " " (include "headgate.redisDnsNames" .) }}
        - --redis-dns={{ . }}
        {{- end }}
        - --label=app.kubernetes.io/name=headgate
        - --label=app.kubernetes.io/instance={{ .Release.Name }}
      terminationMessagePolicy: FallbackToLogsOnError
      resources:
        requests: { cpu: 50m, memory: 64Mi }
        limits: { memory: 256Mi }
      {{- include "headgate.security" . | nindent 6 }}
      volumeMounts:
        - { name: tmp, mountPath: /tmp }
  volumes:
    - name: tmp
      emptyDir: { sizeLimit: 16Mi }
{{- end }}
