{{/* Annotations of what `helm test` makes; the context is its place in the order. */}}
{{- define "capfleet.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/*
Not empty when `helm test` can log in: as the first user, or as the one of test.existingSecret, where no client needs a
certificate.
*/}}
{{- define "capfleet.hasTest" -}}
{{- if and .Values.gateway.enabled (not (include "capfleet.needsClientCertificate" .)) (or .Values.test.existingSecret (not .Values.auth.existingSecret)) -}}true{{- end -}}
{{- end -}}
