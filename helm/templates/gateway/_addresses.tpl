{{/* How the gateway's Service is reached. */}}

{{- define "capfleet.gatewayScheme" -}}
{{- if (include "capfleet.gatewayDocument" . | fromYaml).listen.tls -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{/* Not empty when clients must show a certificate. */}}
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

{{/* As pods of the cluster see it. */}}
{{- define "capfleet.gatewayUrl" -}}
{{- printf "%s://%s-gateway.%s.svc:%s" (include "capfleet.gatewayScheme" .) (include "capfleet.fullname" .) .Release.Namespace (include "capfleet.servicePort" .) -}}
{{- end -}}

{{/* What tells the usual controllers that gateways speak HTTPS: annotations of an Ingress. */}}
{{- define "capfleet.ingressTls" -}}
{{- if eq (include "capfleet.gatewayScheme" .) "https" -}}
nginx.ingress.kubernetes.io/backend-protocol: HTTPS
nginx.org/ssl-services: {{ include "capfleet.fullname" . }}-gateway
haproxy.org/server-ssl: "true"
haproxy-ingress.github.io/secure-backends: "true"
{{- end -}}
{{- end -}}
