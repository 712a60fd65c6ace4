/** A caller of a gateway over appliances of other makers, who compares what comes with the packets that a device has. */
import type { Receipt } from '../../../src/gateway/serve/receipt.ts'
import { PCAP_HEADER_BYTES } from '../../../src/shared/pcap/pcap-sizes.ts'
import { API_RECORD_BYTES } from '../devices/api-device.ts'
import { eventually } from '../eventually.ts'
import { httpOpen } from '../http-get.ts'
import type { ExportWorld, ShownExport } from './export-world.ts'

/** A download as it came. */
export interface Taken {
  readonly status: number
  readonly id: string
  readonly body: Buffer
  readonly isCut: boolean
  /** The trailers Capfleet-Complete and Capfleet-Status. */
  readonly complete: string | undefined
  readonly state: string | undefined
}

/** What must be said of a failure: its code, and a text with the device's name in it and the cause. */
export interface Told {
  readonly code: string
  readonly detail: string
}

/**
 * A download or an export in a word or two. "right": whole, and said to be. Else the first word tells what is wrong, which
 * its client sees: a status, "cut", "unverified", "partial", "failed". "SILENT": the client does not see it.
 */
export interface Judged {
  readonly outcome: string
  readonly told?: Told | undefined
}

export class ForeignCaller {
  readonly #world: ExportWorld

  constructor(world: ExportWorld) {
    this.#world = world
  }

  async take(path: string): Promise<Taken> {
    const { url, as } = this.#world.gateway
    using open = await httpOpen(url + path, { headers: { ...as.user, TE: 'trailers' } })
    const { response } = open
    const pieces: Buffer[] = []
    let isCut = false
    try {
      for await (const piece of response) pieces.push(piece as Buffer)
    } catch {
      isCut = true
    }
    return {
      status: response.statusCode ?? 0,
      id: String(response.headers['capfleet-request-id']),
      body: Buffer.concat(pieces),
      isCut,
      complete: response.trailers['capfleet-complete'],
      state: response.trailers['capfleet-status'],
    }
  }

  /** `right` is what the download has to be. */
  async judge(taken: Taken, right: Buffer): Promise<Judged> {
    const { status, body, isCut, complete, state } = taken
    if (status !== 200) {
      const told = JSON.parse(body.toString()) as Told
      return { outcome: `${status} ${told.code}`, told }
    }
    const isBegin = isBeginOf(body, right)
    if (isCut) {
      const { error } = await this.#failed(taken.id)
      return {
        outcome: isBegin ? 'cut' : `SILENT: cut, and its packets are others`,
        told: error ?? undefined,
      }
    }
    if (body.equals(right)) {
      if (complete === '1' && state === 'complete') return { outcome: 'right' }
      return { outcome: complete === '0' ? `${state}, right` : `SILENT: right, and complete is ${complete}` }
    }
    return {
      outcome: complete === '0' && isPartOf(body, right) ? `${state}, short` : 'SILENT: other packets',
    }
  }

  async download(path: string, right: Buffer): Promise<Judged> {
    return await this.judge(await this.take(path), right)
  }

  /** The rest of a download that was cut, together with what had come, of which the client keeps `size` bytes. */
  async resume(
    taken: Taken,
    { path, right, size = wholeSize(taken.body) }: { path: string; right: Buffer; size?: number },
  ): Promise<Judged> {
    await this.#failed(taken.id)
    const rest = await this.take(`${path}?Resume=${taken.id}&Offset=${size}`)
    if (rest.status !== 200) return await this.judge(rest, right)
    return await this.judge(
      { ...rest, body: Buffer.concat([taken.body.subarray(0, size), rest.body]) },
      right,
    )
  }

  async export(query: string, right: Buffer): Promise<Judged> {
    const answer = await this.#world.order(query)
    if (answer.status !== 202) {
      const told = answer.json() as unknown as Told
      return { outcome: `${answer.status} ${told.code}`, told }
    }
    const shown = await this.#world.ended(String(answer.json().id))
    const files = await this.#world.files(shown)
    if (shown.state === 'failed')
      return { outcome: `failed: ${shown.error?.code}`, told: shown.error ?? undefined }
    const body = Buffer.concat(files)
    if (shown.state === 'complete')
      return { outcome: files.length === 1 && body.equals(right) ? 'right' : 'SILENT: other packets' }
    const hole = holeOf(shown)
    const shape = body.equals(right)
      ? 'right'
      : files.length === 0 || isPartOf(body, right)
        ? 'short'
        : 'SILENT'
    return { outcome: `${shown.state}, ${shape}: ${hole?.error.code}`, told: hole?.told }
  }

  /** The receipt of a download that was cut, when it has been written. */
  async #failed(id: string): Promise<Receipt> {
    let receipt: Receipt | undefined
    const hasEnded = async () => {
      receipt = (await this.#world.call(`/v1/requests/${id}`)).json() as unknown as Receipt
      return receipt.status !== 'streaming'
    }
    await eventually(hasEnded, { message: `the receipt ${id} says how it ended` })
    return receipt as unknown as Receipt
  }
}

function holeOf({ devices }: ShownExport) {
  for (const { device, missing } of devices)
    for (const { error } of missing)
      return { error, told: { ...error, detail: `device ${device}: ${error.detail}` } }
  return undefined
}

/** Whether its whole records are the first ones of the other file. */
function isBeginOf(body: Buffer, right: Buffer): boolean {
  const size = wholeSize(body)
  return body.subarray(0, size).equals(right.subarray(0, size))
}

/** Whether it is whole records of the other file, in their order. */
function isPartOf(body: Buffer, right: Buffer): boolean {
  if (body.length !== wholeSize(body) || !isBeginOf(body.subarray(0, PCAP_HEADER_BYTES), right)) return false
  let at = PCAP_HEADER_BYTES
  for (let from = PCAP_HEADER_BYTES; from < body.length; from += API_RECORD_BYTES) {
    const record = body.subarray(from, from + API_RECORD_BYTES)
    while (at < right.length && !right.subarray(at, at + API_RECORD_BYTES).equals(record))
      at += API_RECORD_BYTES
    if (at >= right.length) return false
    at += API_RECORD_BYTES
  }
  return true
}

function wholeSize(body: Buffer): number {
  if (body.length < PCAP_HEADER_BYTES) return 0
  return body.length - ((body.length - PCAP_HEADER_BYTES) % API_RECORD_BYTES)
}

/** How many bytes of a file that was cut are not of the mark of the cut. */
export function sameBytes(a: Buffer, b: Buffer): number {
  const most = Math.min(a.length, b.length)
  for (let at = 0; at < most; at += 1) if (a[at] !== b[at]) return at
  return most
}
