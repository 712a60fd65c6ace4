{{/* A ServiceMonitor: dict "root" $ "component" "gateway" "namespace" NS "port" "http" "scheme" "http". */}}
{{- define "capfleet.serviceMonitor" -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  name: {{ include "capfleet.fullname" .root }}-{{ .component }}
  namespace: {{ .namespace }}
  labels:
    {{- include "capfleet.labels" . | nindent 4 }}
    {{- with .root.Values.monitoring.serviceMonitor.labels }}{{ toYaml . | nindent 4 }}{{- end }}
spec:
  selector:
    matchLabels: {{- include "capfleet.selector" . | nindent 6 }}
  endpoints:
    - port: {{ .port }}
      path: /metrics
      interval: {{ .root.Values.monitoring.serviceMonitor.interval }}
      {{- if eq .scheme "https" }}
      scheme: https
      # It is asked by its address, for which the certificate need not be.
      tlsConfig: {insecureSkipVerify: true}
      {{- end }}
{{- end -}}
