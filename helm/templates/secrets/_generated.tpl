{{/*
A value of a Secret that is there, in the form of `data`, so that an upgrade keeps what the installation has generated:
dict "namespace" NS "name" NAME "key" KEY. Empty when there is none, and where no cluster is asked (helm template).
*/}}
{{- define "capfleet.kept" -}}
{{- dig "data" .key "" (lookup "v1" "Secret" .namespace .name | default dict) -}}
{{- end -}}
