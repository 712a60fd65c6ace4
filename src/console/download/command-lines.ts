/** The same download as lines for a shell. */
import { BASE } from '../base/ask-gateway.ts'
import { queryText } from './parameter-groups.ts'

type Pairs = readonly (readonly [name: string, value: string])[]

export function downloadPath(pairs: Pairs): string {
  return `/api/v1/pcap/timerange?${queryText(pairs)}`
}

export function downloadUrl(pairs: Pairs): string {
  return new URL(downloadPath(pairs).slice(1), BASE).href
}

/** curl asks for the password: on a command line it would be in the shell's history. */
export function curlLine(pairs: Pairs, user: string): string {
  return `curl -fsS -u ${quoted(user)} -OJ ${quoted(downloadUrl(pairs))}`
}

export function wiresharkLine(pairs: Pairs, user: string): string {
  const plain = pairs.filter(([name]) => name !== 'Compression')
  return `curl -fsS -u ${quoted(user)} ${quoted(downloadUrl(plain))} | wireshark -k -i -`
}

/** Flags of `capfleet get` that are not the name of the parameter with hyphens. */
const FLAGS: Readonly<Record<string, string>> = {
  Device: '--device',
  TSBegin: '--begin',
  TSEnd: '--end',
  TSUnit: '--unit',
  FilterBPF: '--bpf',
  FilterRE: '--regex',
}

/** A true one of these is said by its flag alone. */
const SWITCHES: ReadonlySet<string> = new Set(['FilterBPFDecap', 'Follow', 'Align'])

/** What the command does by itself. */
const OWN: ReadonlySet<string> = new Set(['Digest'])

export function capfleetLine(pairs: Pairs): string {
  const flags = pairs
    .filter(([name]) => !OWN.has(name))
    .flatMap(([name, value]) => {
      const flag = FLAGS[name] ?? longFlag(name)
      if (!SWITCHES.has(name)) return [`${flag} ${quoted(value)}`]
      return value === '1' || value === 'true' ? [flag] : []
    })
  return `capfleet get ${flags.join(' ')} --output capture.pcap`
}

/** "MaxPackets" is "--max-packets". */
function longFlag(name: string): string {
  const words = name.replace(/([a-z\d])([A-Z])/g, '$1-$2').replace(/([A-Z]+)([A-Z][a-z])/g, '$1-$2')
  return `--${words.toLowerCase()}`
}

/** As one word of a shell. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9/._,:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
