{{/* Annotations of objects that `helm test` creates. The context is the object's weight, which gives the order. */}}
{{- define "capfleet.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/*
Not empty if `helm test` can log in: as the first user or as the user of test.existingSecret, and only if clients need no
certificate.
*/}}
{{- define "capfleet.hasTest" -}}
{{- if and .Values.gateway.enabled (not (include "capfleet.needsClientCertificate" .)) (or .Values.test.existingSecret (not .Values.auth.existingSecret)) -}}true{{- end -}}
{{- end -}}
