{{/* Names of the chart's objects. A component is gateway, worker, redis or appliance. */}}

{{- define "capfleet.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/*
The prefix of all names: at most 40 characters, so that a component and a pod's suffix fit after it, and without dots, which are
not allowed in names of Services.
*/}}
{{- define "capfleet.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "capfleet.name" .) .Release.Name -}}
{{- .Release.Name | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "capfleet.name" .) | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The namespace of the appliances. */}}
{{- define "capfleet.applianceNamespace" -}}
{{- default .Release.Namespace .Values.appliance.namespace -}}
{{- end -}}

{{/* The namespace and the Service by which the gateway finds appliances. */}}
{{- define "capfleet.discoveryNamespace" -}}
{{- default (include "capfleet.applianceNamespace" .) .Values.discovery.namespace -}}
{{- end -}}

{{- define "capfleet.discoveryService" -}}
{{- default (printf "%s-appliance" (include "capfleet.fullname" .)) .Values.discovery.service -}}
{{- end -}}

{{/* The name has the release's namespace in it: releases of one name in several namespaces may find appliances in the same one. */}}
{{- define "capfleet.discoveryRole" -}}
{{- printf "%s-%s-discovery" .Release.Namespace (include "capfleet.fullname" .) -}}
{{- end -}}

{{/* The Secret with the gateway's password at the appliances. */}}
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
