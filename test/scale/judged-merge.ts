/** One merge over many devices, and a verdict: whether its client got what these devices can have delivered. */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  SIMULATED_BEGIN_NS,
  type SimulatedCapture,
  simulatedCapture,
  simulatedRange,
} from '../support/devices/simulated-capture.ts'
import { GATEWAY_AUTHORIZATION } from '../support/processes/gateway-process.ts'
import { PACKETS } from './scale-world.ts'

export interface MergeOrder {
  /** The URL of a gateway. */
  readonly url: string
  /** Numbers of the devices, in the order of the fleet. */
  readonly devices: readonly number[]
  readonly onError: 'fail' | 'partial'
}

/**
 * complete, partial: ended well, and every byte is right. cut: broke off, and is right as far as it goes. refused:
 * another status, in `what`. WRONG: the result differs from the request, in `what`.
 */
export interface MergeResult {
  readonly end: 'complete' | 'partial' | 'cut' | 'refused' | 'WRONG'
  readonly what: string
  readonly bytes: number
  readonly tookMs: number
  readonly headMs: number
}

/** The size of a cut record with the mark after it. */
const CUT_BYTES_MAX = 2_048
const END_NS = SIMULATED_BEGIN_NS + BigInt(PACKETS) * 10_000_000n

export async function judgedMerge(order: MergeOrder): Promise<MergeResult> {
  const startMs = performance.now()
  const names = order.devices.map((device) => `d${device}`).join()
  const path = `/api/v1/pcap/timerange?Device=${names}&${simulatedRange(PACKETS)}&Wait=50&OnError=${order.onError}`
  // A client that does not request trailers learns what is missing only from the receipt.
  const headers = { authorization: GATEWAY_AUTHORIZATION, te: 'trailers' }
  const asked = request(order.url + path, { headers, agent: false })
  asked.end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  const headMs = performance.now() - startMs
  const { body, isWhole } = await bodyOf(answer)
  const give = (end: MergeResult['end'], what = ''): MergeResult => ({
    end,
    what,
    bytes: body.length,
    tookMs: performance.now() - startMs,
    headMs,
  })
  if (answer.statusCode !== 200) return give('refused', `${answer.statusCode} ${codeIn(body)}`)
  const missing = missingIn(answer)
  const found = compare(body, order.devices, missing)
  if (!isWhole)
    return found.leftBytes <= CUT_BYTES_MAX ? give('cut') : give('WRONG', `cut, and ${found.what}`)
  if (found.leftBytes > 0 || !found.isAll) return give('WRONG', `${found.what}; ${await keep(answer, body)}`)
  return give(missing.size > 0 ? 'partial' : 'complete', [...missing.keys()].join())
}

let kept = 0

/** For debugging: writes a file with the received body and the verdict. Resolves with its name. */
async function keep({ headers, trailers }: IncomingMessage, body: Buffer): Promise<string> {
  kept += 1
  const path = join(tmpdir(), `capfleet-scale-${process.pid}-${kept}.pcap`)
  await writeFile(path, body)
  await writeFile(`${path}.json`, JSON.stringify({ headers, trailers }))
  return path
}

async function bodyOf(
  answer: IncomingMessage,
): Promise<{ readonly body: Buffer; readonly isWhole: boolean }> {
  const pieces: Buffer[] = []
  try {
    for await (const piece of answer) pieces.push(piece)
    return { body: Buffer.concat(pieces), isWhole: true }
  } catch {
    return { body: Buffer.concat(pieces), isWhole: false }
  }
}

function codeIn(body: Buffer): string {
  const { code, devices } = JSON.parse(body.toString()) as { code?: string; devices?: readonly string[] }
  return `${code ?? ''} ${devices?.join() ?? ''}`
}

/** The time from which packets of a device may be missing, by its number, according to the head or the trailers. */
function missingIn({ headers, trailers }: IncomingMessage): ReadonlyMap<number, bigint> {
  const text = trailers['capfleet-missing'] ?? String(headers['capfleet-missing'] ?? '')
  return new Map(
    [...text.matchAll(/d(\d+);from=(\d+)/g)].map(([, device, ns]) => [Number(device), BigInt(ns ?? 0)]),
  )
}

const captures = new Map<number, SimulatedCapture>()

function captureOf(device: number): SimulatedCapture {
  const capture = captures.get(device) ?? simulatedCapture(device, PACKETS + 1)
  captures.set(device, capture)
  return capture
}

/** Walks over the body record by record; a record that may be missing may also be there. */
function compare(body: Buffer, devices: readonly number[], missing: ReadonlyMap<number, bigint>) {
  const expected = devices.flatMap((device, order) =>
    captureOf(device).records.map(({ ns, bytes }) => ({ ns, bytes, device, order })),
  )
  const records = expected.filter(({ ns }) => ns < END_NS)
  // The sort is stable: records with equal times stay in the order of devices, then of arrival.
  records.sort((a, b) => (a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : a.order - b.order))
  const { header } = captureOf(devices[0] ?? 0)
  let at = header.length
  for (const { ns, bytes, device } of records) {
    if (bytes.equals(body.subarray(at, at + bytes.length))) at += bytes.length
    else if (ns < (missing.get(device) ?? END_NS))
      return {
        isAll: false,
        leftBytes: body.length - at,
        what: `at byte ${at} of ${body.length} is no packet of d${device}`,
      }
  }
  const isAll = header.equals(body.subarray(0, header.length))
  return { isAll, leftBytes: body.length - at, what: `behind its last packet are ${body.length - at} bytes` }
}
