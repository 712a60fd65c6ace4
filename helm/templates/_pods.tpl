{{/* Parts that pods have in common. All pods except the appliances' meet the Pod Security level "restricted". */}}

{{- define "capfleet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "capfleet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* In the pod of appliance and recorder, each container sets its own user. */}}
{{- define "capfleet.applianceSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
{{ include "capfleet.containerSecurity" . }}
{{- end -}}

{{/* dict "root" $ "image" .Values.gateway.image */}}
{{- define "capfleet.image" -}}
{{- $name := .image.repository -}}
{{- with .root.Values.imageRegistry -}}{{- $name = printf "%s/%s" . $name -}}{{- end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Where pods may and should run. The context is the values of a component. */}}
{{- define "capfleet.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Spreads pods over machines and zones. Takes dict "root" $ "component" "gateway" "spread" list. */}}
{{- define "capfleet.spread" -}}
{{- if .spread }}
topologySpreadConstraints:
  {{- range .spread }}
  - topologyKey: {{ .topologyKey }}
    maxSkew: {{ default 1 .maxSkew }}
    whenUnsatisfiable: {{ default "ScheduleAnyway" .whenUnsatisfiable }}
    # Draining pods of the previous version do not count.
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels: {{- include "capfleet.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/*
A probe of a program's path. Takes dict "listen" (from its document) "path" "/livez". If clients need a certificate, which the
kubelet does not have, the probe only connects.
*/}}
{{- define "capfleet.probe" -}}
{{- if dig "tls" "clientCa" "" .listen -}}
tcpSocket:
  port: http
{{- else -}}
httpGet:
  path: {{ .path }}
  port: http
  {{- if .listen.tls }}
  scheme: HTTPS
  {{- end }}
{{- end }}
{{- end -}}

{{/*
An init container that creates a users file with one user. Takes dict "root" $ "image" IMAGE "user" NAME "role" ROLE "salt" BOOL.
The password is in the volume "login"; the file is written to the volume "users". With a salt, also from "login", the files of all
pods are equal. Gateways need this, because sessions and tickets depend on the password's hash.
*/}}
{{- define "capfleet.makeUsers" -}}
name: make-users
image: {{ include "capfleet.image" . }}
imagePullPolicy: {{ .image.pullPolicy }}
# The password is read from a file, so that it appears in no command line and in no environment.
command:
  - sh
  - -c
  - exec capfleet user add "$@" --file /etc/capfleet/users/users.yaml < /etc/capfleet/secrets/login/password
  - sh
  - {{ .user | quote }}
  - --role={{ .role }}
  {{- if .salt }}
  - --salt-file=/etc/capfleet/secrets/login/salt
  {{- end }}
securityContext: {{- include "capfleet.applianceSecurity" . | nindent 2 }}
resources: {{- toYaml .root.Values.initResources | nindent 2 }}
volumeMounts:
  - name: users
    mountPath: /etc/capfleet/users
  - name: login
    mountPath: /etc/capfleet/secrets/login
    readOnly: true
{{- end -}}
