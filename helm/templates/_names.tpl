{{/* Names of the chart's objects. A component is gateway, worker, redis or appliance. */}}

{{- define "capfleet.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 40 characters, so that a component, and the pod's own ending, fit behind it; no dots, which Services may not have. */}}
{{- define "capfleet.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "capfleet.name" .) .Release.Name -}}
{{- .Release.Name | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "capfleet.name" .) | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Where the appliances are. */}}
{{- define "capfleet.applianceNamespace" -}}
{{- default .Release.Namespace .Values.appliance.namespace -}}
{{- end -}}

{{/* Where the gateway looks for appliances, and by which Service. */}}
{{- define "capfleet.discoveryNamespace" -}}
{{- default (include "capfleet.applianceNamespace" .) .Values.discovery.namespace -}}
{{- end -}}

{{- define "capfleet.discoveryService" -}}
{{- default (printf "%s-appliance" (include "capfleet.fullname" .)) .Values.discovery.service -}}
{{- end -}}

{{/* Releases of one name in several namespaces may look for appliances in the same one. */}}
{{- define "capfleet.discoveryRole" -}}
{{- printf "%s-%s-discovery" .Release.Namespace (include "capfleet.fullname" .) -}}
{{- end -}}

{{/* The Secret with what the gateway logs in with at the appliances. */}}
{{- define "capfleet.fleetLoginSecret" -}}
{{- default (printf "%s-fleet-login" (include "capfleet.fullname" .)) .Values.fleetLogin.existingSecret -}}
{{- end -}}

{{/* The Secret with the first user's name and password. */}}
{{- define "capfleet.firstUserSecret" -}}
{{- printf "%s-first-user" (include "capfleet.fullname" .) -}}
{{- end -}}

{{- define "capfleet.tokenKeysSecret" -}}
{{- default (printf "%s-token-keys" (include "capfleet.fullname" .)) .Values.auth.tokenKeys.existingSecret -}}
{{- end -}}

{{- define "capfleet.storageClaim" -}}
{{- default (printf "%s-storage" (include "capfleet.fullname" .)) .Values.storage.existingClaim -}}
{{- end -}}
