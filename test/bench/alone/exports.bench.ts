/**
 * Eight clients that download from one device all the time, alone and beside a hundred exports from three devices: how
 * long they wait for a stream, and how long their downloads take. Exports are bulk work, so these times must hardly
 * change. Each client reads as fast as a line of 100 Mbit/s, so that the limit is the streams, not the processors,
 * which the exports share with the clients on this one machine.
 */
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { EXPORT_BEGIN_NS, EXPORT_END_NS, writeExportCapture } from '../../support/exports/export-captures.ts'
import { httpGet, httpOpen } from '../../support/http-get.ts'
import { BenchFleet, type BenchServer } from '../sides/bench-fleet.ts'

const CLIENTS = 8
const EXPORTS = 100
const DEVICES = 3
const CAPTURE_BYTES = 32 * 1_048_576
const SERVED_MS = 60_000
const LINE_BYTES_PER_MS = 12_500
const RANGE = `TSBegin=${EXPORT_BEGIN_NS}&TSEnd=${EXPORT_END_NS}`

interface Served {
  readonly waitedMs: number
  readonly tookMs: number
}

/** Prints the figures and leaves nothing behind. */
export async function printExportFigures(signal: AbortSignal): Promise<void> {
  const folder = join(tmpdir(), `capfleet-bench-exports-${process.pid}`)
  try {
    await using fleet = await BenchFleet.create(folder)
    for (let device = 0; device < DEVICES; device += 1) {
      const path = join(folder, `${device}.pcap`)
      await writeExportCapture(path, { device, bytes: CAPTURE_BYTES })
      await fleet.importFile(device, `bench-${device}`, path)
    }
    const gateway = await fleet.gateway()
    await fleet.worker()
    const alone = await serve(gateway, signal)
    print('alone', alone)
    const startedMs = performance.now()
    await order(gateway)
    const beside = await serve(gateway, signal)
    print(`beside ${EXPORTS} exports`, beside)
    // Once the clients are gone, the exports have the devices to themselves.
    const states = await allEnded(gateway, signal)
    const seconds = (performance.now() - startedMs) / 1_000
    process.stdout.write(`exports: ${states} in ${seconds.toFixed(1)} s\n`)
    const ratio = mean(beside, 'waitedMs') / mean(alone, 'waitedMs')
    process.stdout.write(`waiting beside exports / alone: ${ratio.toFixed(2)} (goal: 1.5 at most)\n`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Eight clients, each with one download after another, for a minute. */
async function serve({ url, credentials }: BenchServer, signal: AbortSignal): Promise<readonly Served[]> {
  const endMs = performance.now() + SERVED_MS
  const headers = { authorization: `Basic ${btoa(credentials)}` }
  const served: Served[] = []
  const client = async () => {
    while (!signal.aborted && performance.now() < endMs) {
      const beganMs = performance.now()
      const id = await download(`${url}/devices/nyc1/api/v1/pcap/timerange?${RANGE}&Wait=55`, headers)
      const tookMs = performance.now() - beganMs
      const receipt = await httpGet(`${url}/v1/requests/${id}`, { headers })
      served.push({ waitedMs: Number(receipt.json().waitedMs), tookMs })
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  return served
}

/** Its request id, once all of it has arrived. */
async function download(url: string, headers: Readonly<Record<string, string>>): Promise<string> {
  using answer = await httpOpen(url, { headers })
  const { response } = answer
  if (response.statusCode !== 200) throw new Error(`a download was answered ${response.statusCode}`)
  const ended = once(response, 'close')
  const beganMs = performance.now()
  let bytes = 0
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length
    const aheadMs = bytes / LINE_BYTES_PER_MS - (performance.now() - beganMs)
    if (aheadMs > 1) await delay(aheadMs)
  }
  await ended
  return String(response.headers['capfleet-request-id'])
}

async function order({ url, credentials }: BenchServer): Promise<void> {
  const headers = { authorization: `Basic ${btoa(credentials)}` }
  for (let number = 0; number < EXPORTS; number += 1) {
    const { status } = await httpGet(`${url}/v1/exports?${RANGE}`, { method: 'POST', headers })
    if (status !== 202) throw new Error(`an order was answered ${status}`)
  }
}

/** How the exports ended, as text. */
async function allEnded({ url, credentials }: BenchServer, signal: AbortSignal): Promise<string> {
  const headers = { authorization: `Basic ${btoa(credentials)}` }
  for (;;) {
    signal.throwIfAborted()
    const list = (await httpGet(`${url}/v1/exports?Limit=${EXPORTS}`, { headers })).json()
    const exports = list.exports as readonly { readonly id: string; readonly state: string }[]
    const live = exports.filter(({ state }) => ['queued', 'running', 'paused'].includes(state))
    const [first] = live
    if (first === undefined) {
      const states = Map.groupBy(exports, ({ state }) => state)
      return [...states].map(([state, some]) => `${some.length} ${state}`).join(', ')
    }
    // The events of an export end with the export.
    await httpGet(`${url}/v1/exports/${first.id}/events`, { headers })
  }
}

function print(name: string, served: readonly Served[]): void {
  const figures = (['waitedMs', 'tookMs'] as const).map((key) => {
    const sorted = served.map((one) => one[key]).sort((a, b) => a - b)
    const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(0)
    return `${key} mean ${mean(served, key).toFixed(0)} p50 ${at(0.5)} p95 ${at(0.95)} max ${at(1)}`
  })
  process.stdout.write(`${name}: ${served.length} downloads; ${figures.join('; ')}\n`)
}

function mean(served: readonly Served[], key: keyof Served): number {
  return served.reduce((sum, one) => sum + one[key], 0) / served.length
}
