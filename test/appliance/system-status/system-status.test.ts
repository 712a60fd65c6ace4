// The system payloads: every member of the reference with its type, the readers, the cost.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { slowReader } from '../../support/clients/slow-consumer.ts'
import {
  CAT_SUFFIXES,
  GROUP_MEMBERS,
  IO_STATS_MEMBERS,
  type Members,
  PORT_COUNTERS,
  STATUS_MEMBERS,
  VERSION_MEMBERS,
  wrongMembers,
} from '../../support/devices/status-members.ts'
import { eventually } from '../../support/eventually.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { HAS_REFERENCE, namedMembers, referenceRows } from '../../support/reference/reference-members.ts'

type Payload = Readonly<Record<string, unknown>>
type Groups = Readonly<Record<string, Payload>>
const SYSTEM = '/api/v1/system'
let appliance: TempAppliance

before(async () => {
  appliance = await startTempAppliance({ config: { model: 'CF-1', serial: 'S-17' } })
  const path = join(appliance.folder, 'big.pcap')
  await writeBigCapture(path)
  await appliance.importFiles('big', path)
})
after(() => appliance[Symbol.asyncDispose]())

const get = async (path: string): Promise<Payload> => (await appliance.get(path)).json()
const status = async (): Promise<Groups> => (await get(`${SYSTEM}/status`)) as Groups
const unavailableIn = (group: Payload | undefined): readonly string[] => group?.unavailable as string[]
const cat = async (): Promise<Payload> => (await status()).cat ?? {}

describe('every member with its type', () => {
  test('version and io_stats', async () => {
    assert.deepEqual(wrongMembers(await get(`${SYSTEM}/version`), VERSION_MEMBERS), [])
    const io = await get(`${SYSTEM}/io_stats`)
    assert.deepEqual(wrongMembers(io, IO_STATS_MEMBERS), [])
    assert.match(String(io.timestamp), /^\d{19}$/)
    assert.match(String(io.ioqueue_active), /^\d+$/)
  })

  test('port_stats has eight ports of integers', async () => {
    const ports = (await get(`${SYSTEM}/port_stats`)) as Groups
    for (let port = 0; port < 8; port++) {
      const counters = ports[`cap${port}`] ?? {}
      assert.deepEqual(wrongMembers(counters, PORT_COUNTERS), [])
      assert.deepEqual(Object.keys(counters).sort(), Object.keys(PORT_COUNTERS).sort())
    }
    assert.equal(typeof ports.port_config, 'string')
    assert.ok((ports.unavailable as unknown as string[]).includes('cap0.Pkt_64'))
  })

  test('status', async () => {
    const { timestamp, ver, ...groups } = (await status()) as Payload & Groups
    assert.ok(Number.isInteger(timestamp) && Math.abs(Number(timestamp) - Date.now() / 1000) < 5)
    assert.equal(typeof ver, 'string')
    assert.deepEqual(Object.keys(groups), Object.keys(STATUS_MEMBERS))
    for (const [name, members] of Object.entries(STATUS_MEMBERS)) {
      const group = groups[name] ?? {}
      assert.deepEqual(wrongMembers(group, { ...GROUP_MEMBERS, ...members }), [], name)
      assert.deepEqual([group.module, group.subsystem, group.ver], ['system', name, ver])
    }
  })

  test('what the machine cannot report is 0, false or empty and listed', async () => {
    for (const [name, group] of Object.entries(await status())) {
      if (!(name in STATUS_MEMBERS)) continue
      for (const member of group.unavailable as string[]) {
        assert.ok([0, false, ''].includes(group[member] as never), `${name}.${member}`)
      }
    }
    const { cat: readers, link, ptp } = await status()
    assert.ok(unavailableIn(readers).includes('cat_0_ChunkID'))
    assert.ok(unavailableIn(link).includes('cap0_link'))
    assert.ok(unavailableIn(ptp).includes('PPSCnt'))
  })
})

function defineReferenceTests(): void {
  const sorted = (members: Members): [string, string][] =>
    Object.entries(members).sort(([a], [b]) => (a < b ? -1 : 1))

  test('version, io_stats, port_stats', () => {
    const names = (heading: string): string[] => referenceRows(heading).map(([name = '']) => name)
    assert.deepEqual(names('2.2').slice(1), Object.keys(VERSION_MEMBERS))
    assert.deepEqual(names('2.3').slice(1), Object.keys(IO_STATS_MEMBERS))
    assert.deepEqual(names('2.4').slice(1), Object.keys(PORT_COUNTERS))
  })

  test('the groups of the status', () => {
    const rows = new Map(referenceRows('2.5').map(([name = '', cell = '']) => [name, cell]))
    for (const [group, members] of Object.entries(STATUS_MEMBERS)) {
      if (group === 'cat') continue
      assert.deepEqual(
        sorted(Object.fromEntries(namedMembers(rows.get(group) ?? ''))),
        sorted(members),
        group,
      )
    }
  })

  test('the members of the readers', () => {
    const rows = referenceRows('2.5')
    const suffixes = rows.flatMap(([names = '', type = '']) =>
      /^(boolean|string|integer|number)\b/.test(type) && !names.startsWith('cat_')
        ? names.split(', ').map((name) => [name, type.replace(/\W.*/, '')] as const)
        : [],
    )
    assert.deepEqual(sorted(Object.fromEntries(suffixes) as Members), sorted(CAT_SUFFIXES))
    const aggregates = rows.flatMap(([names = '']) => (names.startsWith('cat_') ? names.split(', ') : []))
    const own = Object.keys(STATUS_MEMBERS.cat ?? {}).filter((name) => !/^cat_\d_/.test(name))
    assert.deepEqual(aggregates.sort(), own.sort())
  })
}

if (HAS_REFERENCE) describe('the table of these tests is that of the reference', defineReferenceTests)

test('readings come from this machine', async () => {
  const { other, disk, capture } = await status()
  const uptimeHours = Number((await readFile('/proc/uptime', 'utf8')).split(' ')[0]) / 3600
  assert.ok(Math.abs(Number(other?.UptimeHour) - uptimeHours) < 0.01)
  assert.ok(Number(other?.MemFree) > 1e6 && Number(other?.FDCnt) > 1)
  assert.equal(other?.SerialNo, 'S-17')
  assert.ok(Number(disk?.FreeGB_Store0) > 0 && Number(disk?.FreeGB_System) > 0)
  await eventually(async () => Number((await status()).capture?.StoredPkt) === 65_536, {
    message: 'the imported packets are in the status',
  })
  assert.deepEqual([capture?.CaptureEnb, capture?.CaptureName], [false, ''])
})

test('time_current and the clocks of the status keep their nanoseconds', async () => {
  const before = BigInt(Date.now()) * 1_000_000n
  const { body } = await appliance.get(`${SYSTEM}/time_current`, { user: undefined })
  assert.match(body.toString(), /^\d{19}\n$/)
  assert.ok(BigInt(body.toString().trim()) - before < 5_000_000_000n)
  const text = (await appliance.get(`${SYSTEM}/status`)).body.toString()
  const [, digits, exact] = /"TimeFPGA":(\d{19}),"TimeFPGAExact":"(\d{19})"/.exec(text) ?? []
  assert.ok(digits !== undefined && digits === exact)
})

/** Callers without credentials get the same members, but those with users' data are empty. */
async function assertPrivateIsEmpty(): Promise<void> {
  const anonymous = (await appliance.get(`${SYSTEM}/status`, { user: undefined })).json() as Groups
  assert.ok(!JSON.stringify(anonymous).includes('big'))
  assert.ok(!JSON.stringify(anonymous).includes('greater'))
  for (const [name, group] of Object.entries(await status())) {
    // An empty number needs no exact form beside it.
    const names = (members: object = {}) =>
      Object.keys(members).filter((member) => !/^cat_.*Exact$/.test(member))
    assert.deepEqual(names(anonymous[name]), names(group))
    assert.deepEqual(wrongMembers(anonymous[name] ?? {}, STATUS_MEMBERS[name] ?? {}), [])
  }
  assert.deepEqual(
    [anonymous.cat?.cat_EnableCnt, anonymous.cat?.cat_0_Mode, anonymous.cat?.cat_0_CmdLine],
    [1, 'single', ''],
  )
}

/** Users who may not see other users' downloads get the names of captures but not the queries, in every form. */
async function assertQueriesAreEmpty(): Promise<void> {
  const user = appliance.credentials('user')
  const shown = (await appliance.get(`${SYSTEM}/status`, { user })).json() as Groups
  assert.deepEqual(
    [
      shown.cat?.cat_EnableCnt,
      shown.cat?.cat_0_CmdLine,
      shown.cat?.cat_0_FilterBPF,
      shown.cat?.cat_0_ReadTotalPkt,
    ],
    [1, '', '', 0],
  )
  const telemetry = await appliance.get(`${SYSTEM}/telemetry?Count=1`, { user })
  assert.ok(!telemetry.body.includes('greater'))
}

test('the readers are shown with what they do, and counted exactly', async () => {
  assert.equal((await cat()).cat_EnableCnt, 0)
  const path = '/api/v1/pcap/single?StreamName=big&FilterBPF=greater%2010&Slice=500'
  using answer = await appliance.open(path)
  const reading = slowReader(answer.response, { bytesPerSecond: 8e6 })
  await eventually(async () => Number((await cat()).cat_0_WriteByte) > 1e6, { message: 'the rate is shown' })
  const shown = await cat()
  assert.deepEqual(
    [shown.cat_EnableCnt, shown.cat_0_Enable, shown.cat_0_Mode, shown.cat_0_StreamName, shown.cat_0_PktSlice],
    [1, true, 'single', 'big', 500],
  )
  assert.deepEqual([shown.cat_0_CmdLine, shown.cat_0_FilterBPF], [`GET ${path}`, 'greater 10'])
  assert.ok(!JSON.stringify(shown).includes(appliance.credentials('full').split(':')[1] ?? 'x'))
  assert.ok(Number(shown.cat_0_ReadTotalPkt) > 0 && Number(shown.cat_0_ReadTotalByte) > 0)
  assert.ok(Number(shown.cat_0_WriteTotalByte) >= Number(shown.cat_0_WriteByte))
  assert.equal(shown.cat_WriteTotalByte, shown.cat_0_WriteTotalByte)
  assert.ok(Number(shown.cat_0_WriteGbps) > 0)
  assert.deepEqual([shown.cat_1_Enable, shown.cat_1_Mode], [false, ''])
  await assertPrivateIsEmpty()
  await assertQueriesAreEmpty()
  await reading
  await eventually(async () => (await cat()).cat_EnableCnt === 0, { message: 'it is gone' })
  assert.equal((await cat()).cat_0_WriteTotalByte, 0)
})

describe('PktDiscardTotal', () => {
  const gone = () => eventually(async () => (await cat()).cat_EnableCnt === 0, { message: 'it is gone' })

  test('is nothing where all that is read ahead will be sent', async () => {
    {
      using _unread = await appliance.open('/api/v1/pcap/single?StreamName=big&FilterBPF=greater%2010')
      await eventually(
        async () => {
          const { cat_0_ReadTotalPkt, cat_0_WriteTotalPkt } = await cat()
          return Number(cat_0_ReadTotalPkt) > Number(cat_0_WriteTotalPkt)
        },
        { message: 'it reads ahead' },
      )
      const { cat_0_PktDiscard, cat_0_PktDiscardTotal } = await cat()
      assert.deepEqual([cat_0_PktDiscard, cat_0_PktDiscardTotal], [0, 0])
    }
    await gone()
  })

  test('is what was left out before the packets that were handed out, and never falls', async () => {
    const even = encodeURIComponent('packet \\d*[02468]\\D')
    using answer = await appliance.open(`/api/v1/pcap/single?StreamName=big&FilterRE=${even}`)
    assert.equal(answer.response.statusCode, 200)
    const reading = slowReader(answer.response, { bytesPerSecond: 16e6 })
    let before = 0
    for (;;) {
      const { cat_EnableCnt, cat_0_PktDiscardTotal, cat_0_WriteTotalPkt } = await cat()
      if (cat_EnableCnt === 0) break
      const discarded = Number(cat_0_PktDiscardTotal)
      assert.ok(discarded >= before, `${discarded} after ${before}`)
      // Every second packet; at most one packet is between two of them, and at most one at the end of each piece of the
      // scan.
      assert.ok(discarded <= Number(cat_0_WriteTotalPkt) + 100, `${discarded} of ${cat_0_WriteTotalPkt}`)
      before = discarded
    }
    assert.ok(before > 0)
    await reading
    await gone()
  })
})

test('cat_EnableCnt follows four downloads, and the status stays quick meanwhile', async () => {
  const answers = []
  for (let count = 1; count <= 4; count++) {
    answers.push(await appliance.open(`/api/v1/pcap/single?StreamName=big&rand=${count}`))
    await eventually(async () => (await cat()).cat_EnableCnt === count, { message: `${count} readers` })
  }
  const shown = await cat()
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((slot) => shown[`cat_${slot}_Enable`]),
    [true, true, true, true, false],
  )
  const reading = answers.map(({ response }) => buffer(response))
  // Compared with the smallest call, in turn: other load on the machine slows both.
  const statusMs: number[] = []
  const versionMs: number[] = []
  for (let call = 0; call < 30; call++) {
    versionMs.push(await timeOf(() => appliance.get('/api/v1/system/version')))
    statusMs.push(await timeOf(status))
  }
  await Promise.all(reading)
  const costMs = median(statusMs) - median(versionMs)
  assert.ok(costMs < STATUS_LIMIT_MS + 3 * median(versionMs), `the status cost ${costMs.toFixed(1)} ms`)
  await eventually(async () => (await cat()).cat_EnableCnt === 0, { message: 'all are gone' })
})

test('a slot that falls free in the middle is given to the next download', async () => {
  const open = (): Promise<Disposable> => appliance.open('/api/v1/pcap/single?StreamName=big')
  const count = (wanted: number): Promise<void> =>
    eventually(async () => (await cat()).cat_EnableCnt === wanted, { message: `${wanted}` })
  const [first, second] = [await open(), await open()]
  await count(2)
  first[Symbol.dispose]()
  await count(1)
  const enabled = async (): Promise<unknown[]> => [(await cat()).cat_0_Enable, (await cat()).cat_1_Enable]
  assert.deepEqual(await enabled(), [false, true])
  const third = await open()
  await count(2)
  assert.deepEqual(await enabled(), [true, true])
  second[Symbol.dispose]()
  third[Symbol.dispose]()
  await count(0)
})

test('without a recorder the status is returned, and says what it cannot report', async () => {
  await using other = await startTempAppliance()
  await other.stopRecorder()
  await eventually(
    async () => {
      const groups = (await other.get(`${SYSTEM}/status`)).json() as Groups
      return unavailableIn(groups.capture).includes('CaptureEnb')
    },
    { message: 'the capture counts as unknown' },
  )
  const answer = await other.get('/sysmaster/capture_status')
  assert.deepEqual([answer.status, answer.json().code], [503, 'store-unavailable'])
})

/** The documented time is for an idle machine. */
const STATUS_LIMIT_MS = 20

async function timeOf(call: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await call()
  return performance.now() - startMs
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.POSITIVE_INFINITY
}
