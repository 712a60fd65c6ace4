{{/* Where Redis is, for the gateway's document: its setting "redis". */}}

{{- define "capfleet.redisSecret" -}}
{{- if .Values.redis.enabled -}}
{{- default (printf "%s-redis" (include "capfleet.fullname" .)) .Values.redis.existingSecret -}}
{{- else -}}
{{- .Values.redis.external.existingSecret -}}
{{- end -}}
{{- end -}}

{{- define "capfleet.redisSettings" -}}
{{- if .Values.redis.enabled -}}
url: redis://{{ include "capfleet.fullname" . }}-redis:6379/0
password:
  file: /etc/capfleet/secrets/redis/password
{{- else -}}
{{- include "capfleet.externalRedis" .Values.redis.external -}}
{{- end -}}
{{- end -}}

{{/* Where the operator's Redis is: by URL, or as its Sentinels tell. */}}
{{- define "capfleet.externalRedis" -}}
{{- with .url }}
url: {{ . | quote }}
{{- end }}
{{- with .sentinel.addresses }}
sentinels: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .sentinel.addresses }}
sentinelName: {{ .sentinel.name | quote }}
{{- if .sentinel.existingSecret }}
sentinelPassword:
  file: /etc/capfleet/secrets/sentinel/password
{{- end }}
{{- end }}
{{- with .user }}
user: {{ . | quote }}
{{- end }}
{{- if .existingSecret }}
password:
  file: /etc/capfleet/secrets/redis/password
{{- end }}
{{- if .tls.existingSecret }}
ca: /etc/capfleet/secrets/redis-tls/ca.crt
{{- if .tls.clientCertificate }}
cert: /etc/capfleet/secrets/redis-tls/tls.crt
key: /etc/capfleet/secrets/redis-tls/tls.key
{{- end }}
{{- end }}
{{- end -}}

{{/* Secrets of Redis that gateways and workers mount: lines of NAME SECRET. */}}
{{- define "capfleet.redisSecrets" -}}
{{- with include "capfleet.redisSecret" . }}
redis: {{ . }}
{{- end }}
{{- if not .Values.redis.enabled }}
{{- with .Values.redis.external.sentinel.existingSecret }}
sentinel: {{ . }}
{{- end }}
{{- with .Values.redis.external.tls.existingSecret }}
redis-tls: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Of the Redis of this release. */}}
{{- define "capfleet.redisConf" -}}
port 6379
dir /data
# A key that is thrown away may be a lease, and a forgotten lease is a fifth stream on a device.
maxmemory-policy noeviction
appendonly yes
appendfsync everysec
save ""
{{- with .Values.redis.extraConfig }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "capfleet.redisProbe" -}}
exec:
  command:
    - sh
    - -c
    - REDISCLI_AUTH="$(cat /etc/redis/secret/password)" redis-cli ping | grep -q PONG
{{- end -}}
