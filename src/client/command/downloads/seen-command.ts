/** `capfleet seen`: where in the fleet addresses were seen, and when. */
import type { Command } from 'commander'
import { bytesText } from '../../../shared/base/amounts.ts'
import { SEEN_PARAMETERS, SEEN_RANGE, SEEN_WAIT } from '../../../shared/contract/seen-parameters.ts'
import { FLEET_PARAMETERS } from '../../../shared/query/download/gateway-options.ts'
import { addressQuestionsType } from '../../../shared/query/filter/address-list.ts'
import { visible } from '../../../shared/query/query-parameters.ts'
import { ClientFailure, usageFailure } from '../../client-failure.ts'
import { type FleetSeenEnd, incompleteText, type SeenAt, seenLines } from '../../fleet-seen.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import { type ConnectOptions, connect, contextOption } from '../access/connect.ts'
import { addressesIn, type LastOption, lastOption, withLast } from '../common/download-flags.ts'
import {
  type Column,
  type FormatOptions,
  formatOption,
  print,
  printListing,
  shownNs,
} from '../common/list-output.ts'
import { createProgressBar } from '../common/progress-bar.ts'
import { type GivenOptions, QueryFlags } from '../common/query-flags.ts'
import { runClient } from '../common/run-client.ts'

interface SeenOptions extends ConnectOptions, FormatOptions, LastOption {
  readonly file?: string
}

/** Of the packets, or if these were not counted, of the times in which they may be. */
function firstOf({ firstNs, spans }: SeenAt): string | undefined {
  return firstNs ?? spans[0]?.fromNs
}

function lastOf({ lastNs, spans }: SeenAt): string | undefined {
  return lastNs ?? spans.at(-1)?.toNs
}

const COLUMNS: readonly Column<SeenAt>[] = [
  { title: 'address', value: ({ address }) => address },
  { title: 'device', value: ({ device }) => device },
  { title: 'first', value: firstOf, shown: (one) => shownNs(firstOf(one)) },
  { title: 'last', value: lastOf, shown: (one) => shownNs(lastOf(one)) },
  { title: 'packets', value: ({ packets }) => packets },
  {
    title: 'bytes',
    value: ({ bytes }) => bytes,
    shown: ({ bytes }) => (bytes === undefined ? '-' : bytesText(bytes)),
  },
  { title: 'uncounted', value: ({ spans }) => spans.length },
]

export function defineSeen(command: Command): void {
  const flags = new QueryFlags(
    [FLEET_PARAMETERS, SEEN_RANGE, SEEN_PARAMETERS, SEEN_WAIT],
    [SEEN_PARAMETERS.addresses.name],
  )
  command
    .argument('[address...]', 'IPv4 and IPv6 addresses and networks')
    .addOption(lastOption())
    .option(
      '--file <file>',
      'a file with addresses and networks, one or more in a line, # begins a comment, at most 10,000; "-": standard input',
    )
  flags
    .addTo(command)
    .addOption(formatOption())
    .addOption(contextOption())
    .addHelpText('after', UNVERIFIED)
    .action((addresses: readonly string[], options: SeenOptions & GivenOptions) =>
      runClient(async (signal) => {
        const pairs = withLast(flags.query(options), options)
        const list = await addressList(addresses, options)
        const client = await connect(options)
        const query: QueryPairs = [[SEEN_PARAMETERS.addresses.name, list], ...pairs]
        await new Search(client, options).run(query, signal)
      }, flags.flagOf),
    )
}

const UNVERIFIED =
  '\nWithout --verify no packet is read: an address may have been seen between "first" and "last", and rarely was not.' +
  '\nIt was not seen elsewhere. The status is 7 if the answer is incomplete, for example because a device does not answer.'

async function addressList(addresses: readonly string[], { file }: SeenOptions): Promise<string> {
  const type = addressQuestionsType()
  const ofFile = file === undefined ? [] : [await addressesIn(file, '--file', type)]
  const list = [...addresses, ...ofFile]
  if (list.length === 0)
    throw usageFailure(
      'name an address: capfleet seen 203.0.113.9 --last 30d, or a file with addresses: --file',
    )
  try {
    for (const one of addresses) type.read(one, 'the address', {})
    return type.read(list.join('\n'), 'the list', {}) ?? ''
  } catch (error) {
    throw usageFailure((error as Error).message)
  }
}

const TELL_MS = 200

class Search {
  readonly #client: GatewayClient
  readonly #options: SeenOptions
  readonly #bar = createProgressBar('seen')
  readonly #found: SeenAt[] = []
  /** By device. */
  readonly #checkedBytes = new Map<string, bigint>()
  #toldMs = 0

  constructor(client: GatewayClient, options: SeenOptions) {
    this.#client = client
    this.#options = options
  }

  async run(query: QueryPairs, signal: AbortSignal): Promise<void> {
    let end: FleetSeenEnd | undefined
    try {
      for await (const { line, text } of seenLines(this.#client, query, signal)) {
        if (this.#options.output === 'json') await print(`${text}\n`)
        if ('end' in line) end = line
        else if ('error' in line) this.#say(`${line.device}: ${line.error.detail} [${line.error.code}]`)
        else if ('address' in line) this.#found.push(line)
        else this.#checkedBytes.set(line.device, BigInt(line.checkedBytes))
        this.#tell()
      }
    } finally {
      this.#bar.clear()
    }
    if (this.#options.output !== 'json') await this.#print()
    if (end !== undefined) this.#conclude(end)
  }

  async #print(): Promise<void> {
    const entries = this.#found.toSorted(
      (a, b) => a.address.localeCompare(b.address) || compare(firstOf(a), firstOf(b)),
    )
    await printListing({ text: '', entries, columns: COLUMNS }, this.#options)
  }

  /** Fails with a ClientFailure if the answer is not complete. */
  #conclude(end: FleetSeenEnd): void {
    for (const { device, beforeNs } of end.agedOut)
      this.#say(`${device}: packets before ${shownNs(beforeNs)} have been removed`)
    for (const { device, linkTypes } of end.otherLinkTypes)
      this.#say(
        `${device}: packets of link type ${linkTypes.join(', ')} have no addresses that are understood`,
      )
    const why = incompleteText(end)
    if (why !== undefined)
      throw new ClientFailure(end.unanswered.length === end.devices ? 'device' : 'incomplete', why, {
        code: 'incomplete',
      })
    if (this.#found.length === 0) this.#say(`not seen on any of ${end.devices} devices`)
  }

  #tell(): void {
    const nowMs = performance.now()
    if (nowMs - this.#toldMs < TELL_MS) return
    this.#toldMs = nowMs
    const bytes = [...this.#checkedBytes.values()].reduce((sum, one) => sum + one, 0n)
    this.#bar.tell(`${this.#found.length} found${bytes === 0n ? '' : `, ${bytesText(bytes)} checked`}`)
  }

  #say(text: string): void {
    this.#bar.clear()
    process.stderr.write(`capfleet: ${visible(text)}\n`)
  }
}

function compare(a = '0', b = '0'): number {
  return BigInt(a) < BigInt(b) ? -1 : 1
}
