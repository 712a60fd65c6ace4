/** A client of a gateway over other manufacturers' appliances, which compares the answers with a device's packets. */
import type { Receipt } from '../../../src/gateway/serve/receipt.ts'
import { PCAP_HEADER_BYTES } from '../../../src/shared/pcap/pcap-sizes.ts'
import { API_RECORD_BYTES } from '../devices/api-device.ts'
import { eventually } from '../eventually.ts'
import { httpOpen } from '../http-get.ts'
import type { ExportWorld, ShownExport } from './export-world.ts'

/** A finished download. */
export interface Taken {
  readonly status: number
  readonly id: string
  readonly body: Buffer
  readonly isCut: boolean
  /** The trailers Capfleet-Complete and Capfleet-Status. */
  readonly complete: string | undefined
  readonly state: string | undefined
}

/** What must be reported about a failure: its code, and a text that contains the device's name and the cause. */
export interface Told {
  readonly code: string
  readonly detail: string
}

/**
 * The verdict on a download or an export in a word or two. "right": whole, and declared whole. Otherwise the first
 * word names the fault, which the client sees: a status, "cut", "unverified", "partial", "failed". "SILENT": the
 * client does not see it.
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

  /** `right` is the expected content. */
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

  /** Resumes a download that was cut and judges the whole; the client keeps `size` bytes of what it had. */
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

  /** The receipt of a download that was cut, as soon as it is written. */
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

/** Whether it consists of whole records of the other file, in their order. */
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

/** Length of the common prefix: for a file that was cut and the whole one, the bytes before the cut marker. */
export function sameBytes(a: Buffer, b: Buffer): number {
  const most = Math.min(a.length, b.length)
  for (let at = 0; at < most; at += 1) if (a[at] !== b[at]) return at
  return most
}
