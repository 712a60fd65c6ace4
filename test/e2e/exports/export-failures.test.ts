// Exports whose devices fail, and exports that are no longer wanted.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { addAgedOut } from '../../../appliance/store/aged-out-list.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import { eventually } from '../../support/eventually.ts'
import { EXPORT_BEGIN_NS, EXPORT_END_NS, writeExportCapture } from '../../support/exports/export-captures.ts'
import { ExportWorld, WHOLE_RANGE } from '../../support/exports/export-world.ts'
import { leaseKeys } from '../../support/lease/lease-dump.ts'
import { type PcapRecord, readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { pause } from '../../support/pause.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'

const SECOND_NS = 1_000_000_000n
const CAPTURE_BYTES = 1_500_000
/** Of each device there are several. */
const SPAN_BYTES = 524_288
const RETRY_S = 2
const BROKEN_AFTER_BYTES = 150_000
/** Of each device: less than a span. */
const HELD_AFTER_BYTES = 400_000
/** More moments are tried at night. */
const CANCELLED = process.env.CAPFLEET_LONG === '1' ? 24 : 8
const LATEST_MS = 360

describe('an export that cannot become what was ordered', () => {
  test('fails when its devices have packets of other link types, and leaves nothing over', async () => {
    await using world = await ExportWorld.create({ captureBytes: 0, spanBytes: SPAN_BYTES })
    for (const [index, linkType] of [1, 101, 1].entries()) {
      const { appliance, name } = world.devices[index] ?? assert.fail()
      const path = join(appliance.folder, `${name}.pcap`)
      await writeExportCapture(path, { device: index, bytes: CAPTURE_BYTES, linkType })
      await appliance.importFiles(name, path)
    }
    await using _worker = await startTempWorker(world.gateway)
    const shown = await world.ended(await world.ordered(WHOLE_RANGE))
    assert.deepEqual([shown.state, shown.error?.code, shown.files], ['failed', 'mixed-link-type', []])
    const direct = await world.call(`/api/v1/pcap/timerange?${WHOLE_RANGE}`)
    assert.equal(direct.json().code, shown.error?.code)
    await world.isTidy()
    assert.deepEqual(await readdir(world.target), ['.work'])
  })

  test('has no claim about a device without packets: it is like a direct download', async () => {
    await using world = await ExportWorld.create({ captureBytes: 0, spanBytes: SPAN_BYTES })
    const { appliance, name } = world.device('west')
    const path = join(appliance.folder, `${name}.pcap`)
    await writeExportCapture(path, { device: 2, bytes: CAPTURE_BYTES, linkType: 101 })
    await appliance.importFiles(name, path)
    await using _worker = await startTempWorker(world.gateway)
    const [file] = await world.exported(WHOLE_RANGE)
    assert.equal(sha256(file), sha256(await world.directRange(WHOLE_RANGE)))
  })
})

describe('packets that a device has no longer', () => {
  const GONE_NS = 20n * SECOND_NS
  /** All devices lack what was before, and one of them what was after. */
  const before20 = { name: 'before', startNs: EXPORT_BEGIN_NS - GONE_NS, endNs: EXPORT_BEGIN_NS - 1n }
  const after20 = { name: 'after', startNs: EXPORT_END_NS, endNs: EXPORT_END_NS + GONE_NS - 1n }
  let world: ExportWorld
  const parts = new AsyncDisposableStack()
  before(async () => {
    world = parts.use(await ExportWorld.create({ captureBytes: 0, spanBytes: SPAN_BYTES }))
    for (const [device, { name, appliance }] of world.devices.entries()) {
      const paths = storePaths(appliance.storePath)
      await addAgedOut(paths, before20)
      if (name === 'north') await addAgedOut(paths, after20)
      // An import makes the appliance read its store again.
      const path = join(appliance.folder, `${name}.pcap`)
      await writeExportCapture(path, { device, bytes: CAPTURE_BYTES })
      await appliance.importFiles(name, path)
    }
    parts.use(await startTempWorker(world.gateway))
  })
  after(() => parts.disposeAsync())

  test('are named as final holes of it alone', async () => {
    const range = `TSBegin=${EXPORT_BEGIN_NS}&TSEnd=${EXPORT_END_NS + GONE_NS}`
    const shown = await world.ended(await world.ordered(range))
    assert.equal(shown.state, 'partial', JSON.stringify(shown.error))
    assert.deepEqual(
      shown.devices.map(({ device, missing }) => [
        device,
        missing.every(({ final }) => final) && missing.length > 0,
      ]),
      [
        ['east', false],
        ['north', true],
        ['west', false],
      ],
    )
    const hole = shown.devices[1]?.missing.at(-1)
    assert.ok(BigInt(hole?.toNs ?? 0) >= after20.endNs)
    const [file] = await world.files(shown)
    assert.equal(sha256(file), sha256(await world.directRange(range)))
  })

  test('leave the file of their part without a packet, and the other parts whole; alone they are no export', async () => {
    const range = `TSBegin=${EXPORT_BEGIN_NS - GONE_NS}&TSEnd=${EXPORT_END_NS}`
    const parts = await world.ended(await world.ordered(`${range}&PartTime=20s`))
    assert.equal(parts.state, 'partial', JSON.stringify(parts.error))
    const [first, ...others] = await world.files(parts)
    assert.equal(first?.length, 24)
    for (const [index, bytes] of others.entries()) {
      const fromNs = EXPORT_BEGIN_NS + BigInt(index) * GONE_NS
      const direct = await world.directRange(`TSBegin=${fromNs}&TSEnd=${fromNs + GONE_NS}`)
      assert.equal(sha256(bytes), sha256(direct))
    }
    const gone = `TSBegin=${EXPORT_BEGIN_NS - GONE_NS}&TSEnd=${EXPORT_BEGIN_NS}&OnMissing=partial`
    for (const query of [gone, `${gone}&PartTime=5s`]) {
      const nothing = await world.ended(await world.ordered(query))
      assert.deepEqual([nothing.state, nothing.error?.code], ['failed', 'aged-out'])
    }
  })
})

test('packets that a device lost to damage are named as a final hole of it', async () => {
  await using world = await ExportWorld.create({ captureBytes: CAPTURE_BYTES, spanBytes: SPAN_BYTES })
  const { appliance, name } = world.device('north')
  const capture = join(appliance.storePath, 'captures', name)
  const segment = join(capture, 'cap0', '00000', '00000001.pcap')
  const bytes = await readFile(segment)
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 10) ^ 1, bytes.length - 10)
  await writeFile(segment, bytes)
  await using _worker = await startTempWorker(world.gateway)
  const shown = await world.ended(await world.ordered(WHOLE_RANGE))
  assert.equal(shown.state, 'partial', JSON.stringify(shown.error))
  assert.deepEqual(
    shown.devices.map(({ device, missing }) => [
      device,
      missing.map(({ final, error }) => [final, error.code]),
    ]),
    [
      ['east', []],
      ['north', [[true, 'store-corrupt']]],
      ['west', []],
    ],
  )
  const [file] = await world.files(shown)
  assert.equal(sha256(file), sha256(await world.directRange(WHOLE_RANGE)))
  const [hole] = shown.devices[1]?.missing ?? []
  assert.ok(
    BigInt(hole?.fromNs ?? 0) > EXPORT_BEGIN_NS || BigInt(hole?.toNs ?? 0) < EXPORT_END_NS,
    'a window',
  )
  // The bounds of windows depend on packets that this caller may not see.
  const scopes = 'Scopes=capture:download,export:create,device:read'
  const issued = await world.call(`/v1/tokens?${scopes}&Filter=udp+port+1`, { method: 'POST' })
  assert.equal(issued.status, 201, issued.body.toString())
  const headers = { authorization: `Bearer ${issued.json().token}` }
  const bounded = await world.ended(await world.ordered(WHOLE_RANGE, { headers }))
  assert.deepEqual(
    bounded.devices[1]?.missing.map(({ fromNs, toNs }) => [fromNs, toNs]),
    [[String(EXPORT_BEGIN_NS), String(EXPORT_END_NS)]],
  )
})

describe('a device that cannot be read', () => {
  const parts = new AsyncDisposableStack()
  /** The devices of the second are asked again for long. */
  let world: ExportWorld
  let patient: ExportWorld
  before(async () => {
    const options = { captureBytes: CAPTURE_BYTES, spanBytes: SPAN_BYTES }
    world = parts.use(await ExportWorld.create({ ...options, exports: { deviceRetryS: RETRY_S } }))
    patient = parts.use(await ExportWorld.create(options))
    for (const { gateway } of [world, patient]) parts.use(await startTempWorker(gateway))
  })
  after(() => parts.disposeAsync())
  beforeEach(async () => {
    for (const { line } of [...world.devices, ...patient.devices]) {
      line.isDown = false
      line.cutAfterBytes = Number.POSITIVE_INFINITY
    }
    await world.isAnswering('west')
  })

  for (const [when, fail] of [
    [
      'from the start',
      () => {
        world.device('west').line.isDown = true
      },
    ],
    [
      'in the middle of its streams',
      () => {
        world.device('west').line.cutAfterBytes = BROKEN_AFTER_BYTES
      },
    ],
  ] as const) {
    test(`${when} ends the export where OnMissing is fail`, async () => {
      fail()
      const id = await world.ordered(WHOLE_RANGE)
      const shown = await world.ended(id)
      assert.equal(shown.state, 'failed', JSON.stringify(shown))
      assert.match(shown.error?.code ?? '', /^device-/)
      await world.isTidy()
    })

    test(`${when} is left out where OnMissing is partial, and the holes say what is not there`, async () => {
      const own = await Promise.all(
        world.devices.map(
          async ({ name }) => readPcap(await world.directRange(`${WHOLE_RANGE}&Device=${name}`)).records,
        ),
      )
      fail()
      const id = await world.ordered(`${WHOLE_RANGE}&OnMissing=partial`)
      const shown = await world.ended(id)
      assert.equal(shown.state, 'partial', JSON.stringify(shown.error))
      assert.deepEqual(
        shown.devices.map(({ missing }) => missing.length > 0),
        [false, false, true],
      )
      const holes = shown.devices[2]?.missing ?? []
      const isInHole = (ns: bigint) =>
        holes.some(({ fromNs, toNs }) => ns >= BigInt(fromNs) && ns < BigInt(toNs))
      const expected = own
        .flatMap((records, device) => records.filter(({ ns }) => device < 2 || !isInHole(ns)))
        .sort((one, other) => (one.ns < other.ns ? -1 : one.ns > other.ns ? 1 : 0))
      const [file = Buffer.alloc(0)] = await world.files(shown)
      assert.ok(sameLines(readPcap(file).records, expected))
      await world.isTidy()
    })
  }

  test('for a while is asked again, and the export becomes whole', async () => {
    const direct = await patient.directRange(WHOLE_RANGE)
    const { line } = patient.device('east')
    line.hold(HELD_AFTER_BYTES)
    const id = await patient.ordered(WHOLE_RANGE)
    await line.untilHeld()
    line.isDown = true
    line.release()
    await patient.until(id, ({ devices }) => (devices[0]?.retries ?? 0) > 1)
    line.isDown = false
    const shown = await patient.ended(id)
    assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
    const [file] = await patient.files(shown)
    assert.equal(sha256(file), sha256(direct))
  })

  test('leaves nothing of its broken streams in the spool, however often it breaks', async () => {
    const { line } = patient.device('west')
    line.cutAfterBytes = BROKEN_AFTER_BYTES
    const id = await patient.ordered(`${WHOLE_RANGE}&Device=west`)
    await patient.until(id, ({ devices }) => (devices[0]?.retries ?? 0) >= 3)
    const spooled = await readdir(join(patient.spool, id), { recursive: true })
    assert.ok(spooled.filter((name) => name.endsWith('.pcap')).length <= 2, spooled.join(' '))
    await patient.call(`/v1/exports/${id}`, { method: 'DELETE' })
    await patient.isTidy()
  })
})

describe('an export that is cancelled', () => {
  let world: ExportWorld
  before(async () => {
    world = await ExportWorld.create({ captureBytes: CAPTURE_BYTES, spanBytes: SPAN_BYTES })
  })
  after(() => world[Symbol.asyncDispose]())
  afterEach(() => world.release())

  async function cancelled(id: string): Promise<void> {
    const answer = await world.call(`/v1/exports/${id}`, { method: 'DELETE' })
    assert.equal(answer.status, 200)
  }

  async function nothingIsLeft(): Promise<void> {
    await world.isTidy()
    await world.redis.until(
      async () => leaseKeys(await world.redis.leftovers('capfleet'), 'capfleet').length === 0,
    )
    for (const { appliance } of world.devices)
      await eventually(async () => (await appliance.slotsUsed()) === 0, { message: 'no stream' })
  }

  test('before a worker has begun leaves nothing over', async () => {
    const id = await world.ordered(WHOLE_RANGE)
    await cancelled(id)
    assert.equal((await world.shown(id)).state, 'cancelled')
    await using _worker = await startTempWorker(world.gateway)
    await nothingIsLeft()
  })

  test('while its spans are fetched leaves nothing over', async () => {
    await using _worker = await startTempWorker(world.gateway)
    world.hold(HELD_AFTER_BYTES)
    const id = await world.ordered(WHOLE_RANGE)
    await world.until(id, ({ progress }) => Number(progress.fetchedBytes) > 0)
    await cancelled(id)
    await nothingIsLeft()
    assert.ok(!(await readdir(world.target)).includes(id))
    const { state, files } = await world.shown(id)
    assert.deepEqual([state, files], ['cancelled', []])
  })

  test('at any moment leaves its files or nothing', async (t) => {
    await using _worker = await startTempWorker(world.gateway)
    const direct = sha256(await world.directRange(WHOLE_RANGE))
    const stages = new Map<string, number>()
    for (let round = 0; round < CANCELLED; round += 1) {
      const id = await world.ordered(WHOLE_RANGE)
      await pause((LATEST_MS * round) / CANCELLED, 'it is cancelled at any moment')
      const before = await world.shown(id)
      const stage = before.progress.stage
      stages.set(stage, (stages.get(stage) ?? 0) + 1)
      if (stage === 'ended') continue
      await cancelled(id)
    }
    t.diagnostic(JSON.stringify(Object.fromEntries(stages)))
    await nothingIsLeft()
    const kept = (await readdir(world.target)).filter((name) => name !== '.work')
    for (const id of kept) {
      const shown = await world.shown(id)
      assert.equal(shown.state, 'complete')
      assert.deepEqual(
        shown.files.map(({ sha256: digest }) => digest),
        [direct],
      )
    }
  })
})

function sameLines(some: readonly PcapRecord[], others: readonly PcapRecord[]): boolean {
  return recordLines(some).join('\n') === recordLines(others).join('\n')
}

function sha256(bytes: Buffer | undefined): string {
  return createHash('sha256')
    .update(bytes ?? '')
    .digest('hex')
}
