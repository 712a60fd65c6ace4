{{/* Egress rules of a NetworkPolicy for gateways and workers. */}}

{{/* A rule. Takes dict "cidrs" list "ports" list; without ports, all ports are open. */}}
{{- define "capfleet.egressRule" -}}
- to:
    {{- range .cidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ int . }}}
    {{- else }}
    - {protocol: TCP}
    {{- end }}
{{- end -}}

{{- define "capfleet.egressOfDns" -}}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- end -}}

{{- define "capfleet.egressToRedis" -}}
{{- $document := include "capfleet.gatewayDocument" . | fromYaml -}}
{{- if .Values.redis.enabled -}}
- to:
    - podSelector:
        matchLabels: {{- include "capfleet.selector" (dict "root" $ "component" "redis") | nindent 10 }}
  ports:
    - {protocol: TCP, port: 6379}
{{- else -}}
{{- $ports := list -}}
{{- with dig "redis" "url" "" $document }}{{ $ports = append $ports (include "capfleet.portOf" . | default "6379" | int) }}{{ end -}}
{{- range dig "redis" "sentinels" list $document }}{{ $ports = concat $ports (list (int (default 26379 .port)) (int $.Values.redis.external.sentinel.redisPort)) }}{{ end -}}
{{- include "capfleet.egressRule" (dict "cidrs" .Values.networkPolicy.serviceCidrs "ports" (uniq $ports)) -}}
{{- end -}}
{{- end -}}

{{/* Devices in the document: one with an IP address is reached exactly there, one with a host name anywhere in deviceCidrs. */}}
{{- define "capfleet.egressToDevices" -}}
{{- range (include "capfleet.gatewayDocument" . | fromYaml).devices }}
{{- $host := (urlParse .url).hostname }}
{{- $cidrs := $.Values.networkPolicy.deviceCidrs }}
{{- if regexMatch "^[0-9.]+$" $host }}{{ $cidrs = list (printf "%s/32" $host) }}{{ end }}
{{- if contains ":" $host }}{{ $cidrs = list (printf "%s/128" (trimAll "[]" $host)) }}{{ end }}
{{ include "capfleet.egressRule" (dict "cidrs" $cidrs "ports" (list (include "capfleet.portOf" .url | int))) }}
{{- end }}
{{- end -}}

{{/*
The directories of deviceDiscovery and their devices. With DNS the devices' ports are not known in advance; the port of appliances
in Kubernetes is.
*/}}
{{- define "capfleet.egressOfDiscovery" -}}
{{- range (include "capfleet.gatewayDocument" . | fromYaml).deviceDiscovery }}
{{- $ports := list }}
{{- with .endpointSlice }}
{{- $ports = list (int .port | default (include "capfleet.appliancePort" $)) }}
{{ include "capfleet.egressRule" $.Values.networkPolicy.kubernetesApi }}
{{- end }}
{{ include "capfleet.egressRule" (dict "cidrs" $.Values.networkPolicy.deviceCidrs "ports" $ports) }}
{{- end }}
{{- end -}}

{{- define "capfleet.appliancePort" -}}
{{- if .Values.appliance.enabled -}}
{{- (include "capfleet.applianceDocument" . | fromYaml).listen.port -}}
{{- else -}}
{{- .Values.discovery.port -}}
{{- end -}}
{{- end -}}

{{/* Rules for S3, identity providers and the trace collector. */}}
{{- define "capfleet.egressToServices" -}}
{{- $document := include "capfleet.gatewayDocument" . | fromYaml -}}
{{- $ports := list -}}
{{- range dig "exports" "targets" list $document -}}
{{- if eq .type "s3" }}{{ $ports = append $ports (include "capfleet.portOf" (default "https://s3" .endpoint) | int) }}{{ end -}}
{{- end -}}
{{- range dig "auth" "providers" list $document -}}
{{- with dig "jwks" "url" "" . }}{{ $ports = append $ports (include "capfleet.portOf" . | int) }}{{ end -}}
{{- end -}}
{{- with dig "tracing" "endpoint" "" $document }}{{ $ports = append $ports (include "capfleet.portOf" . | int) }}{{ end -}}
{{- if $ports -}}
{{- include "capfleet.egressRule" (dict "cidrs" .Values.networkPolicy.serviceCidrs "ports" (uniq $ports)) -}}
{{- end -}}
{{- end -}}

{{/* The port of a URL. Without one, the default port of its scheme; empty if the scheme is unknown. */}}
{{- define "capfleet.portOf" -}}
{{- $url := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- default (get (dict "http" "80" "https" "443" "redis" "6379" "rediss" "6379") $url.scheme) $port -}}
{{- end -}}

{{/* All egress rules together. */}}
{{- define "capfleet.programEgress" -}}
{{ include "capfleet.egressOfDns" . }}
{{ include "capfleet.egressToRedis" . }}
{{- include "capfleet.egressToDevices" . }}
{{- include "capfleet.egressOfDiscovery" . }}
{{- with include "capfleet.egressToServices" . }}
{{ . }}
{{- end }}
{{- with .Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}
