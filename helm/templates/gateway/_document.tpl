{{/*
The gateway's document, which gateway and worker read: settings of the chart, overridden by values.config. The programs check
it; the chart reads from it only the settings that its own objects depend on, such as the port.
*/}}
{{- define "capfleet.gatewayDocument" -}}
{{- $wired := include "capfleet.wiredGateway" . | fromYaml -}}
{{- mergeOverwrite $wired (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{- define "capfleet.wiredGateway" -}}
listen:
  host: 0.0.0.0
  port: 8080
  {{- include "capfleet.listenSecurity" (dict "tls" .Values.gateway.tls.existingSecret "listen" .Values.config.listen) | nindent 2 }}
home: /var/lib/capfleet
redis: {{- include "capfleet.redisSettings" . | default "{}" | nindent 2 }}
auth:
  users: /etc/capfleet/users/users.yaml
  tokens:
    keys: /etc/capfleet/secrets/token-keys
exports:
  # Without workers, orders are rejected instead of waiting forever.
  enabled: {{ include "capfleet.hasWorkers" . | not | not }}
  worker:
    listen:
      host: 0.0.0.0
      port: 8082
      {{- include "capfleet.listenSecurity" (dict "tls" "" "listen" (dig "exports" "worker" "listen" dict .Values.config)) | nindent 6 }}
  {{- if .Values.storage.enabled }}
  targets:
    - name: shared
      type: directory
      path: /srv/capfleet/exports
  spool: /srv/capfleet/spool
audit:
  folder: /srv/capfleet/audit
  {{- end }}
{{- if include "capfleet.discovers" . }}
deviceDiscovery:
  - endpointSlice:
      namespace: {{ include "capfleet.discoveryNamespace" . | quote }}
      labelSelector: kubernetes.io/service-name={{ include "capfleet.discoveryService" . }}
      port: http
      # The pods of a DaemonSet get new names with each upgrade, while schedules and users refer to devices by name.
      nameBy: node
    scheme: {{ ternary "https" "http" (include "capfleet.applianceSpeaksTls" . | not | not) }}
    {{- if .Values.discovery.caSecret }}
    ca: /etc/capfleet/secrets/appliance-ca/ca.crt
    {{- end }}
    user: {{ .Values.fleetLogin.user | quote }}
    password:
      file: /etc/capfleet/secrets/fleet/password
{{- end }}
# The grace period less the pause before SIGTERM, and less 20 s for the last answers and for the release of leases.
drainS: {{ sub .Values.gateway.terminationGracePeriodSeconds (add .Values.gateway.preStopSleepSeconds 20) }}
{{- end -}}

{{/* Sets "tls" if a Secret has the certificate; else plain HTTP, unless the document itself names a certificate. */}}
{{- define "capfleet.listenSecurity" -}}
{{- if .tls -}}
tls:
  cert: /etc/capfleet/secrets/tls/tls.crt
  key: /etc/capfleet/secrets/tls/tls.key
{{- else if not (dig "tls" false (default dict .listen)) -}}
allowInsecure: true
{{- end -}}
{{- end -}}

{{/* Not empty if the gateway finds appliances by their EndpointSlices. */}}
{{- define "capfleet.discovers" -}}
{{- if and .Values.gateway.enabled (or .Values.discovery.enabled .Values.appliance.enabled) -}}true{{- end -}}
{{- end -}}

{{/* Not empty if the appliances speak HTTPS. */}}
{{- define "capfleet.applianceSpeaksTls" -}}
{{- if .Values.appliance.enabled -}}
{{- if dig "listen" "tls" false (include "capfleet.applianceDocument" . | fromYaml) -}}true{{- end -}}
{{- else if .Values.discovery.tls -}}true{{- end -}}
{{- end -}}

{{/* Not empty if workers run. They run only if exports have a place that workers and gateways can reach. */}}
{{- define "capfleet.hasWorkers" -}}
{{- if and .Values.gateway.enabled .Values.worker.enabled .Values.worker.replicas (or .Values.storage.enabled (dig "exports" "targets" list .Values.config)) -}}true{{- end -}}
{{- end -}}
