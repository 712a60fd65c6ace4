// Exports with Format=pcapng: the packets of a direct download with their ports, in files that say whether they are whole.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { EXPORT_MANIFEST } from '../../../src/shared/contract/export-answers.ts'
import { PcapngEnd } from '../../../src/shared/pcap/pcapng-end.ts'
import { EXPORT_BEGIN_NS, EXPORT_END_NS, exportPackets } from '../../support/exports/export-captures.ts'
import { ExportWorkerProcess, type WorkerFault } from '../../support/exports/export-worker-process.ts'
import { ExportWorld, WHOLE_RANGE } from '../../support/exports/export-world.ts'
import { makePcapng } from '../../support/packets/pcapng-maker.ts'
import { readPcapng } from '../../support/packets/pcapng-reader.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const CAPTURE_BYTES = 900_000
/** Of each device there are several. */
const SPAN_BYTES = 320_000
const PART_BYTES = 1_060_000
/** Workers that are killed, and devices that are missing, in every kind of files: at night. */
const IS_LONG = process.env.CAPFLEET_LONG === '1'
const SECOND_NS = 1_000_000_000n
const PCAPNG = '&Format=pcapng'

/** Two ports on each device, and another link type on one of them. */
async function pcapngWorld(
  options: Partial<Parameters<typeof ExportWorld.create>[0]> = {},
): Promise<ExportWorld> {
  const world = await ExportWorld.create({ captureBytes: 0, spanBytes: SPAN_BYTES, ...options })
  for (const [index, { name, appliance }] of world.devices.entries()) {
    const packets = exportPackets(index, CAPTURE_BYTES)
    // The second port has packets from the middle on.
    const records = packets.map((packet, at) => ({ ...packet, port: at < packets.length / 2 ? 0 : at % 2 }))
    const path = join(appliance.folder, `${name}.pcapng`)
    await writeFile(path, makePcapng(2, records, name === 'west' ? 101 : 1))
    await appliance.importFiles(name, path)
  }
  return world
}

/** The packets with the names and link types of their interfaces; a hash of their bytes, so that a failure is readable. */
function packetLines(files: readonly Buffer[]): readonly string[] {
  return files.flatMap((file) => {
    const { packets, interfaces } = readPcapng(file)
    return packets.map(({ port, ns, originalLength, captured }) => {
      const { name, linkType } = interfaces[port] ?? {}
      return `${name} ${linkType} ${ns} ${originalLength} ${hash('md5', captured)}`
    })
  })
}

function endOf(file: Buffer): readonly string[] {
  const end = new PcapngEnd('a file')
  end.feed(file)
  return end.comments ?? assert.fail('the file is not whole')
}

function unzstd(input: Buffer): Buffer {
  return execFileSync('zstd', ['--decompress', '--stdout'], { input, maxBuffer: 1 << 30 })
}

/** A compressor need not give the same bytes twice. */
function plainFiles(query: string, files: readonly Buffer[]): readonly Buffer[] {
  return query.includes('Compression') ? files.map((file) => gunzipSync(file)) : files
}

/** Each says how many packets of which interface it has. */
function assertCounts(file: Buffer): void {
  const { packets, interfaces, delivered } = readPcapng(file)
  assert.deepEqual(
    delivered,
    interfaces.map((_, number) => BigInt(packets.filter(({ port }) => port === number).length)),
  )
  assert.match(endOf(file)[0] ?? '', new RegExp(`^${packets.length} packets, `))
}

describe('an export in pcapng', () => {
  let world: ExportWorld
  const parts = new AsyncDisposableStack()
  before(async () => {
    world = parts.use(await pcapngWorld())
    parts.use(await startTempWorker(world.gateway))
  })
  after(() => parts.disposeAsync())

  for (const query of [
    `${WHOLE_RANGE}&Device=north`,
    `${WHOLE_RANGE}&Device=east,north&FilterBPF=greater+700`,
    `${WHOLE_RANGE}&Device=east&FilterBPF=greater+4000`,
    `${WHOLE_RANGE}&Slice=64&TSResolution=usec&Dedup=2000`,
    `${WHOLE_RANGE}&MaxPackets=1234`,
    `${WHOLE_RANGE}&Device=west&MaxPackets=345`,
    `${WHOLE_RANGE}&TSMax=20000000000&Device=east`,
    `TSBegin=${EXPORT_END_NS}&TSEnd=${EXPORT_END_NS + SECOND_NS}`,
  ])
    test(`has the packets of a direct download with their ports: ${query}`, async () => {
      const id = await world.ordered(query + PCAPNG)
      const shown = await world.ended(id)
      assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
      const [file, ...more] = await world.files(shown)
      assert.ok(file !== undefined && more.length === 0)
      assert.match(shown.files[0]?.name ?? '', /^[\w.-]+\.pcapng$/)
      const direct = await world.directRange(query + PCAPNG)
      assert.deepEqual(packetLines([file]), packetLines([direct]))
      assertCounts(file)
      assert.equal(endOf(file)[0], endOf(direct)[0])
      const path = join(world.target, id, shown.files[0]?.name ?? '')
      assert.match(execFileSync('capinfos', ['-c', '-M', path], { encoding: 'utf8' }), /Number of packets/)
      const answer = await world.call(`/v1/exports/${id}/file`)
      assert.deepEqual([answer.status, answer.headers['content-type']], [200, 'application/x-pcapng'])
      assert.ok(answer.body.equals(file))
    })

  test('is divided by PartBytes into files that are whole by themselves', async () => {
    const files = await world.exported(`${WHOLE_RANGE}&PartBytes=${PART_BYTES}${PCAPNG}`)
    assert.ok(files.length > 2)
    for (const [index, file] of files.entries()) {
      assertCounts(file)
      assert.ok(file.length <= PART_BYTES, `part ${index} has ${file.length} bytes`)
      if (index < files.length - 1) assert.ok(file.length > PART_BYTES - 4_000, `part ${index} had room`)
    }
    assert.deepEqual(packetLines(files), packetLines([await world.directRange(WHOLE_RANGE + PCAPNG)]))
  })

  test('is divided by PartTime into the downloads of each time', async () => {
    const files = await world.exported(`${WHOLE_RANGE}&PartTime=25s${PCAPNG}`)
    assert.equal(files.length, 3)
    for (const [index, file] of files.entries()) {
      const beginNs = EXPORT_BEGIN_NS + BigInt(index) * 25n * SECOND_NS
      const endNs = beginNs + 25n * SECOND_NS < EXPORT_END_NS ? beginNs + 25n * SECOND_NS : EXPORT_END_NS
      const direct = await world.directRange(`TSBegin=${beginNs}&TSEnd=${endNs}${PCAPNG}`)
      assert.deepEqual(packetLines([file]), packetLines([direct]))
      assertCounts(file)
    }
  })

  test('is compressed, and says what it is in names, types and the manifest', async () => {
    const direct = packetLines([await world.directRange(WHOLE_RANGE + PCAPNG)])
    for (const [compression, ending, type, unpack] of [
      ['fast', '.pcapng.gz', 'application/gzip', gunzipSync],
      ['zstd', '.pcapng.zst', 'application/zstd', unzstd],
    ] as const) {
      const id = await world.ordered(`${WHOLE_RANGE}&Compression=${compression}${PCAPNG}`)
      const shown = await world.ended(id)
      const answer = await world.call(`/v1/exports/${id}/file`)
      assert.equal(answer.headers['content-type'], type)
      assert.ok(shown.files[0]?.name.endsWith(ending), shown.files[0]?.name)
      const file = unpack(answer.body)
      assert.deepEqual(packetLines([file]), direct)
      assertCounts(file)
      const manifest = await world.call(`/v1/exports/${id}/manifest`)
      const { query, files, packets } = EXPORT_MANIFEST.parse(manifest.json())
      assert.match(query, /Format=pcapng/)
      assert.deepEqual([files, packets], [shown.files, String(direct.length)])
    }
  })

  test('keeps MaxBytes, and says that a limit ended it', async () => {
    for (const devices of ['east', 'east,north']) {
      const [file] = await world.exported(`${WHOLE_RANGE}&Device=${devices}&MaxBytes=400000${PCAPNG}`)
      assert.ok(file !== undefined && file.length <= 400_000 && file.length > 390_000, `${file?.length}`)
      assertCounts(file)
      assert.match(endOf(file)[0] ?? '', /ended by MaxPackets or MaxBytes; the next packet is from \d+ ns/)
    }
  })

  test('comes of a download with Queue=job, and of a schedule', async () => {
    const answer = await world.call(`/api/v1/pcap/timerange?${WHOLE_RANGE}&Queue=job${PCAPNG}`, {
      headers: { 'Capfleet-Form': '1' },
    })
    assert.equal(answer.status, 202, answer.body.toString())
    const shown = await world.ended(String(answer.json().id))
    assert.deepEqual([shown.state, shown.files[0]?.name.endsWith('.pcapng')], ['complete', true])
    const range = 'TSBegin=-2m&TSEnd=-1m&Cron=5+*+*+*+*'
    const schedule = await world.call(`/v1/schedules?${range}${PCAPNG}`, { method: 'POST', as: 'full' })
    assert.equal(schedule.status, 201, schedule.body.toString())
  })

  test('names its only device, if that has no packets', async () => {
    const query = `TSBegin=${EXPORT_END_NS}&TSEnd=${EXPORT_END_NS + SECOND_NS}&Device=east`
    const [file] = await world.exported(query + PCAPNG)
    assert.ok(file)
    const { interfaces, packets } = readPcapng(file)
    assert.deepEqual([interfaces.map((one) => one.name), packets.length], [['east:capture'], 0])
  })

  test('leaves nothing behind', async () => {
    await world.isTidy()
  })
})

/** A worker that is killed after it has begun a file, and restarted. */
async function dyingWorker(world: ExportWorld): Promise<AsyncDisposable> {
  await using owned = new AsyncDisposableStack()
  const folder = owned.use(await tempFolder())
  const fault: WorkerFault = {
    kind: 'open-file',
    begunPath: join(folder.path, 'begun'),
    deathsMax: IS_LONG ? 3 : 1,
  }
  await writeFile(fault.begunPath, '')
  const options = { gateway: world.gateway, folder: folder.path, name: 'w', fault }
  const worker = owned.use(await ExportWorkerProcess.start(options))
  const starting = setInterval(() => {
    if (!worker.isRunning) void worker.start()
  }, 50)
  owned.defer(() => clearInterval(starting))
  const all = owned.move()
  return { [Symbol.asyncDispose]: () => all.disposeAsync() }
}

test('an export in pcapng whose device is missing says so in its files, until they are filled', async () => {
  await using world = await pcapngWorld({ exports: { deviceRetryS: 1 } })
  const whole = packetLines([await world.directRange(WHOLE_RANGE + PCAPNG)])
  const direct = packetLines([await world.directRange(`${WHOLE_RANGE}&Device=east,west${PCAPNG}`)])
  const { line } = world.device('north')
  const cases = [
    [`&PartBytes=${PART_BYTES}&Compression=fast`, () => dyingWorker(world)],
    ['', startTempWorker],
    [`&PartBytes=${PART_BYTES}`, () => dyingWorker(world)],
  ] as const
  for (const [more, startFilling] of cases.slice(0, IS_LONG ? cases.length : 1)) {
    line.isDown = true
    const id = await world.ordered(`${WHOLE_RANGE}&OnMissing=partial${more}${PCAPNG}`)
    const filesOf = async (shown: Awaited<ReturnType<typeof world.ended>>) =>
      plainFiles(more, await world.files(shown))
    {
      await using _worker = await startTempWorker(world.gateway)
      const shown = await world.ended(id)
      assert.equal(shown.state, 'partial', JSON.stringify(shown.error))
      const files = await filesOf(shown)
      for (const file of files) {
        const [first, ...others] = endOf(file)
        assert.match(first ?? '', /^\d+ packets, incomplete; without packets of north$/)
        assert.ok(others.some((text) => /^capfleet missing: packets of north from .* to .*: /.test(text)))
      }
      assert.deepEqual(packetLines(files), direct)
    }
    line.isDown = false
    await world.isAnswering('north')
    await using _worker = await startFilling(world.gateway)
    const filling = await world.call(`/v1/exports/${id}/fill`, { method: 'POST' })
    assert.equal(filling.status, 202, filling.body.toString())
    const filled = await world.until(id, ({ state }) => state === 'complete')
    assert.ok(filled.files.every(({ name }) => /_r1\.pcapng(\.gz)?$/.test(name)))
    const files = await filesOf(filled)
    // Among packets of equal time, those that were filled in come last.
    assert.deepEqual(packetLines(files).toSorted(), whole.toSorted())
    for (const file of files) {
      assertCounts(file)
      assert.match(endOf(file).join('; '), /^\d+ packets, complete$/)
      assert.ok(more === '' || file.length <= PART_BYTES)
    }
  }
})

test('an export in pcapng of workers that are killed has the bytes of an undisturbed one', async () => {
  await using world = await pcapngWorld()
  const kinds = [`&PartBytes=${PART_BYTES}`, '', `&PartBytes=${PART_BYTES}&Compression=fast`]
  const queries = kinds.slice(0, IS_LONG ? kinds.length : 1).map((kind) => WHOLE_RANGE + kind + PCAPNG)
  const expected: (readonly Buffer[])[] = []
  {
    await using _worker = await startTempWorker(world.gateway)
    for (const query of queries) expected.push(plainFiles(query, await world.exported(query)))
  }
  for (const [index, query] of queries.entries()) {
    await using _worker = await dyingWorker(world)
    const shown = await world.ended(await world.ordered(query))
    assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
    const files = plainFiles(query, await world.files(shown))
    assert.deepEqual(
      files.map((file, at) => expected[index]?.[at]?.equals(file)),
      expected[index]?.map(() => true),
    )
  }
})
