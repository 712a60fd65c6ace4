/** The same download as shell commands. */
import { BASE } from '../base/ask-gateway.ts'
import type { Session } from '../base/session.ts'
import { type Pairs, queryText } from './parameter-groups.ts'

export function downloadPath(pairs: Pairs): string {
  return `/api/v1/pcap/timerange?${queryText(pairs)}`
}

export function downloadUrl(pairs: Pairs): string {
  return new URL(downloadPath(pairs).slice(1), BASE).href
}

type SignedInUser = Pick<Session, 'user' | 'origin'>

export function curlLine(pairs: Pairs, user: SignedInUser): string {
  return `curl -fsS ${credentialFlag(user)} -OJ ${quoted(downloadUrl(pairs))}`
}

export function wiresharkLine(pairs: Pairs, user: SignedInUser): string {
  const plain = pairs.filter(([name]) => name !== 'Compression')
  return `curl -fsS ${credentialFlag(user)} ${quoted(downloadUrl(plain))} | wireshark -k -i -`
}

/**
 * curl asks for the password, and a token comes from a shell variable: on the command line they would end up in the
 * history. Users who have signed in with a token may not have a password here.
 */
function credentialFlag({ user, origin }: SignedInUser): string {
  return origin === 'token' ? '-H "Authorization: Bearer $CAPFLEET_TOKEN"' : `-u ${quoted(user)}`
}

/** Flags of `capfleet get` that are not the parameter's name with hyphens. */
const FLAGS: Readonly<Record<string, string>> = {
  Device: '--device',
  TSBegin: '--begin',
  TSEnd: '--end',
  TSUnit: '--unit',
  FilterBPF: '--bpf',
  FilterRE: '--regex',
}

/** For these, the flag alone means true. */
const SWITCHES: ReadonlySet<string> = new Set(['FilterBPFDecap', 'Follow', 'Align'])

/** Set by the command itself. */
const OWN: ReadonlySet<string> = new Set(['Digest'])

/** The gateway names the file, depending on compression. */
export function capfleetLine(pairs: Pairs): string {
  const flags = pairs
    .filter(([name]) => !OWN.has(name))
    .flatMap(([name, value]) => {
      if (name === 'FilterAddresses') return [`--addresses <(echo ${quoted(value)})`]
      const flag = FLAGS[name] ?? longFlag(name)
      if (!SWITCHES.has(name)) return [`${flag} ${quoted(value)}`]
      return value === '1' || value === 'true' ? [flag] : []
    })
  return `CAPFLEET_URL=${quoted(BASE)} capfleet get ${flags.join(' ')}`
}

/** "MaxPackets" becomes "--max-packets". */
function longFlag(name: string): string {
  const words = name.replace(/([a-z\d])([A-Z])/g, '$1-$2').replace(/([A-Z]+)([A-Z][a-z])/g, '$1-$2')
  return `--${words.toLowerCase()}`
}

/** As one word of a shell. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9/._,:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
