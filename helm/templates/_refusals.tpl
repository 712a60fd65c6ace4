{{/* Values that fit the schema one by one, but not together: each refusal names the key and says how to mend it. */}}
{{- define "capfleet.refuse" -}}
{{- if not (or .Values.gateway.enabled .Values.appliance.enabled) -}}
{{- fail "gateway.enabled and appliance.enabled are both false, so there is nothing to install; set one of them" -}}
{{- end -}}
{{- if .Values.gateway.enabled -}}
{{- include "capfleet.refuseGateway" . -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.refuseGateway" -}}
{{- $document := include "capfleet.gatewayDocument" . | fromYaml -}}
{{- if not (or $document.devices $document.deviceDiscovery) -}}
{{- fail "config.devices: the gateway has no device; name some, or set appliance.enabled or discovery.enabled" -}}
{{- end -}}
{{- if not (or (dig "redis" "url" "" $document) (dig "redis" "sentinels" list $document)) -}}
{{- fail "redis.external.url: gateways and workers share a Redis; set redis.enabled, or say where another one is" -}}
{{- end -}}
{{- if and .Values.redis.enabled .Values.redis.external.url -}}
{{- fail "redis.external.url: is set while redis.enabled is true; set redis.enabled: false to use it" -}}
{{- end -}}
{{- if and (include "capfleet.hasWorkers" .) (gt (int .Values.worker.replicas) 1) (not (dig "exports" "spool" "" $document)) -}}
{{- fail "worker.replicas: more than one worker share what they fetch; set storage.enabled, or worker.replicas: 1" -}}
{{- end -}}
{{- if and .Values.discovery.enabled (not .Values.appliance.enabled) (not .Values.fleetLogin.existingSecret) -}}
{{- fail "fleetLogin.existingSecret: name a copy of the Secret by which the appliances of the other release are logged in to" -}}
{{- end -}}
{{- range $name, $_ := .Values.secrets -}}
{{- if or (has $name (list "redis" "sentinel" "redis-tls" "fleet" "appliance-ca" "token-keys" "tls" "login")) (not (regexMatch "^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$" $name)) -}}
{{- fail (printf "secrets.%s: choose another name: the chart has one of its own, or it is not of a-z, 0-9 and -" $name) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs: name the Gateway that the route belongs to" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (eq (include "capfleet.gatewayScheme" .) "https") (not .Values.httpRoute.backendTls.hostname) -}}
{{- fail "httpRoute.backendTls.hostname: gateways speak HTTPS; name what their certificate is for, or let them speak plain HTTP" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host: say by which name the gateway is reached" -}}
{{- end -}}
{{- if le (int .Values.gateway.terminationGracePeriodSeconds) (int .Values.gateway.preStopSleepSeconds) -}}
{{- fail "gateway.preStopSleepSeconds: must be less than gateway.terminationGracePeriodSeconds" -}}
{{- end -}}
{{- with .Values.gateway.autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- fail "gateway.autoscaling.minReplicas: must not be more than gateway.autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and .enabled (not (or .targetCPUUtilizationPercentage .targetStreams)) -}}
{{- fail "gateway.autoscaling: goes by nothing; set targetCPUUtilizationPercentage or targetStreams" -}}
{{- end -}}
{{- end -}}
{{- end -}}
