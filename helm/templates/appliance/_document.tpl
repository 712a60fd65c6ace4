{{/* The appliance's document, which its recorder reads too: what the chart wires, and over it appliance.config. */}}
{{- define "capfleet.applianceDocument" -}}
{{- $wired := include "capfleet.wiredAppliance" . | fromYaml -}}
{{- mergeOverwrite $wired (deepCopy .Values.appliance.config) | toYaml -}}
{{- end -}}

{{- define "capfleet.wiredAppliance" -}}
listen:
  # Of the node: its pods are in the node's network.
  host: 0.0.0.0
  port: 8081
  {{- include "capfleet.listenSecurity" (dict "tls" .Values.appliance.tls.existingSecret "listen" .Values.appliance.config.listen) | nindent 2 }}
store: /var/lib/capfleet/store
auth:
  users: /etc/capfleet/users/users.yaml
downloads:
  # The recorder ends behind them, and writes out what it still has.
  drainMs: {{ mul 1000 (sub .Values.appliance.terminationGracePeriodSeconds 30) }}
{{- end -}}
