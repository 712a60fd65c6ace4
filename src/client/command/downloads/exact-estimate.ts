/** `capfleet estimate --exact`: what a download would deliver, counted by the devices while they read its packets. */
import type { z } from 'zod'
import { bytesText, packetsText, percentText } from '../../../shared/base/amounts.ts'
import type { FLEET_COUNT_LINES } from '../../../shared/contract/count-lines.ts'
import { visible } from '../../../shared/query/query-parameters.ts'
import { ClientFailure } from '../../client-failure.ts'
import type { GatewayClient, QueryPairs } from '../../gateway-client.ts'
import { gatewayLines } from '../../gateway-lines.ts'
import { type Column, type FormatOptions, print, printListing, shownNs } from '../common/list-output.ts'
import { createProgressBar } from '../common/progress-bar.ts'

type Progress = z.infer<typeof FLEET_COUNT_LINES.progress>
type Counted = z.infer<typeof FLEET_COUNT_LINES.counted>
type Failed = z.infer<typeof FLEET_COUNT_LINES.failure>
type CountEnd = z.infer<typeof FLEET_COUNT_LINES.end>
type CountLine = Progress | Counted | Failed | CountEnd

const COLUMNS: readonly Column<Counted | Failed>[] = [
  { title: 'device', value: ({ device }) => device },
  { title: 'packets', value: (one) => ('error' in one ? undefined : one.packets) },
  {
    title: 'bytes',
    value: (one) => ('error' in one ? undefined : one.bytes),
    shown: (one) => ('error' in one ? '-' : bytesText(one.bytes)),
  },
  { title: 'complete', value: (one) => ('error' in one ? undefined : one.complete) },
  {
    title: 'counted-to',
    value: (one) => ('error' in one ? undefined : one.countedToNs),
    shown: (one) => ('error' in one ? '-' : shownNs(one.countedToNs)),
  },
  { title: 'error', value: (one) => ('error' in one ? one.error.detail : undefined) },
]

const TELL_MS = 200

export class ExactEstimate {
  readonly #client: GatewayClient
  readonly #options: FormatOptions
  readonly #bar = createProgressBar('counting')
  /** By device. */
  readonly #counts = new Map<string, Progress | Counted>()
  readonly #ended: (Counted | Failed)[] = []
  #toldMs = 0

  constructor(client: GatewayClient, options: FormatOptions) {
    this.#client = client
    this.#options = options
  }

  /** Fails with a ClientFailure if the answer is not complete. */
  async run(query: QueryPairs, signal: AbortSignal): Promise<void> {
    const brokenOff = 'the answer broke off: not all packets were counted'
    let end: CountEnd | undefined
    try {
      const request = { path: '/v1/count', query, signal, brokenOff }
      for await (const { line, text } of gatewayLines<CountLine>(this.#client, request)) {
        if (this.#options.output === 'json') await print(`${text}\n`)
        if ('end' in line) end = line
        else this.#take(line)
      }
    } finally {
      this.#bar.clear()
    }
    if (end === undefined) return
    if (this.#options.output !== 'json') await this.#print()
    if (this.#options.output === 'table') await print(`${totalText(end)}\n`)
    for (const one of this.#ended)
      if ('counted' in one && one.agedOutBeforeNs !== undefined)
        process.stderr.write(
          `capfleet: ${visible(one.device)}: packets before ${shownNs(one.agedOutBeforeNs)} have been removed\n`,
        )
    refuseIncomplete(end)
  }

  #take(line: Progress | Counted | Failed): void {
    if ('error' in line || 'counted' in line) this.#ended.push(line)
    if (!('error' in line)) this.#counts.set(line.device, line)
    this.#tell()
  }

  async #print(): Promise<void> {
    const entries = this.#ended.toSorted((a, b) => a.device.localeCompare(b.device))
    await printListing({ text: '', entries, columns: COLUMNS }, this.#options)
  }

  #tell(): void {
    const nowMs = performance.now()
    if (nowMs - this.#toldMs < TELL_MS) return
    this.#toldMs = nowMs
    const counts = [...this.#counts.values()]
    const sum = (amountOf: (one: Progress | Counted) => string | undefined): bigint =>
      counts.reduce((before, one) => before + BigInt(amountOf(one) ?? 0), 0n)
    const packets = packetsText(sum((one) => one.packets))
    const rangeBytes = sum((one) => one.rangeBytes)
    // A running capture grows meanwhile.
    const ratio = Math.min(1, Number(sum((one) => one.checkedBytes)) / Number(rangeBytes))
    const share = rangeBytes === 0n ? '' : `, ${percentText(ratio)}`
    this.#bar.tell(`${packets} so far${share} of ${counts.length} devices`)
  }
}

function totalText({ packets, bytes, exact, complete }: CountEnd): string {
  const whose = exact ? 'in total' : complete ? 'in total, at most' : 'counted so far'
  return `${whose}: ${packetsText(packets)}, ${bytesText(bytes)} before compression`
}

function refuseIncomplete({ complete, unanswered, partial, devices }: CountEnd): void {
  if (complete) return
  const reasons = [
    ...(unanswered.length > 0 ? [`not counted by ${unanswered.join(', ')}`] : []),
    ...(partial.length > 0
      ? [
          `not everything was counted on ${partial.join(', ')}: blocks are damaged, or --count-bytes-max was reached`,
        ]
      : []),
  ]
  throw new ClientFailure(
    unanswered.length === devices ? 'device' : 'incomplete',
    `incomplete: ${reasons.join('; ')}`,
    { code: 'incomplete' },
  )
}
