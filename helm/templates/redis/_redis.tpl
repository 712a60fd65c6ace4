{{/* The setting "redis" of the gateway's document. */}}

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

{{/* Settings for the operator's own Redis: its URL, or its Sentinels. */}}
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

{{/* The Secrets of Redis that gateways and workers mount, as lines of NAME SECRET. */}}
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

{{/* The configuration of this release's own Redis. */}}
{{- define "capfleet.redisConf" -}}
port 6379
dir /data
# Redis must not evict keys: an evicted key may be a lease, and a lost lease allows a fifth stream on a device.
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
