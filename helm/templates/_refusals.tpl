{{/* Values that are each valid by the schema, but not together: each message names the key and says how to fix it. */}}
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
{{- fail (printf "%s: must not set app.kubernetes.io/%s, by which the chart selects its objects; remove it" $key $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Metrics need a login unless the program's document makes them anonymous; Prometheus would get 401. */}}
{{- define "capfleet.refuseMetrics" -}}
{{- with .Values.monitoring.serviceMonitor -}}
{{- if and .enabled (not (or .endpoint.basicAuth .endpoint.authorization .endpoint.oauth2 .endpoint.bearerTokenSecret)) -}}
{{- if and $.Values.gateway.enabled (not (dig "auth" "anonymousMetrics" false (include "capfleet.gatewayDocument" $ | fromYaml))) -}}
{{- fail "monitoring.serviceMonitor.endpoint: the metrics of gateways need a login; set basicAuth there, or config.auth.anonymousMetrics: true" -}}
{{- end -}}
{{- if and $.Values.appliance.enabled (not (dig "auth" "anonymousMetrics" false (include "capfleet.applianceDocument" $ | fromYaml))) -}}
{{- fail "monitoring.serviceMonitor.endpoint: the metrics of appliances need a login; set basicAuth there, or appliance.config.auth.anonymousMetrics: true" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.refuseFleet" -}}
{{- $document := include "capfleet.gatewayDocument" . | fromYaml -}}
{{- if not (or $document.devices $document.deviceDiscovery) -}}
{{- fail "config.devices: the gateway has no devices; add some, or set appliance.enabled or discovery.enabled" -}}
{{- end -}}
{{- if .Values.appliance.enabled -}}
{{- if or .Values.discovery.namespace .Values.discovery.service .Values.discovery.tls -}}
{{- fail "discovery.namespace, service, tls: describe appliances of another release, but appliance.enabled is true; add those to config.deviceDiscovery, beside this release's" -}}
{{- end -}}
{{- if and .Values.appliance.auth.existingSecret (not .Values.fleetLogin.existingSecret) -}}
{{- fail "fleetLogin.existingSecret: is required with appliance.auth.existingSecret; name the Secret with the password of the gateway's user there" -}}
{{- end -}}
{{- else if and .Values.discovery.enabled (not .Values.fleetLogin.existingSecret) -}}
{{- fail "fleetLogin.existingSecret: is required; name a copy of the Secret with the gateway's password at the other release's appliances" -}}
{{- end -}}
{{- range $name, $_ := .Values.secrets -}}
{{- if or (has $name (list "redis" "sentinel" "redis-tls" "fleet" "appliance-ca" "token-keys" "tls" "login")) (not (regexMatch "^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$" $name)) -}}
{{- fail (printf "secrets.%s: the chart uses this name itself, or it has other characters than a-z, 0-9 and -; choose another name" $name) -}}
{{- end -}}
{{- end -}}
{{- if ne $document.home "/var/lib/capfleet" -}}
{{- fail "config.home: must not be set: only /var/lib/capfleet, which the chart mounts, can be written to" -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.refuseRedis" -}}
{{- $document := include "capfleet.gatewayDocument" . | fromYaml -}}
{{- if not (or (dig "redis" "url" "" $document) (dig "redis" "sentinels" list $document)) -}}
{{- fail "redis.external.url: gateways and workers need a shared Redis; set redis.enabled, or the URL of another Redis" -}}
{{- end -}}
{{- with .Values.redis.external -}}
{{- if and $.Values.redis.enabled (or .url .sentinel.addresses) -}}
{{- fail (printf "redis.external.%s: has no effect while redis.enabled is true; set redis.enabled: false to use it" (ternary "url" "sentinel.addresses" (ne .url ""))) -}}
{{- end -}}
{{- if and .url .sentinel.addresses -}}
{{- fail "redis.external.url: must not be set together with redis.external.sentinel.addresses; remove one of them" -}}
{{- end -}}
{{- if and .tls.existingSecret (hasPrefix "redis://" .url) -}}
{{- fail "redis.external.url: must begin with rediss:// if redis.external.tls.existingSecret is set" -}}
{{- end -}}
{{- if and .tls.clientCertificate (not .tls.existingSecret) -}}
{{- fail "redis.external.tls.existingSecret: is required with redis.external.tls.clientCertificate; name the Secret with tls.crt and tls.key" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.refuseWorkers" -}}
{{- if and (include "capfleet.hasWorkers" .) (gt (int .Values.worker.replicas) 1) (not .Values.storage.enabled) -}}
{{- fail "worker.replicas: more than one worker needs shared storage; set storage.enabled, or worker.replicas: 1" -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.refuseRoutes" -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs: name the Gateway that the route belongs to" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (eq (include "capfleet.gatewayScheme" .) "https") (not .Values.httpRoute.backendTls.hostname) -}}
{{- fail "httpRoute.backendTls.hostname: is required because gateways speak HTTPS; set the host name of their certificate, or let them speak plain HTTP" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.host: set the host name at which clients reach the gateway" -}}
{{- end -}}
{{- include "capfleet.refuseUnknownCallers" . -}}
{{- end -}}

{{/*
Failed logins are counted by the caller's address. Without trustedProxies all callers have the proxy's address, so that anyone
can use up the failed logins of all users.
*/}}
{{- define "capfleet.refuseUnknownCallers" -}}
{{- $route := ternary "httpRoute.enabled" (ternary "ingress.enabled" "" .Values.ingress.enabled) .Values.httpRoute.enabled -}}
{{- $document := include "capfleet.gatewayDocument" . | fromYaml -}}
{{- if and $route (not $document.listen.trustedProxies) (not .Values.gateway.allowUnknownCallers) -}}
{{- fail (printf "config.listen.trustedProxies: is empty, and %s is true. All callers then have the proxy's address, and anyone who fails to log in often enough locks out all password logins. Set the network of the proxy's pods, such as [10.244.0.0/16], or gateway.allowUnknownCallers: true to accept this" $route) -}}
{{- end -}}
{{- end -}}

{{/* A budget that never allows an eviction blocks `kubectl drain`. The context is .Values.gateway. */}}
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
{{- fail "gateway.podDisruptionBudget: never allows an eviction, which blocks kubectl drain; allow at least one" -}}
{{- end -}}
{{- end -}}

{{/* The number of gateways, how they shut down, and what an autoscaler scales by. */}}
{{- define "capfleet.refuseScaling" -}}
{{- with .Values.gateway -}}
{{- if lt (int .terminationGracePeriodSeconds) (add .preStopSleepSeconds 21 | int) -}}
{{- fail "gateway.terminationGracePeriodSeconds: must exceed gateway.preStopSleepSeconds by more than 20 s, or no download is waited for" -}}
{{- end -}}
{{- include "capfleet.refuseBudget" . -}}
{{- with .autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- fail "gateway.autoscaling.minReplicas: must not be more than gateway.autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and .enabled (not (or .targetCPUUtilizationPercentage .targetStreams)) -}}
{{- fail "gateway.autoscaling: has no target; set targetCPUUtilizationPercentage or targetStreams" -}}
{{- end -}}
{{- if and .enabled .targetCPUUtilizationPercentage (not (dig "requests" "cpu" "" $.Values.gateway.resources)) -}}
{{- fail "gateway.resources.requests.cpu: is required, because gateway.autoscaling.targetCPUUtilizationPercentage is a percentage of it" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
