{{/* Values that fit the schema one by one, but not together: each refusal names the key and says how to mend it. */}}
{{- define "capfleet.refuse" -}}
{{- if not (or .Values.gateway.enabled .Values.appliance.enabled) -}}
{{- fail "gateway.enabled and appliance.enabled are both false, so there is nothing to install; set one of them" -}}
{{- end -}}
{{- include "capfleet.refuseLabels" . -}}
{{- include "capfleet.refuseMetrics" . -}}
{{- if .Values.gateway.enabled -}}
{{- include "capfleet.refuseFleet" . -}}
{{- include "capfleet.refuseRedis" . -}}
{{- include "capfleet.refuseWorkers" . -}}
{{- include "capfleet.refuseRoutes" . -}}
{{- include "capfleet.refuseScaling" . -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.refuseLabels" -}}
{{- $labels := dict "commonLabels" .Values.commonLabels -}}
{{- range $component := list "gateway" "worker" "appliance" -}}
{{- $_ := set $labels (printf "%s.podLabels" $component) (get $.Values $component).podLabels -}}
{{- end -}}
{{- range $key, $given := $labels -}}
{{- range $label := list "name" "instance" "component" "managed-by" -}}
{{- if hasKey $given (printf "app.kubernetes.io/%s" $label) -}}
{{- fail (printf "%s: app.kubernetes.io/%s is the chart's own, by which its objects are found" $key $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Metrics need a login unless the program's document opens them; Prometheus would hear 401. */}}
{{- define "capfleet.refuseMetrics" -}}
{{- with .Values.monitoring.serviceMonitor -}}
{{- if and .enabled (not (or .endpoint.basicAuth .endpoint.authorization .endpoint.oauth2 .endpoint.bearerTokenSecret)) -}}
{{- if and $.Values.gateway.enabled (not (dig "auth" "anonymousMetrics" false (include "capfleet.gatewayDocument" $ | fromYaml))) -}}
{{- fail "monitoring.serviceMonitor.endpoint: has no login, and the metrics of gateways need one; set basicAuth there, or config.auth.anonymousMetrics: true" -}}
{{- end -}}
{{- if and $.Values.appliance.enabled (not (dig "auth" "anonymousMetrics" false (include "capfleet.applianceDocument" $ | fromYaml))) -}}
{{- fail "monitoring.serviceMonitor.endpoint: has no login, and the metrics of appliances need one; set basicAuth there, or appliance.config.auth.anonymousMetrics: true" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.refuseFleet" -}}
{{- $document := include "capfleet.gatewayDocument" . | fromYaml -}}
{{- if not (or $document.devices $document.deviceDiscovery) -}}
{{- fail "config.devices: the gateway has no device; name some, or set appliance.enabled or discovery.enabled" -}}
{{- end -}}
{{- if .Values.appliance.enabled -}}
{{- if or .Values.discovery.namespace .Values.discovery.service .Values.discovery.tls -}}
{{- fail "discovery.namespace, service and tls are of another release's appliances, and appliance.enabled is true; name those in config.deviceDiscovery, beside this release's" -}}
{{- end -}}
{{- if and .Values.appliance.auth.existingSecret (not .Values.fleetLogin.existingSecret) -}}
{{- fail "fleetLogin.existingSecret: appliance.auth.existingSecret has the users, so name the Secret with the password of the one that the gateway is" -}}
{{- end -}}
{{- else if and .Values.discovery.enabled (not .Values.fleetLogin.existingSecret) -}}
{{- fail "fleetLogin.existingSecret: name a copy of the Secret by which the appliances of the other release are logged in to" -}}
{{- end -}}
{{- range $name, $_ := .Values.secrets -}}
{{- if or (has $name (list "redis" "sentinel" "redis-tls" "fleet" "appliance-ca" "token-keys" "tls" "login")) (not (regexMatch "^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$" $name)) -}}
{{- fail (printf "secrets.%s: choose another name: the chart has one of its own, or it is not of a-z, 0-9 and -" $name) -}}
{{- end -}}
{{- end -}}
{{- if ne $document.home "/var/lib/capfleet" -}}
{{- fail "config.home: leave it out: the chart mounts /var/lib/capfleet, and nothing else can be written" -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.refuseRedis" -}}
{{- $document := include "capfleet.gatewayDocument" . | fromYaml -}}
{{- if not (or (dig "redis" "url" "" $document) (dig "redis" "sentinels" list $document)) -}}
{{- fail "redis.external.url: gateways and workers share a Redis; set redis.enabled, or say where another one is" -}}
{{- end -}}
{{- with .Values.redis.external -}}
{{- if and $.Values.redis.enabled (or .url .sentinel.addresses) -}}
{{- fail (printf "redis.external.%s: is set while redis.enabled is true; set redis.enabled: false to use it" (ternary "url" "sentinel.addresses" (ne .url ""))) -}}
{{- end -}}
{{- if and .url .sentinel.addresses -}}
{{- fail "redis.external.url: leave it out: redis.external.sentinel.addresses tell where Redis is" -}}
{{- end -}}
{{- if and .tls.existingSecret (hasPrefix "redis://" .url) -}}
{{- fail "redis.external.url: must begin with rediss:// where redis.external.tls.existingSecret is set" -}}
{{- end -}}
{{- if and .tls.clientCertificate (not .tls.existingSecret) -}}
{{- fail "redis.external.tls.existingSecret: name the Secret whose tls.crt and tls.key clientCertificate shall show" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.refuseWorkers" -}}
{{- if and (include "capfleet.hasWorkers" .) (gt (int .Values.worker.replicas) 1) (not .Values.storage.enabled) -}}
{{- fail "worker.replicas: more than one worker share what they fetch; set storage.enabled, or worker.replicas: 1" -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.refuseRoutes" -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs: name the Gateway that the route belongs to" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (eq (include "capfleet.gatewayScheme" .) "https") (not .Values.httpRoute.backendTls.hostname) -}}
{{- fail "httpRoute.backendTls.hostname: gateways speak HTTPS; name what their certificate is for, or let them speak plain HTTP" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host: say by which name the gateway is reached" -}}
{{- end -}}
{{- include "capfleet.refuseUnknownCallers" . -}}
{{- end -}}

{{/*
Failed logins are counted by the address of the caller. Without trustedProxies this is the address of the proxy for everybody, so
that anyone can use up the failed logins of all users.
*/}}
{{- define "capfleet.refuseUnknownCallers" -}}
{{- $route := ternary "httpRoute.enabled" (ternary "ingress.enabled" "" .Values.ingress.enabled) .Values.httpRoute.enabled -}}
{{- $document := include "capfleet.gatewayDocument" . | fromYaml -}}
{{- if and $route (not $document.listen.trustedProxies) (not .Values.gateway.allowUnknownCallers) -}}
{{- fail (printf "config.listen.trustedProxies: names no network, and %s is true: all callers have the address of the proxy then, and anyone who fails to log in often enough locks out all password logins; name the network of the proxy's pods, such as [10.244.0.0/16], or set gateway.allowUnknownCallers: true if this is meant" $route) -}}
{{- end -}}
{{- end -}}

{{/* A budget that lets no gateway go stops who empties a node; the context is .Values.gateway. */}}
{{- define "capfleet.refuseBudget" -}}
{{- $fewest := ternary .autoscaling.minReplicas .replicas .autoscaling.enabled | int -}}
{{- $lets := true -}}
{{- with .podDisruptionBudget -}}
{{- if hasKey . "minAvailable" -}}
{{- $kept := toString .minAvailable -}}
{{- if or (eq $kept "100%") (and (regexMatch "^[0-9]+$" $kept) (ge (atoi $kept) $fewest)) }}{{ $lets = false }}{{ end -}}
{{- else if has (toString .maxUnavailable) (list "0" "0%") }}{{ $lets = false }}{{ end -}}
{{- end -}}
{{- if and (not $lets) (gt $fewest 0) -}}
{{- fail "gateway.podDisruptionBudget: lets no gateway go, so that no node could be emptied; allow one at least" -}}
{{- end -}}
{{- end -}}

{{/* How many gateways there are, how they end, and by what an autoscaler goes. */}}
{{- define "capfleet.refuseScaling" -}}
{{- with .Values.gateway -}}
{{- if lt (int .terminationGracePeriodSeconds) (add .preStopSleepSeconds 21 | int) -}}
{{- fail "gateway.terminationGracePeriodSeconds: must be more than gateway.preStopSleepSeconds and 20 s for the last answers, or no download is waited for" -}}
{{- end -}}
{{- include "capfleet.refuseBudget" . -}}
{{- with .autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- fail "gateway.autoscaling.minReplicas: must not be more than gateway.autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and .enabled (not (or .targetCPUUtilizationPercentage .targetStreams)) -}}
{{- fail "gateway.autoscaling: goes by nothing; set targetCPUUtilizationPercentage or targetStreams" -}}
{{- end -}}
{{- if and .enabled .targetCPUUtilizationPercentage (not (dig "requests" "cpu" "" $.Values.gateway.resources)) -}}
{{- fail "gateway.resources.requests.cpu: gateway.autoscaling.targetCPUUtilizationPercentage is a share of it; say how much" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
