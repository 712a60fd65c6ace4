import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { continueFrom, restOfBody } from '../../../../../src/gateway/fetch/body/continue-from.ts'
import {
  type MergeOptions,
  type MergeRequest,
  mergedBody,
  OUTPUTS,
} from '../../../../../src/gateway/fetch/body/merged-body.ts'
import { planDownload } from '../../../../../src/gateway/fleet/plan/plan.ts'
import { withinBounds } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import { PcapMerge } from '../../../../../src/gateway/pcap/merge.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import type { Log } from '../../../../../src/shared/base/log.ts'
import { PCAP_HEADER_BYTES } from '../../../../../src/shared/pcap/pcap-sizes.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'
import { brokenOff, MemoryDevice } from '../../../../support/devices/memory-device.ts'
import { makePacket, makePcap } from '../../../../support/packets/packet-maker.ts'
import type { PcapRecord } from '../../../../support/packets/pcap-records.ts'
import { seededRandom } from '../../../../support/seeded-random.ts'

const UNDAMAGED = { corruptBlocks: 0n, agedOutBeforeNs: undefined }
const PLAIN_MERGE: MergeOptions = { onError: 'fail', align: false }
const START_NS = 1_700_000_000_000_000_000n
const END_NS = START_NS + 1_000n
/** Many records with equal times, and one far larger than a chunk. */
const ROME = [0, 1, 1, 1, 4, 4, 7, 9, 9].map((at, n) => packet(at, `rome ${n}`, n === 4 ? 300 : 20))
const OSLO = [1, 2, 4, 4, 8, 9].map((at, n) => packet(at, `oslo ${n}`))
const WHOLE = merged(ROME, OSLO)
const QUICK = { attempts: 5, withinMs: 60_000, pauseMs: 0 }

test('a device that dies anywhere is continued: the body is the same to the byte', async () => {
  const romeBytes = makePcap(ROME).byteLength
  for (let cut = 24; cut < romeBytes; cut++) {
    const { rome, oslo } = devices()
    rome.diesAfterBytes = [cut]
    const { bytes, body } = await download([rome, oslo])
    assert.deepEqual(bytes, WHOLE, `cut at ${cut}`)
    assert.equal(body.result().perDevice[0]?.retries, 1)
    assert.deepEqual([rome.open, oslo.open], [0, 0], 'all streams are given back')
  }
})

test('a device that dies again and again is continued where it was: 300 random cases', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < 300; round++) {
    const { rome, oslo } = devices()
    for (const device of [rome, oslo]) {
      device.chunkBytes = random.integer(1, 400)
      device.diesAfterBytes = [0, 0, 0, 0, 0].map(() => random.integer(24, 400))
      device.diesAfterBytes[0] = random.integer(24, 400)
    }
    const { bytes } = await download([rome, oslo])
    assert.deepEqual(bytes, WHOLE, `round ${round}`)
  }
})

test('a merge that is left or parked gives back the chunks that it was looking at', async () => {
  const { rome, oslo } = devices()
  const left = await mergedBody(requestOf([rome, oslo]))
  assert.deepEqual([rome.reading, oslo.reading], [1, 1])
  for await (const _ of left.chunks) break
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([rome.reading, oslo.reading], [0, 0], 'left at the header')
  const parked = await mergedBody(requestOf([rome, oslo]))
  const chunks = parked.chunks[Symbol.asyncIterator]()
  assert.equal((await chunks.next()).done, false)
  assert.deepEqual([rome.reading, oslo.reading], [1, 1])
  parked.park()
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual([rome.reading, oslo.reading], [0, 0], 'parked')
})

test('the memory of a merge is used again when the merge has ended and its chunks have left', async () => {
  const before = OUTPUTS.takenBytes
  const leave = async (order: 'ends first' | 'leaves first'): Promise<void> => {
    const body = await mergedBody(requestOf(both(devices())))
    assert.ok(OUTPUTS.takenBytes > before)
    if (order === 'leaves first') body[Symbol.dispose]()
    assert.ok(OUTPUTS.takenBytes > before, 'it is still being merged')
    for await (const chunk of body.chunks) if (chunk.length > PCAP_HEADER_BYTES) break
    if (order === 'leaves first') return
    assert.ok(OUTPUTS.takenBytes > before, 'chunks are on their way')
    body[Symbol.dispose]()
  }
  for (const order of ['ends first', 'leaves first'] as const) {
    await leave(order)
    assert.equal(OUTPUTS.takenBytes, before, order)
  }
  const taken = OUTPUTS.take(PcapMerge.outputBytes)
  taken.fill(0xff)
  OUTPUTS.give(taken)
  assert.deepEqual((await download(both(devices()))).bytes, WHOLE, 'whatever was in it')
})

test('TSResolution=usec truncates after the merge: packets of one microsecond keep their order', async () => {
  const { rome, oslo } = devices()
  const { bytes } = await download([rome, oslo], { parameters: 'TSResolution=usec' })
  const expected = Buffer.from(WHOLE)
  expected.writeUInt32LE(0xa1b2c3d4, 0)
  for (let at = PCAP_HEADER_BYTES; at < expected.length; at += 16 + expected.readUInt32LE(at + 8))
    expected.writeUInt32LE(Math.floor(expected.readUInt32LE(at + 4) / 1_000), at + 4)
  assert.deepEqual(bytes, expected)
  assert.ok(!rome.targets.join().includes('TSResolution'), 'devices send nanoseconds')
})

test('asks for the packets from the last delivered timestamp on', async () => {
  const { rome, oslo } = devices()
  rome.diesAfterBytes = [makePcap(ROME.slice(0, 3)).byteLength]
  await download([rome, oslo])
  assert.match(rome.targets[1] ?? '', new RegExp(`TSBegin=${START_NS + 1n}&TSEnd=${END_NS}&`))
})

test('what an earlier stream left out as damaged is counted, once, by the device that sends it again by time', async () => {
  const { rome, oslo } = devices()
  rome.diesAfterBytes = [makePcap(ROME.slice(0, 3)).byteLength, makePcap(ROME.slice(1, 6)).byteLength]
  const asked: unknown[] = []
  const { bytes, body } = await download([rome, oslo], {
    countDamage: async (device, range) => {
      asked.push([device, range])
      return { ...UNDAMAGED, corruptBlocks: 2n }
    },
  })
  assert.deepEqual(bytes, WHOLE)
  assert.deepEqual(asked, [['rome', { beginNs: START_NS, endNs: START_NS + 4n }]])
  const { corruptBlocks, perDevice } = body.result()
  assert.equal(corruptBlocks, 2n)
  assert.deepEqual(
    perDevice.map(({ status }) => status),
    ['damaged', 'complete'],
  )
})

test('a device that cannot count what it left out earlier is not verified', async () => {
  for (const [code, times] of [
    ['count-unsupported', 1],
    ['device-unreachable', 3],
  ] as const) {
    const { rome, oslo } = devices()
    rome.diesAfterBytes = [makePcap(ROME.slice(0, 3)).byteLength]
    let asked = 0
    const { bytes, body } = await download([rome, oslo], {
      countDamage: async () => {
        asked += 1
        throw new CapfleetError(code, 'no count')
      },
    })
    assert.deepEqual(bytes, WHOLE)
    assert.deepEqual([body.result().perDevice[0]?.status, asked], ['unverified', times])
  }
})

test('damage is not known if the device has removed earlier packets since', async () => {
  for (const [agedOutBeforeNs, status] of [
    [START_NS, 'complete'],
    [START_NS + 1n, 'unverified'],
  ] as const) {
    const { rome, oslo } = devices()
    rome.claims = { 'capfleet-aged-out-before': String(START_NS) }
    rome.diesAfterBytes = [makePcap(ROME.slice(0, 3)).byteLength]
    const { body } = await download([rome, oslo], {
      countDamage: async () => ({ corruptBlocks: 0n, agedOutBeforeNs }),
    })
    const [result] = body.result().perDevice
    assert.deepEqual(
      [result?.status, result?.error?.code],
      [status, status === 'complete' ? undefined : 'device-unverified'],
    )
  }
})

test('all devices count at the same time, when nothing more is merged; a parked merge begins again', async () => {
  const { rome, oslo } = devices()
  for (const device of [rome, oslo]) device.diesAfterBytes = [makePcap(ROME.slice(0, 3)).byteLength]
  let asked = 0
  const both = Promise.withResolvers<void>()
  const request = requestOf([rome, oslo], {
    countDamage: async (_device, _range, signal) => {
      asked += 1
      if (asked > 2) return UNDAMAGED
      if (asked === 2) both.resolve()
      return await new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      )
    },
  })
  const body = await mergedBody(request)
  const reading = buffer(body.chunks)
  await both.promise
  body.park()
  body.unpark(request.reopen)
  assert.deepEqual(await reading, WHOLE)
  assert.equal(asked, 4)
  assert.deepEqual(
    body.result().perDevice.map(({ status }) => status),
    ['complete', 'complete'],
  )
})

test('a device that fails once while it counts is asked again', async () => {
  const { rome, oslo } = devices()
  rome.diesAfterBytes = [makePcap(ROME.slice(0, 3)).byteLength]
  const answers = [Promise.reject(brokenOff('rome')), Promise.resolve(UNDAMAGED)]
  const { body } = await download([rome, oslo], {
    countDamage: async () => (await answers.shift()) ?? { ...UNDAMAGED, corruptBlocks: 9n },
  })
  assert.equal(body.result().perDevice[0]?.status, 'complete')
})

test('MaxPackets and TSMax end a continued device where they would have ended the first stream', async () => {
  for (const limits of ['MaxPackets=6', 'TSMax=8', 'MaxPackets=7&TSMax=9']) {
    const undisturbed = await download(both(devices()), { parameters: limits })
    for (let packets = 1; packets < 5; packets++) {
      const { rome, oslo } = devices()
      rome.diesAfterBytes = [makePcap(ROME.slice(0, packets)).byteLength + 3]
      const { bytes } = await download([rome, oslo], { parameters: limits })
      assert.deepEqual(bytes, undisturbed.bytes, `${limits} after ${packets}`)
    }
  }
})

test('MaxPackets counts what Dedup leaves: no device sends too few', async () => {
  const same = [1, 2, 3, 4].map((at) => packet(at, `the same packet ${at} in both`))
  const more = [5, 6, 7].map((at) => packet(at, `another packet ${at}`))
  const [rome, oslo] = [new MemoryDevice('rome', [...same, ...more]), new MemoryDevice('oslo', same)]
  const { bytes } = await download([oslo, rome], {
    parameters: 'MaxPackets=6&Dedup=1',
  })
  assert.deepEqual(bytes, makePcap([...same, ...more.slice(0, 2)]))
})

test('once packets were not in the order of time, the device begins inside its stream, by bytes', async () => {
  const mixed = [3, 1, 5, 5, 2, 6, 6].map((at, n) => packet(at, `mixed ${n}`))
  const undisturbed = await download([new MemoryDevice('rome', mixed), new MemoryDevice('oslo', OSLO)])
  for (let cut = makePcap(mixed.slice(0, 2)).byteLength; cut < makePcap(mixed).byteLength; cut++) {
    const rome = new MemoryDevice('rome', mixed)
    rome.diesAfterBytes = [cut]
    const { bytes } = await download([rome, new MemoryDevice('oslo', OSLO)])
    assert.deepEqual(bytes, undisturbed.bytes, `cut at ${cut}`)
  }
})

const LATE = [3, 5, 7, 4, 8, 6].map((at, n) => packet(at, `late ${n}`))

function lateDevice(saysOrder: boolean): MemoryDevice {
  const device = new MemoryDevice('rome', LATE)
  device.saysOrder = saysOrder
  return device
}

test('a device that does not guarantee time order loses nothing, though it was in order until it broke off', async () => {
  const undisturbed = await download([lateDevice(false), new MemoryDevice('oslo', OSLO)])
  for (let cut = 24; cut < makePcap(LATE).byteLength; cut++) {
    const rome = lateDevice(false)
    rome.diesAfterBytes = [cut]
    const { bytes, body } = await download([rome, new MemoryDevice('oslo', OSLO)])
    assert.deepEqual(bytes, undisturbed.bytes, `cut at ${cut}`)
    assert.equal(body.result().perDevice[0]?.isOrdered, false)
  }
})

test('a device that guarantees time order but violates it after a continuation fails', async () => {
  const lying = [3, 5, 7, 6, 8, 9].map((at) => packet(at, 'rome'))
  for (const again of [undefined, makePcap(lying.slice(0, 3)).byteLength]) {
    const rome = new MemoryDevice('rome', lying)
    rome.diesAfterBytes = [makePcap(lying.slice(0, 2)).byteLength, again]
    const failing = download([rome, new MemoryDevice('oslo', OSLO)])
    await assert.rejects(failing, isFailure('device-protocol', /rome .*not in time order/))
    assert.equal(rome.targets.length, 2)
  }
})

test('a device that no longer guarantees the order when it is continued by time fails', async () => {
  const { rome, oslo } = devices()
  rome.diesAfterBytes = [makePcap(ROME.slice(0, 4)).byteLength]
  const failing = download([rome, oslo], {
    onReopen: () => {
      rome.saysOrder = false
    },
  })
  await assert.rejects(failing, isFailure('device-protocol', /rome .*not in time order/))
})

test('a device may break off more than five times, as long as each stream brings a packet', async () => {
  const { rome, oslo } = devices()
  // The last packet, the one after it, and a part of the next.
  rome.diesAfterBytes = Array(99).fill(24 + 4 * 36 + 3)
  rome.diesAfterBytes[0] = 24 + 36
  const times = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]
  rome.records = times.map((at, n) => packet(at, `rome ${n}`, 20))
  const { bytes, body } = await download([rome, oslo])
  assert.deepEqual(bytes, merged(rome.records, OSLO))
  assert.equal(body.result().perDevice[0]?.retries, 8)
})

test("a switch's time is not what a device searches by: it is asked for the same from a byte on", async () => {
  const { rome, oslo } = devices()
  rome.diesAfterBytes = [makePcap(ROME.slice(0, 5)).byteLength]
  const { bytes } = await download([rome, oslo], { parameters: 'TSMode=vendorA7130' })
  assert.deepEqual(bytes, WHOLE)
  assert.equal(rome.targets[1], `${rome.targets[0]}&After=${makePcap(ROME.slice(0, 0)).byteLength}`)
})

test('a delivered packet that is another one now is an error, at once and by name', async () => {
  for (const parameters of ['', 'TSMode=vendorA7130']) {
    const { rome, oslo } = devices()
    rome.diesAfterBytes = [makePcap(ROME.slice(0, 4)).byteLength]
    const changed = download([rome, oslo], {
      parameters,
      onReopen: () => {
        rome.records = ROME.map((record, n) => (n === 3 ? packet(1, 'other 3', 20) : record))
      },
    })
    await assert.rejects(
      changed,
      isFailure('device-protocol', /^rome: .*last delivered packets are different/),
    )
    assert.equal(rome.targets.length, 2)
  }
})

test('a device that stays unreachable fails the download after five more attempts', async () => {
  const { rome, oslo } = devices()
  rome.diesAfterBytes = [100]
  const failing = download([rome, oslo], { onReopen: () => refuse(rome) })
  await assert.rejects(failing, isFailure('device-unreachable', /rome broke off/))
  assert.equal(rome.targets.length, 6)
})

test('OnError=partial continues without the device and says what is missing', async () => {
  const { rome, oslo } = devices()
  rome.diesAfterBytes = [makePcap(ROME.slice(0, 6)).byteLength]
  const { bytes, body } = await download([rome, oslo], {
    options: { ...PLAIN_MERGE, onError: 'partial' },
    onReopen: () => refuse(rome),
  })
  assert.deepEqual(bytes, merged(ROME.slice(0, 6), OSLO))
  const [lost, whole] = body.result().perDevice
  assert.deepEqual(lost?.missing, { fromNs: START_NS + 4n, toNs: END_NS })
  assert.deepEqual([lost?.status, lost?.packets, lost?.error?.code], ['missing', 6n, 'device-unreachable'])
  assert.deepEqual([whole?.status, whole?.packets, whole?.missing], ['complete', 6n, undefined])
})

test('OnError=partial with a device that never opened, and with none left', async () => {
  const { rome, oslo } = devices()
  const options = { ...PLAIN_MERGE, onError: 'partial' } as const
  const { bytes, body } = await download([rome, oslo], { options, neverOpens: ['rome'] })
  assert.deepEqual(bytes, makePcap(OSLO))
  assert.deepEqual(body.result().perDevice[0]?.missing, { fromNs: START_NS, toNs: END_NS })
  await assert.rejects(download([rome, oslo], { options, neverOpens: ['rome', 'oslo'] }), brokenOff('rome'))
  rome.diesAfterBytes = Array(9).fill(60)
  oslo.diesAfterBytes = Array(9).fill(60)
  const dying = download([rome, oslo], {
    options,
    onReopen: () => {
      refuse(rome)
      refuse(oslo)
    },
  })
  await assert.rejects(dying, isFailure('device-unreachable', /broke off/))
})

test('a compressed body has the same bytes in it after a device has died', async () => {
  for (const [compression, decode] of [
    ['fast', gunzipSync],
    ['zstd', zstdDecompressSync],
  ] as const) {
    const parameters = `Compression=${compression}`
    const { rome, oslo } = devices()
    rome.diesAfterBytes = [200]
    const { bytes } = await download([rome, oslo], { parameters })
    assert.deepEqual(decode(bytes), WHOLE)
  }
})

test('a parked body holds no stream, and continues where it was: at every place', async () => {
  for (let parkAt = 0; parkAt < 12; parkAt++) {
    const { rome, oslo } = devices()
    rome.chunkBytes = oslo.chunkBytes = 40
    const body = await mergedBody(requestOf([rome, oslo]))
    const pieces: Buffer[] = []
    for await (const chunk of body.chunks) {
      pieces.push(Buffer.from(chunk))
      if (pieces.length !== parkAt + 1) continue
      body.park()
      assert.deepEqual([rome.open, oslo.open], [0, 0])
      setImmediate(() =>
        body.unpark(async ({ target, device }) => find([rome, oslo], device).openSource(target)),
      )
    }
    assert.deepEqual(Buffer.concat(pieces), WHOLE, `parked after ${parkAt} chunks`)
    assert.equal(body.result().perDevice[0]?.retries, 0)
  }
})

test('Align subtracts the offset of each clock before the merge, and a continued device is found by its own time', async () => {
  const offsets: Readonly<Record<string, bigint>> = { rome: 5n, oslo: -3n }
  const moved = (records: readonly PcapRecord[], ns: bigint) =>
    records.map((record) => ({ ...record, ns: record.ns - ns }))
  const expected = merged(moved(ROME, 5n), moved(OSLO, -3n))
  for (let cut = 24; cut < 240; cut += 7) {
    const { rome, oslo } = devices()
    rome.diesAfterBytes = [cut]
    const { bytes, body } = await download([rome, oslo], {
      options: { ...PLAIN_MERGE, align: true },
      clockOf: (device) => ({ offsetNs: offsets[device] ?? 0n, errorNs: 2n }),
    })
    assert.deepEqual(bytes, expected, `cut at ${cut}`)
    assert.deepEqual(body.facts.clocks.get('oslo'), { offsetNs: -3n, errorNs: 2n })
  }
})

test('Align is refused when the clock of a device that is read is not known', async () => {
  const clockOf = (device: string) => (device === 'rome' ? { offsetNs: 5n, errorNs: 2n } : undefined)
  const options = { ...PLAIN_MERGE, align: true }
  await assert.rejects(download(both(devices()), { options, clockOf }), {
    code: 'bad-parameter',
    message:
      /^Align cannot correct the timestamps of oslo: the gateway could not read the clock of this device/,
  })
})

test('without Align the clocks are reported only', async () => {
  const { bytes, body } = await download(both(devices()), { clockOf: () => ({ offsetNs: 9n, errorNs: 1n }) })
  assert.deepEqual(bytes, WHOLE)
  assert.deepEqual(body.result().perDevice[0]?.clock, { offsetNs: 9n, errorNs: 1n })
})

test('a clock that is surely off by more than a millisecond is named in the log', async () => {
  const warnings: unknown[] = []
  const log = { warn: (event: string, facts: object) => warnings.push([event, facts]) } as unknown as Log
  const offsets: Readonly<Record<string, bigint>> = { rome: -1_200_000n, oslo: 1_100_000n }
  const clockOf = (device: string) => ({ offsetNs: offsets[device] ?? 0n, errorNs: 150_000n })
  await download(both(devices()), { clockOf, log })
  assert.deepEqual(warnings, [
    ['merge.clock-skew', { device: 'rome', offsetNs: '-1200000', errorNs: '150000' }],
  ])
})

test('a merge that is continued reports the clocks, and can be parked', async () => {
  const { rome, oslo } = devices()
  rome.chunkBytes = oslo.chunkBytes = 40
  const whole = await mergedBody(requestOf([rome, oslo], { clockOf: () => ({ offsetNs: 9n, errorNs: 1n }) }))
  const { plan } = requestOf([rome, oslo])
  const continuation = continueFrom(plan, { bytes: 90, places: undefined })
  const body = await restOfBody(whole, continuation, { bytes: 90, first: new Uint8Array(0) })
  assert.deepEqual([...body.facts.clocks.keys()], ['rome', 'oslo'])
  const pieces: Uint8Array[] = []
  for await (const chunk of body.chunks) {
    pieces.push(Buffer.from(chunk))
    if (pieces.length !== 2) continue
    body.park()
    assert.deepEqual([rome.open, oslo.open], [0, 0])
    setImmediate(() =>
      body.unpark(async ({ target, device }) => find([rome, oslo], device).openSource(target)),
    )
  }
  assert.deepEqual(Buffer.concat(pieces), WHOLE.subarray(90))
})

test('Dedup leaves out what was sent before, by whichever device, and counts it', async () => {
  const same = [1, 3, 5].map((at) => packet(at, 'the same packet in both'))
  const [rome, oslo] = [new MemoryDevice('rome', same), new MemoryDevice('oslo', same.map(later))]
  const { bytes, body } = await download([rome, oslo], { parameters: 'Dedup=1' })
  assert.deepEqual(bytes, makePcap(same))
  assert.equal(body.result().duplicates, 3n)
  assert.deepEqual(
    body.result().perDevice.map(({ packets }) => packets),
    [3n, 0n],
  )
})

interface DownloadTweaks extends Partial<Pick<MergeRequest, 'clockOf' | 'countDamage' | 'log'>> {
  readonly parameters?: string
  readonly options?: MergeOptions
  readonly onReopen?: () => void
  readonly neverOpens?: readonly string[]
}

async function download(all: readonly MemoryDevice[], tweaks: DownloadTweaks = {}) {
  const body = await mergedBody(requestOf(all, tweaks))
  const chunks: Buffer[] = []
  for await (const chunk of body.chunks) chunks.push(Buffer.from(chunk))
  return { bytes: Buffer.concat(chunks), body }
}

function requestOf(all: readonly MemoryDevice[], tweaks: DownloadTweaks = {}): MergeRequest {
  const {
    parameters = '',
    options = PLAIN_MERGE,
    onReopen,
    neverOpens = [],
    clockOf = () => undefined,
    countDamage = async () => UNDAMAGED,
    log,
  } = tweaks
  const raw = `TSBegin=${START_NS}&TSEnd=${END_NS}&TSUnit=nanos&${parameters}`
  const query = parseDownloadQuery('timerange', parseQueryString(raw), { zone: 'UTC', nowNs: END_NS })
  const plan = planDownload(
    withinBounds(query, UNBOUNDED),
    all.map(({ name }) => name),
    64,
  )
  return {
    plan,
    options,
    sources: plan.steps.map(({ device, target }) =>
      neverOpens.includes(device) ? undefined : find(all, device).openSource(target),
    ),
    failures: new Map(neverOpens.map((name) => [name, brokenOff(name)])),
    reopen: async ({ device, target }) => {
      onReopen?.()
      return find(all, device).openSource(target)
    },
    signal: new AbortController().signal,
    countDamage,
    timings: QUICK,
    startBytes: 0,
    clockOf,
    siteOf: () => undefined,
    log: log ?? { warn: () => undefined },
  }
}

function devices() {
  return { rome: new MemoryDevice('rome', ROME), oslo: new MemoryDevice('oslo', OSLO) }
}

function both({ rome, oslo }: ReturnType<typeof devices>): MemoryDevice[] {
  return [rome, oslo]
}

function find(all: readonly MemoryDevice[], name: string): MemoryDevice {
  const device = all.find((each) => each.name === name)
  assert.ok(device)
  return device
}

function refuse(device: MemoryDevice): void {
  device.refusal = brokenOff(device.name)
}

function packet(at: number, text: string, capturedLength = text.length): PcapRecord {
  return makePacket(START_NS + BigInt(at), text, capturedLength)
}

function later(record: PcapRecord): PcapRecord {
  return { ...record, ns: record.ns + 1n }
}

/** The lists in the order of time; at equal times the first list comes first. */
function merged(...lists: readonly (readonly PcapRecord[])[]): Buffer {
  return makePcap(lists.flat().sort((a, b) => Number(a.ns - b.ns)))
}

function isFailure(code: string, message: RegExp) {
  return (error: unknown) =>
    error instanceof CapfleetError && error.code === code && message.test(error.message)
}
