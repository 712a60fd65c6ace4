#!/usr/bin/env bash
# A step of a playbook: the packets of an alert as a file, its receipt, and a link to the timeline. Prints JSON for the next step.
#   CAPFLEET_URL=https://gateway.example.net CAPFLEET_TOKEN=... fetch-packets.sh 2026-11-02T09:01:30Z 203.0.113.10 case-7
set -euo pipefail
alert=$1 host=$2 case=$3
begin=$(date -u -d "$alert - 1 minute" +%Y-%m-%dT%H:%M:%SZ)
end=$(date -u -d "$alert + 1 minute" +%Y-%m-%dT%H:%M:%SZ)
# In a file, so that no list of processes shows the token.
login=$(mktemp)
trap 'rm -f "$login" "$case.head"' EXIT
printf 'header = "Authorization: Bearer %s"\n' "$CAPFLEET_TOKEN" > "$login"
get() { curl -fsS --retry 5 --retry-connrefused -K "$login" "$@"; }
get -D "$case.head" -o "$case.pcap" \
  "$CAPFLEET_URL/api/v1/pcap/timerange?TSBegin=$begin&TSEnd=$end&FilterBPF=host+$host&MaxBytes=1000000000"
id=$(sed -n 's/^Capfleet-Request-Id: *\([0-9a-f-]*\).*/\1/ip' "$case.head")
get -o "$case.receipt.json" "$CAPFLEET_URL/v1/requests/$id"
printf '{"case":"%s","file":"%s.pcap","receipt":"%s.receipt.json","link":"%s/#/timeline?TSBegin=%s&TSEnd=%s&FilterBPF=host%%20%s"}\n' \
  "$case" "$case" "$case" "$CAPFLEET_URL" "$begin" "$end" "$host"
