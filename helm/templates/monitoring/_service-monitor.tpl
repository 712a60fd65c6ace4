{{/* A ServiceMonitor. Takes dict "root" $ "component" "gateway" "namespace" NS "port" "http" "scheme" "http". */}}
{{- define "capfleet.serviceMonitor" -}}
{{- $values := .root.Values.monitoring.serviceMonitor -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "capfleet.fullname" .root }}-{{ .component }}
  namespace: {{ .namespace | quote }}
  labels: {{- include "capfleet.labels" (dict "root" .root "component" .component "further" $values.labels) | nindent 4 }}
spec:
  selector:
    matchLabels: {{- include "capfleet.selector" . | nindent 6 }}
  endpoints:
    - {{- toYaml (mergeOverwrite (include "capfleet.metricsEndpoint" . | fromYaml) (deepCopy $values.endpoint)) | nindent 6 }}
{{- end -}}

{{- define "capfleet.metricsEndpoint" -}}
port: {{ .port }}
path: /metrics
interval: {{ .root.Values.monitoring.serviceMonitor.interval }}
{{- if eq .scheme "https" }}
scheme: https
# Prometheus connects to the pod's address, which the certificate need not contain.
tlsConfig: {insecureSkipVerify: true}
{{- end }}
{{- end -}}
