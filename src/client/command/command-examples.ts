/** The examples in the help of each command, by its words after "capfleet". */
import type { Command } from 'commander'

/** A command line to copy; what follows # is a comment of the shell. */
export const COMMAND_EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  login: [
    'capfleet login https://capfleet.example.org --user ann',
    'capfleet login https://capfleet.example.org --token < token.txt',
  ],
  'context list': ['capfleet context list'],
  'context use': ['capfleet context use capfleet.example.org'],
  'context remove': ['capfleet context remove capfleet.example.org'],
  devices: ['capfleet devices', 'capfleet devices -o csv > devices.csv'],
  captures: [
    'capfleet captures',
    "capfleet captures -d 'lon*' --from yesterday --to today",
    "capfleet captures -d 'lon*' -o json",
  ],
  upload: [
    'capfleet upload monday.pcap.gz -d lon1',
    'capfleet upload part.pcapng -d lon1 --name incident-42',
    'capfleet upload - -d lon1 --name host < host.pcap.xz',
  ],
  queue: ['capfleet queue', 'capfleet queue -o jsonl'],
  'queue cancel': [
    'capfleet queue cancel 6f1c1d1e-6f0b-4f43-9d0e-0a5b3c2d1e0f',
    'capfleet queue cancel 6f1c1d1e',
  ],
  status: ['capfleet status', 'capfleet status -d site=london'],
  start: ['capfleet start -d lon1', "capfleet start incident -d 'lon*,nyc1'"],
  stop: ['capfleet stop -d lon1', 'capfleet stop -d lon1 --until next'],
  estimate: [
    'capfleet estimate --last 15m',
    "capfleet estimate --begin yesterday --end today -d 'lon*'",
    "capfleet estimate --last 1h --bpf 'udp port 53' --exact  # reads the packets",
  ],
  get: [
    'capfleet get demo  # a capture, under the name that the gateway gives',
    "capfleet get --last 15m -d 'lon*' -o now.pcap  # the last 15 minutes of some devices, merged",
    "capfleet get --begin 20261102_090000 --end 20261102_100000 --zone Berlin --bpf 'tcp port 443' -o hour.pcap",
    'capfleet get --begin yesterday --end today --addresses hosts.txt -o hosts.pcap',
    'capfleet get --seen 203.0.113.9 --last 30d -o seen.pcap  # from the devices where it was seen',
    'capfleet get --last 1m -o - | tcpdump -nr -',
    'capfleet get --alert eve.json --before 30s --after 5m -o alerts/  # the packets of alerts of Suricata or Zeek',
  ],
  seen: [
    'capfleet seen 203.0.113.9 --last 30d',
    'capfleet seen 203.0.113.0/24 2001:db8::7 --last 7d --verify',
    'capfleet seen --file iocs.txt --last 30d -o csv > seen.csv',
  ],
  receipt: ['capfleet receipt 6f1c1d1e-6f0b-4f43-9d0e-0a5b3c2d1e0f', 'capfleet receipt 6f1c1d1e'],
  'export create': [
    "capfleet export create --begin yesterday --end today --bpf 'host 10.1.2.3' --watch",
    'capfleet export create --last 1d --part-time 1h --compression zstd',
    'capfleet export create --alert eve.json --before 30s --after 5m --watch  # an export for each alert of Suricata or Zeek',
  ],
  'export list': ['capfleet export list', 'capfleet export list --state running'],
  'export show': ['capfleet export show 6f1c1d1e-6f0b-4f43-9d0e-0a5b3c2d1e0f'],
  'export watch': ['capfleet export watch 6f1c1d1e-6f0b-4f43-9d0e-0a5b3c2d1e0f'],
  'export get': ['capfleet export get 6f1c1d1e-6f0b-4f43-9d0e-0a5b3c2d1e0f --folder incident'],
  'export fill': ['capfleet export fill 6f1c1d1e-6f0b-4f43-9d0e-0a5b3c2d1e0f'],
  'export cancel': ['capfleet export cancel 6f1c1d1e-6f0b-4f43-9d0e-0a5b3c2d1e0f'],
  'export schedule create': [
    "capfleet export schedule create --cron '5 * * * *' --begin -1h --end now -d 'lon*'  # each hour",
  ],
  'export schedule list': ['capfleet export schedule list'],
  'export schedule remove': ['capfleet export schedule remove 6f1c1d1e-6f0b-4f43-9d0e-0a5b3c2d1e0f'],
  check: ['capfleet check nyc1.pcapng', 'capfleet check - < nyc1.pcapng'],
  'token create': [
    "capfleet token create --devices 'lon*' --lifetime 8h --note 'nightly report'",
    "capfleet token create --devices '*' --scopes device:read > token.txt",
    "capfleet token create --devices lon1 --filter 'host 192.0.2.1' --expires 2026-12-04T18:00+01:00",
  ],
  'token list': ['capfleet token list'],
  'token revoke': ['capfleet token revoke 6f1c1d1e-6f0b-4f43-9d0e-0a5b3c2d1e0f'],
  'audit list': [
    'capfleet audit list --from yesterday --event download',
    'capfleet audit list --user ann --from 2026-11-02 --to 2026-11-03 -o csv',
  ],
  'audit verify': [
    'capfleet audit verify --config gateway.yaml',
    'capfleet audit verify --folder copy-of-audit',
  ],
  open: [
    'capfleet open  # the page of the gateway that you are logged in to',
    "capfleet open timeline --begin -1h --end now -d 'lon*' --bpf 'tcp port 443'",
  ],
  health: ['capfleet health', 'capfleet health http://127.0.0.1:8081'],
  'completion bash': ['capfleet completion bash > ~/.local/share/bash-completion/completions/capfleet'],
  'completion zsh': ['capfleet completion zsh > ~/.zfunc/_capfleet  # a folder of fpath'],
  'completion fish': ['capfleet completion fish > ~/.config/fish/completions/capfleet.fish'],
  gateway: ['capfleet gateway --config gateway.yaml', 'capfleet gateway --config gateway.yaml --check'],
  worker: ['capfleet worker --config gateway.yaml'],
  appliance: [
    'capfleet appliance --config appliance.yaml',
    'capfleet appliance --config appliance.yaml --check',
  ],
  'appliance doctor': ['capfleet appliance doctor --config appliance.yaml'],
  recorder: ['capfleet recorder --config appliance.yaml'],
  demo: ['capfleet demo', 'capfleet demo --port 0 --import a.pcap b.pcapng.gz'],
  import: [
    'capfleet import monday.pcap tuesday.pcap.gz --store /var/lib/capfleet/store',
    'capfleet import part*.pcap --store store --create --name incident',
  ],
  'store verify': ['capfleet store verify --store /var/lib/capfleet/store'],
  'store reindex': ['capfleet store reindex --store /var/lib/capfleet/store'],
  'store trust-clock': ['capfleet store trust-clock --store /var/lib/capfleet/store'],
  'device check': [
    'capfleet device check lon1 --config gateway.yaml',
    'capfleet device check --url https://lon1.example.org --user gateway',
  ],
  'user add': ['capfleet user add ann --file users.yaml --role full'],
  'user list': ['capfleet user list --file users.yaml'],
  'user remove': ['capfleet user remove ann --file users.yaml'],
  'user password': ['capfleet user password ann --file users.yaml'],
}

/** Shown by --help, after everything else. */
export function addExamples(program: Command): void {
  for (const command of allBelow(program)) {
    const lines = COMMAND_EXAMPLES[wordsOf(command)]
    if (lines === undefined) continue
    const isOne = lines.length === 1
    command.addHelpText(
      'after',
      `\n${isOne ? 'Example' : 'Examples'}:\n${lines.map((line) => `  ${line}`).join('\n')}`,
    )
  }
}

export function allBelow(command: Command): readonly Command[] {
  return command.commands.flatMap((one) => [one, ...allBelow(one)])
}

/** "export schedule list" */
export function wordsOf(command: Command): string {
  const { parent } = command
  return parent === null ? '' : `${wordsOf(parent)} ${command.name()}`.trim()
}
