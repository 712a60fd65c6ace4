// Exports from the order to the files, with a real gateway, workers, Redis and appliances.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { EXPORT_MANIFEST } from '../../../src/shared/contract/export-answers.ts'
import { EventStream } from '../../support/clients/event-stream.ts'
import { EXPORT_BEGIN_NS, EXPORT_END_NS } from '../../support/exports/export-captures.ts'
import { ExportWorld, WHOLE_RANGE } from '../../support/exports/export-world.ts'
import { httpGet, httpOpen } from '../../support/http-get.ts'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { startTempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { startTempWorker, type TempWorker } from '../../support/processes/temp-worker.ts'

const CAPTURE_BYTES = 900_000
/** Of each device there are several. */
const SPAN_BYTES = 320_000
const PART_BYTES = 1_060_000
const HEADER_BYTES = 24
const SECOND_NS = 1_000_000_000n
/** Exports of one caller. */
const FOLLOWERS_MAX = 128

/** The exported query, and the direct download to compare with. */
const EQUAL_TO_DOWNLOAD: readonly (readonly [name: string, query: string, path?: string])[] = [
  ['the time range of three devices', WHOLE_RANGE],
  [
    'what a filter leaves of two devices, cut by Slice',
    `${WHOLE_RANGE}&Device=west,east&FilterBPF=greater+700&Slice=64`,
  ],
  ['one device by its time range', `${WHOLE_RANGE}&Device=north`],
  ['a capture', 'StreamName=north', '/api/v1/pcap/single?StreamName=north'],
  [
    'the range of a capture',
    `StreamName=west&Start=${EXPORT_BEGIN_NS + 7n * SECOND_NS}&Stop=${EXPORT_BEGIN_NS + 50n * SECOND_NS}`,
    `/api/v1/pcap/splittime?StreamName=west&Start=${EXPORT_BEGIN_NS + 7n * SECOND_NS}&Stop=${EXPORT_BEGIN_NS + 50n * SECOND_NS}`,
  ],
  ['what a filter leaves of nothing', `${WHOLE_RANGE}&FilterBPF=greater+4000`],
  ['no duplicates, times in microseconds', `${WHOLE_RANGE}&Dedup=2000&TSResolution=usec`],
  [
    'no duplicates of one device, times in microseconds',
    `${WHOLE_RANGE}&Dedup=90000000&DedupBy=ip&TSResolution=usec&Device=east`,
  ],
  ['no more than TSMax', `${WHOLE_RANGE}&TSMax=20000000000`],
  ['no more than TSMax of one device, cut by Slice', `${WHOLE_RANGE}&TSMax=20000000000&Device=east&Slice=64`],
  ['no more than MaxPackets', `${WHOLE_RANGE}&MaxPackets=2221`],
  ['no more than MaxBytes', `${WHOLE_RANGE}&MaxBytes=540000`],
  ['no more than MaxBytes of one device', `${WHOLE_RANGE}&MaxBytes=540000&Device=west`],
]

describe('the files of an export', () => {
  let world: ExportWorld
  let worker: TempWorker
  before(async () => {
    world = await ExportWorld.create({ captureBytes: CAPTURE_BYTES, spanBytes: SPAN_BYTES })
    worker = await startTempWorker(world.gateway)
  })
  after(async () => {
    await worker[Symbol.asyncDispose]()
    await world[Symbol.asyncDispose]()
  })

  for (const [name, query, path = `/api/v1/pcap/timerange?${query}`] of EQUAL_TO_DOWNLOAD) {
    test(`equal a direct download: ${name}`, async () => {
      const [file, ...more] = await world.exported(query)
      assert.equal(more.length, 0)
      const direct = await world.direct(path)
      assert.equal(sha256(file), sha256(direct), `${file?.length} bytes instead of ${direct.length}`)
    })
  }

  test('have one header and nothing else if there are no packets', async () => {
    const query = `TSBegin=${EXPORT_END_NS}&TSEnd=${EXPORT_END_NS + SECOND_NS}`
    const [file] = await world.exported(query)
    assert.equal(file?.length, HEADER_BYTES)
    assert.equal(sha256(file), sha256(await world.directRange(query)))
  })

  for (const [compression, program] of [
    ['fast', 'gzip'],
    ['zstd', 'zstd'],
  ] as const) {
    test(`decompress to a direct download, by ${program} and tshark: Compression=${compression}`, async () => {
      const id = await world.ordered(`${WHOLE_RANGE}&Compression=${compression}`)
      const shown = await world.ended(id)
      const path = join(world.target, id, shown.files[0]?.name ?? '')
      execFileSync(program, ['--test', path])
      const plain = execFileSync(program, ['--decompress', '--stdout', path], { maxBuffer: 1 << 30 })
      assert.equal(sha256(plain), sha256(await world.directRange(WHOLE_RANGE)))
      // The zstd decoder of some Wireshark versions fails on files of several frames, also of direct downloads.
      const read = program === 'gzip' ? path : join(world.folder, 'plain.pcap')
      if (read !== path) await writeFile(read, plain)
      const told = execFileSync('capinfos', ['-c', '-M', read], { encoding: 'utf8' })
      assert.match(told, new RegExp(`Number of packets:\\s+${shown.files[0]?.packets}\\b`))
    })
  }

  test('are reported unchanged, in the export and in its manifest', async () => {
    const id = await world.ordered(`${WHOLE_RANGE}&PartTime=20s&Reason=case+7`)
    const shown = await world.ended(id)
    const manifest = EXPORT_MANIFEST.parse(
      JSON.parse(await readFile(join(world.target, id, 'manifest.json'), 'utf8')),
    )
    const files = await world.files(shown)
    assert.equal(files.length, 3)
    assert.deepEqual(manifest.files, shown.files)
    assert.deepEqual(
      shown.files.map(({ bytes, packets, sha256: digest }) => [bytes, packets, digest]),
      files.map((file) => [String(file.length), String(readPcap(file).records.length), sha256(file)]),
    )
    assert.equal(manifest.reason, 'case 7')
    assert.equal(
      manifest.packets,
      String(files.reduce((sum, file) => sum + readPcap(file).records.length, 0)),
    )
    const direct = readPcap(await world.directRange(WHOLE_RANGE)).records
    assert.equal(manifest.firstNs, String(direct[0]?.ns))
    assert.equal(manifest.lastNs, String(direct.at(-1)?.ns))
    for (const { device, packets, missing } of manifest.devices) {
      const own = readPcap(await world.directRange(`${WHOLE_RANGE}&Device=${device}`)).records
      assert.deepEqual([packets, missing], [String(own.length), []], device)
    }
  })

  test('PartTime: each part equals the direct download of its time', async () => {
    const files = await world.exported(`${WHOLE_RANGE}&PartTime=25s`)
    const partNs = 25n * SECOND_NS
    assert.equal(files.length, 3)
    for (const [index, file] of files.entries()) {
      const beginNs = EXPORT_BEGIN_NS + BigInt(index) * partNs
      const endNs = beginNs + partNs < EXPORT_END_NS ? beginNs + partNs : EXPORT_END_NS
      const direct = await world.directRange(`TSBegin=${beginNs}&TSEnd=${endNs}`)
      assert.equal(sha256(file), sha256(direct), `part ${index}`)
    }
  })

  test('PartTime: a time without packets has a file without packets', async () => {
    const files = await world.exported(
      `TSBegin=${EXPORT_END_NS - 10n * SECOND_NS}&TSEnd=${EXPORT_END_NS + 20n * SECOND_NS}&PartTime=10s`,
    )
    assert.equal(files.length, 3)
    assert.deepEqual(
      files.slice(1).map((file) => file.length),
      [HEADER_BYTES, HEADER_BYTES],
    )
  })

  test('PartBytes: parts are as large as they may be, and together the direct download', async () => {
    const files = await world.exported(`${WHOLE_RANGE}&PartBytes=${PART_BYTES}`)
    const direct = await world.directRange(WHOLE_RANGE)
    const header = direct.subarray(0, HEADER_BYTES)
    assert.ok(files.every((file) => file.subarray(0, HEADER_BYTES).equals(header)))
    const bodies = files.map((file) => file.subarray(HEADER_BYTES))
    assert.equal(sha256(Buffer.concat([header, ...bodies])), sha256(direct))
    for (const [index, file] of files.entries()) {
      assert.ok(file.length <= PART_BYTES, `part ${index} has ${file.length} bytes`)
      const next = bodies[index + 1]
      if (next === undefined) continue
      const nextRecordBytes = 16 + next.readUInt32LE(8)
      assert.ok(file.length + nextRecordBytes > PART_BYTES, `part ${index} had room for one more`)
    }
  })

  test('PartBytes with Compression: each part decompresses to no more', async () => {
    const id = await world.ordered(`${WHOLE_RANGE}&PartBytes=${PART_BYTES}&Compression=zstd`)
    const shown = await world.ended(id)
    const plain = shown.files.map(({ name }) =>
      execFileSync('zstd', ['--decompress', '--stdout', join(world.target, id, name)], {
        maxBuffer: 1 << 30,
      }),
    )
    assert.ok(plain.length > 1 && plain.every((file) => file.length <= PART_BYTES))
    const records = plain.flatMap((file) => recordLines(readPcap(file).records))
    assert.deepEqual(records, recordLines(readPcap(await world.directRange(WHOLE_RANGE)).records))
  })

  test('Align: each packet is moved by the offset in the manifest', async () => {
    const id = await world.ordered(`${WHOLE_RANGE}&Align=1`)
    const shown = await world.ended(id)
    const [file = Buffer.alloc(0)] = await world.files(shown)
    const { devices } = EXPORT_MANIFEST.parse(
      JSON.parse(await readFile(join(world.target, id, 'manifest.json'), 'utf8')),
    )
    const expected: string[] = []
    for (const { device, clockOffsetNs } of devices) {
      const { records } = readPcap(await world.directRange(`${WHOLE_RANGE}&Device=${device}`))
      const offsetNs = BigInt(clockOffsetNs ?? 0)
      expected.push(...recordLines(records.map((record) => ({ ...record, ns: record.ns - offsetNs }))))
    }
    assert.deepEqual(recordLines(readPcap(file).records).sort(), expected.sort())
  })

  test('leave nothing in the spool, in the work folder and in the queues', async () => {
    await world.isTidy()
  })

  test('come of a download with Queue=job too', async () => {
    for (const [path, plain] of [
      [`/api/v1/pcap/timerange?${WHOLE_RANGE}`, `/api/v1/pcap/timerange?${WHOLE_RANGE}`],
      [
        '/devices/west/api/v1/pcap/single?StreamName=west',
        '/devices/west/api/v1/pcap/single?StreamName=west',
      ],
      [
        `/devices/east/api/v1/pcap/timerange?${WHOLE_RANGE}`,
        `/devices/east/api/v1/pcap/timerange?${WHOLE_RANGE}`,
      ],
    ] as const) {
      const answer = await world.call(`${path}&Queue=job`)
      assert.equal(answer.status, 202, answer.body.toString())
      const id = String(answer.json().id)
      assert.equal(answer.headers.location, `/v1/exports/${id}`)
      const shown = await world.ended(id)
      assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
      const [file] = await world.files(shown)
      assert.equal(sha256(file), sha256(await world.direct(plain)), path)
    }
  })

  test('are gone when the export is deleted, and cannot be found any more', async () => {
    const id = await world.ordered(WHOLE_RANGE)
    await world.ended(id)
    assert.equal((await world.call(`/v1/exports/${id}`, { method: 'DELETE' })).status, 200)
    assert.equal((await world.call(`/v1/exports/${id}`)).status, 404)
    await world.redis.until(async () => (await world.redisKeys(`*${id}*`)).length === 0)
    await world.isTidy()
    await assert.rejects(readFile(join(world.target, id, 'manifest.json')), { code: 'ENOENT' })
  })
})

/** Of the world that has no worker. */
const PER_USER_MAX = 30
let idle: ExportWorld
before(async () => {
  idle = await ExportWorld.create({ captureBytes: 100_000, exports: { perUserMax: PER_USER_MAX } })
})
after(() => idle[Symbol.asyncDispose]())

async function cancel(id: string, as: 'user' | 'full' = 'user'): Promise<void> {
  const answer = await idle.call(`/v1/exports/${id}`, { method: 'DELETE', as })
  assert.equal(answer.status, 200)
}

describe('an order', () => {
  test('with a filter that does not compile is refused', async () => {
    const answer = await idle.order(`${WHOLE_RANGE}&FilterBPF=tcp+nonsense`)
    assert.deepEqual([answer.status, answer.json().code], [400, 'bad-bpf'])
  })

  for (const [name, query] of [
    ['TSEnd before TSBegin', `TSBegin=${EXPORT_END_NS}&TSEnd=${EXPORT_BEGIN_NS}`],
    ['an unknown target', `${WHOLE_RANGE}&Target=elsewhere`],
    ['PartTime beside PartBytes', `${WHOLE_RANGE}&PartTime=1h&PartBytes=5000000`],
    ['PartTime of a whole capture', 'StreamName=east&PartTime=1h'],
    ['PartTime beside MaxPackets', `${WHOLE_RANGE}&PartTime=1h&MaxPackets=5`],
    ['a PartBytes that is too small', `${WHOLE_RANGE}&PartBytes=1000`],
    ['Follow', `${WHOLE_RANGE}&Follow=1`],
  ] as const) {
    test(`of what cannot be is refused: ${name}`, async () => {
      const answer = await idle.order(query)
      assert.deepEqual([answer.status, answer.json().code], [400, 'bad-parameter'], answer.body.toString())
    })
  }

  test('of an unknown capture or device is refused', async () => {
    assert.equal((await idle.order('StreamName=nobody')).json().code, 'unknown-capture')
    assert.equal((await idle.order(`${WHOLE_RANGE}&Device=nobody`)).json().code, 'unknown-device')
  })

  test('is for the role user, and an export is visible to its creator and to the role full', async () => {
    assert.equal((await idle.order(WHOLE_RANGE, { as: 'viewer' })).status, 403)
    const id = await idle.ordered(WHOLE_RANGE, { as: 'full' })
    assert.equal((await idle.call(`/v1/exports/${id}`)).status, 404)
    assert.equal((await idle.call(`/v1/exports/${id}/events`)).status, 404)
    assert.equal((await idle.call(`/v1/exports/${id}`, { method: 'DELETE' })).status, 404)
    assert.equal((await idle.call(`/v1/exports/${id}`, { method: 'DELETE', as: 'viewer' })).status, 403)
    const listed = (await idle.call('/v1/exports')).json().exports as { id: string }[]
    assert.ok(!listed.some((one) => one.id === id))
    const own = await idle.ordered(WHOLE_RANGE)
    const all = (await idle.call('/v1/exports', { as: 'full' })).json().exports as { id: string }[]
    assert.deepEqual(all.map((one) => one.id).slice(0, 2), [own, id])
    await cancel(id, 'full')
    await cancel(own)
  })

  test('that is repeated with its Idempotency-Key is the same order, and no other one', async () => {
    const headers = { 'Idempotency-Key': 'night-1' }
    const [first, ...others] = await Promise.all(
      Array.from({ length: 5 }, () => idle.ordered(WHOLE_RANGE, { headers })),
    )
    assert.deepEqual(new Set(others), new Set([first]))
    const other = await idle.order(`${WHOLE_RANGE}&Slice=64`, { headers })
    assert.deepEqual(
      [other.status, other.json().code, other.json().exportId],
      [409, 'idempotency-conflict', first],
    )
    const byAnother = await idle.ordered(WHOLE_RANGE, { headers, as: 'full' })
    assert.notEqual(byAnother, first)
    await cancel(String(first))
    await cancel(byAnother, 'full')
  })

  test('beyond the quota of its user is refused, until one has ended', async () => {
    const ids = await Promise.all(Array.from({ length: PER_USER_MAX }, () => idle.ordered(WHOLE_RANGE)))
    const refused = await idle.order(WHOLE_RANGE)
    assert.deepEqual([refused.status, refused.json().code], [429, 'user-quota'])
    assert.ok(Number(refused.headers['retry-after']) > 0)
    await cancel(String(ids[0]))
    ids.push(await idle.ordered(WHOLE_RANGE))
    const other = await idle.ordered(WHOLE_RANGE, { as: 'full' })
    for (const id of ids.slice(1)) await cancel(id)
    await cancel(other, 'full')
  })
})

describe('a gateway that makes no exports', () => {
  test('refuses orders, schedules and Queue=job at once, and says why', async () => {
    await using redis = await TempRedis.create()
    const device = { url: 'http://127.0.0.1:9', user: 'full', password: { env: 'EXPORT_WORLD_PASSWORD' } }
    await using gateway = await startTempGateway([], redis.url, {
      devices: [{ name: 'east', ...device }],
      exports: { enabled: false },
    })
    const call = (path: string, method = 'GET') =>
      httpGet(gateway.url + path, { method, headers: gateway.as.user })
    const answers = [
      await call(`/v1/exports?${WHOLE_RANGE}`, 'POST'),
      await call('/v1/schedules?Cron=0+*+*+*+*&TSBegin=-1h&TSEnd=now', 'POST'),
      await call(`/api/v1/pcap/timerange?${WHOLE_RANGE}&Queue=job`),
    ]
    for (const answer of answers)
      assert.deepEqual([answer.status, answer.json().code], [501, 'exports-off'], answer.body.toString())
    assert.equal((await call('/v1/exports')).status, 200)
  })
})

describe('lists of exports', () => {
  test('come in pages, newest first, each export once', async () => {
    const ids: string[] = []
    // Several are ordered within one millisecond.
    for (let round = 0; round < 4; round += 1)
      ids.push(...(await Promise.all(Array.from({ length: 6 }, () => idle.ordered(WHOLE_RANGE)))))
    const others = ids.toSpliced(3, 3)
    for (const [query, expected] of [
      ['Limit=5', ids],
      ['State=cancelled&Limit=2', ids.slice(3, 6)],
      ['State=queued&Limit=4', others],
    ] as const) {
      if (query === 'State=cancelled&Limit=2') for (const id of expected) await cancel(id)
      const listed = await listedIds(query)
      assert.equal(new Set(listed).size, listed.length, 'each once')
      // Those of other tests are listed too.
      assert.deepEqual(new Set(listed.filter((id) => ids.includes(id))), new Set(expected), query)
    }
    for (const id of others) await cancel(id)
  })

  /** Those of all pages. */
  async function listedIds(query: string): Promise<readonly string[]> {
    const listed: string[] = []
    let after = ''
    do {
      const answer = (await idle.call(`/v1/exports?${query}${after}`)).json()
      listed.push(...(answer.exports as { id: string }[]).map(({ id }) => id))
      after = answer.next === null ? '' : `&After=${answer.next}`
    } while (after !== '')
    return listed
  }
})

describe('events of an export', () => {
  test('report progress until the end, and continue after Last-Event-ID', async () => {
    await using world = await ExportWorld.create({ captureBytes: 500_000, spanBytes: SPAN_BYTES })
    const id = await world.ordered(WHOLE_RANGE)
    const follow = async (headers = {}) =>
      new EventStream(
        await httpOpen(`${world.gateway.url}/v1/exports/${id}/events`, {
          headers: { ...world.gateway.as.user, ...headers },
        }),
      )
    using events = await follow()
    const first = await events.next()
    assert.deepEqual([first?.event, first?.data.state], ['export', 'queued'])
    await using _worker = await startTempWorker(world.gateway)
    let last = first
    for (let event = first; event !== undefined; event = await events.next()) {
      assert.ok(Number(event.id) >= Number(last?.id))
      last = event
    }
    assert.equal(last?.data.state, 'complete')
    assert.deepEqual(last?.data.files, (await world.shown(id)).files)
    using again = await follow({ 'Last-Event-ID': first?.id ?? '' })
    assert.equal((await again.next())?.data.state, 'complete')
    assert.equal(await again.next(), undefined)
    using known = await follow({ 'Last-Event-ID': last?.id ?? '' })
    assert.equal(await known.next(), undefined)
  })

  test('are limited per caller, and read once for all followers that wait together', async () => {
    const id = await idle.ordered(WHOLE_RANGE)
    const headers = idle.gateway.as.user
    const open = () => httpOpen(`${idle.gateway.url}/v1/exports/${id}/events`, { headers })
    using followers = new DisposableStack()
    const all = await Promise.all(
      Array.from({ length: FOLLOWERS_MAX }, async () => followers.use(new EventStream(await open()))),
    )
    for (const one of all) assert.equal((await one.next())?.data.state, 'queued')
    const refused = await idle.call(`/v1/exports/${id}/events`)
    assert.deepEqual([refused.status, refused.json().code], [503, 'event-streams-exhausted'])
    const redis = new Redis(idle.redis.url)
    const readsOf = async () => {
      const [, calls = '0'] = /cmdstat_hgetall:calls=(\d+)/.exec(await redis.info('commandstats')) ?? []
      return Number(calls)
    }
    try {
      const before = await readsOf()
      await cancel(id)
      for (const one of all) assert.equal((await one.next())?.data.state, 'cancelled')
      const reads = (await readsOf()) - before
      assert.ok(reads < FOLLOWERS_MAX, `${reads} reads for ${FOLLOWERS_MAX} followers`)
    } finally {
      redis.disconnect()
    }
  })

  test('end for a token that is revoked', async () => {
    const id = await idle.ordered(WHOLE_RANGE)
    const made = (await idle.call('/v1/tokens?Scopes=export:read', { method: 'POST' })).json()
    const headers = { authorization: `Bearer ${made.token}` }
    using events = new EventStream(await httpOpen(`${idle.gateway.url}/v1/exports/${id}/events`, { headers }))
    assert.equal((await events.next())?.data.state, 'queued')
    assert.equal((await idle.call(`/v1/tokens/${made.id}`, { method: 'DELETE' })).status, 200)
    assert.equal(await events.next(), undefined)
    await cancel(id)
  })
})

function sha256(bytes: Buffer | undefined): string {
  return createHash('sha256')
    .update(bytes ?? '')
    .digest('hex')
}
