{{/* Where gateways and workers may go: rules of a NetworkPolicy. */}}

{{/* dict "cidrs" list "ports" list */}}
{{- define "capfleet.egressRule" -}}
- to:
    {{- range .cidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  ports:
    {{- range .ports }}
    - {protocol: TCP, port: {{ int . }}}
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
{{- range dig "redis" "sentinels" list $document }}{{ $ports = concat $ports (list (int (default 26379 .port)) 6379) }}{{ end -}}
{{- include "capfleet.egressRule" (dict "cidrs" .Values.networkPolicy.serviceCidrs "ports" (uniq $ports)) -}}
{{- end -}}
{{- end -}}

{{/* Devices that the document names: one with an address exactly there, one with a name in deviceCidrs. */}}
{{- define "capfleet.egressToDevices" -}}
{{- range (include "capfleet.gatewayDocument" . | fromYaml).devices }}
{{- $host := (urlParse .url).hostname }}
{{- $cidrs := $.Values.networkPolicy.deviceCidrs }}
{{- if regexMatch "^[0-9.]+$" $host }}{{ $cidrs = list (printf "%s/32" $host) }}{{ end }}
{{- if contains ":" $host }}{{ $cidrs = list (printf "%s/128" (trimAll "[]" $host)) }}{{ end }}
{{ include "capfleet.egressRule" (dict "cidrs" $cidrs "ports" (list (include "capfleet.portOf" .url | int))) }}
{{- end }}
{{- end -}}

{{/* The Kubernetes API, which tells of appliances, and those. */}}
{{- define "capfleet.egressOfDiscovery" -}}
{{- with .Values.networkPolicy.kubernetesApi -}}
{{- include "capfleet.egressRule" (dict "cidrs" .cidrs "ports" .ports) }}
{{- end }}
{{- $port := 8081 }}
{{- if .Values.appliance.enabled }}{{ $port = (include "capfleet.applianceDocument" . | fromYaml).listen.port }}{{ end }}
{{ include "capfleet.egressRule" (dict "cidrs" .Values.networkPolicy.deviceCidrs "ports" (list $port)) }}
{{- end -}}

{{/* S3 and identity providers. */}}
{{- define "capfleet.egressToServices" -}}
{{- $document := include "capfleet.gatewayDocument" . | fromYaml -}}
{{- $ports := list -}}
{{- range dig "exports" "targets" list $document -}}
{{- if eq .type "s3" }}{{ $ports = append $ports (include "capfleet.portOf" (default "https://s3" .endpoint) | int) }}{{ end -}}
{{- end -}}
{{- range dig "auth" "providers" list $document -}}
{{- with dig "jwks" "url" "" . }}{{ $ports = append $ports (include "capfleet.portOf" . | int) }}{{ end -}}
{{- end -}}
{{- if $ports -}}
{{- include "capfleet.egressRule" (dict "cidrs" .Values.networkPolicy.serviceCidrs "ports" (uniq $ports)) -}}
{{- end -}}
{{- end -}}

{{/* The port of a URL, that of its scheme when it has none; empty when that is unknown. */}}
{{- define "capfleet.portOf" -}}
{{- $url := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- default (get (dict "http" "80" "https" "443" "redis" "6379" "rediss" "6379") $url.scheme) $port -}}
{{- end -}}

{{/* All of it. */}}
{{- define "capfleet.programEgress" -}}
{{ include "capfleet.egressOfDns" . }}
{{ include "capfleet.egressToRedis" . }}
{{- include "capfleet.egressToDevices" . }}
{{- if include "capfleet.discovers" . }}
{{ include "capfleet.egressOfDiscovery" . }}
{{- end }}
{{- with include "capfleet.egressToServices" . }}
{{ . }}
{{- end }}
{{- with .Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}
