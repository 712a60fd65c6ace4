{{/*
The current value of a Secret's key, in the form of `data`, so that an upgrade keeps what the installation generated. Takes
dict "namespace" NS "name" NAME "key" KEY. Empty if it does not exist or there is no cluster to ask (helm template).
*/}}
{{- define "capfleet.kept" -}}
{{- dig "data" .key "" (lookup "v1" "Secret" .namespace .name | default dict) -}}
{{- end -}}
