{{/* The scheme and the port of the gateway's Service. */}}

{{- define "capfleet.gatewayScheme" -}}
{{- if (include "capfleet.gatewayDocument" . | fromYaml).listen.tls -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{/* Not empty if clients need a certificate. */}}
{{- define "capfleet.needsClientCertificate" -}}
{{- dig "listen" "tls" "clientCa" "" (include "capfleet.gatewayDocument" . | fromYaml) -}}
{{- end -}}

{{- define "capfleet.servicePort" -}}
{{- if .Values.service.port -}}
{{- .Values.service.port -}}
{{- else -}}
{{- ternary 443 80 (eq (include "capfleet.gatewayScheme" .) "https") -}}
{{- end -}}
{{- end -}}

{{/* The gateway's URL inside the cluster. */}}
{{- define "capfleet.gatewayUrl" -}}
{{- printf "%s://%s-gateway.%s.svc:%s" (include "capfleet.gatewayScheme" .) (include "capfleet.fullname" .) .Release.Namespace (include "capfleet.servicePort" .) -}}
{{- end -}}

{{/* Annotations of an Ingress that tell the common controllers that gateways speak HTTPS. */}}
{{- define "capfleet.ingressTls" -}}
{{- if eq (include "capfleet.gatewayScheme" .) "https" -}}
nginx.ingress.kubernetes.io/backend-protocol: HTTPS
nginx.org/ssl-services: {{ include "capfleet.fullname" . }}-gateway
haproxy.org/server-ssl: "true"
haproxy-ingress.github.io/secure-backends: "true"
{{- end -}}
{{- end -}}
