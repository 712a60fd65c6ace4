import { Resolver } from 'node:dns/promises'
import { addAbortListener } from 'node:events'
import type { FoundDevice } from './discovered-devices.ts'

export interface SrvLookup {
  /** The name of the SRV records, such as "_capfleet._tcp.example.org". */
  readonly srv: string
  /** The DNS servers to ask. Default: those of the machine. */
  readonly dnsServers: readonly string[]
}

/** How long to wait for a server's answer, and how often to ask it. */
const TIMEOUT_MS = 2_000
const TRIES = 2
/** Codes for "the name exists, without records of this type", and for "no such name". */
const NO_RECORD: ReadonlySet<string> = new Set(['ENODATA', 'ENOTFOUND'])

/**
 * The devices that the SRV records name, sorted: each target is one, named by the first label of its name. Rejects if
 * DNS does not answer, has no record at all (an outage looks like that), or if the signal aborts.
 */
export async function lookUpSrv(
  { srv, dnsServers }: SrvLookup,
  signal: AbortSignal,
): Promise<readonly FoundDevice[]> {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  using _cancel = addAbortListener(signal, () => resolver.cancel())
  return await devicesOf(srv, dnsServers, resolver)
}

async function devicesOf(
  srv: string,
  dnsServers: readonly string[],
  resolver: Resolver,
): Promise<readonly FoundDevice[]> {
  if (dnsServers.length > 0) resolver.setServers(dnsServers)
  const records = await resolver.resolveSrv(srv)
  const found = await Promise.all(
    records.map(async ({ name: target, port }) => ({
      name: target.split('.', 1)[0]?.toLowerCase() ?? '',
      host: target,
      port,
      addresses: await addressesOf(target, resolver),
    })),
  )
  // DNS shuffles its answers; the order of the fleet decides between packets of equal time.
  return found.sort((a, b) => a.name.localeCompare(b.name, 'en') || a.port - b.port)
}

async function addressesOf(host: string, resolver: Resolver): Promise<readonly string[]> {
  const answers = await Promise.all([
    resolver.resolve4(host).catch(noneIfNoRecord),
    resolver.resolve6(host).catch(noneIfNoRecord),
  ])
  return answers.flat().sort((a, b) => Number(a.includes(':')) - Number(b.includes(':')))
}

function noneIfNoRecord(error: NodeJS.ErrnoException): readonly string[] {
  if (NO_RECORD.has(error.code ?? '')) return []
  throw error
}
