{{/* The appliance's document, which its recorder reads too: settings of the chart, overridden by appliance.config. */}}
{{- define "capfleet.applianceDocument" -}}
{{- $wired := include "capfleet.wiredAppliance" . | fromYaml -}}
{{- mergeOverwrite $wired (deepCopy .Values.appliance.config) | toYaml -}}
{{- end -}}

{{- define "capfleet.wiredAppliance" -}}
listen:
  # A port of the node, because the pods use the node's network.
  host: 0.0.0.0
  port: 8081
  {{- include "capfleet.listenSecurity" (dict "tls" .Values.appliance.tls.existingSecret "listen" .Values.appliance.config.listen) | nindent 2 }}
store: /var/lib/capfleet/store
auth:
  users: /etc/capfleet/users/users.yaml
downloads:
  # The remaining 30 s are for the recorder, which then writes out what it has in memory and ends.
  drainMs: {{ mul 1000 (sub .Values.appliance.terminationGracePeriodSeconds 30) }}
{{- end -}}
