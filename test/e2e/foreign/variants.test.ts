/**
 * Third-party appliances, one kind per row, and what a caller gets from each, one question per column. Whatever a
 * device does, its packets arrive exactly as it has them, or the answer says what is wrong and names the device.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  API_BEGIN_NS,
  API_CAPTURE,
  API_STEP_NS,
  type ApiBehaviour,
  ApiDevice,
} from '../../support/devices/api-device.ts'
import { eventually } from '../../support/eventually.ts'
import { ExportWorld } from '../../support/exports/export-world.ts'
import { ForeignCaller, type Judged } from '../../support/exports/foreign-caller.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import type { PcapRecord } from '../../support/packets/pcap-records.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'

const PACKETS = 100
const RANGE = `TSBegin=${API_BEGIN_NS}&TSEnd=${API_BEGIN_NS + BigInt(PACKETS) * API_STEP_NS}&TSUnit=nanos`
const COLUMNS = ['relay', 'filter', 'merge', 'export', 'resume', 'list', 'estimate', 'health'] as const
type Column = (typeof COLUMNS)[number]
type Cells = Readonly<Record<Column, string>>

interface Row {
  readonly does: ApiBehaviour
  /** Its captures, the first of which is downloaded instead of a range. */
  readonly captures?: readonly string[]
  readonly packets?: number
  /** How many of its streams break off, counted again for each question. */
  readonly breaks?: number
  /** Another client of the gateway has the device's only stream until the gateway waits for one. */
  readonly isBusy?: boolean
  /** Columns whose outcome differs from that of a well-behaved device. */
  readonly cells?: Partial<Cells>
  /** What each text about a failure must say, in addition to the device's name. */
  readonly cause?: RegExp
}

/** Several outcomes are possible, depending on where the kernel splits the device's bytes. */
const OR = ' or '
const NO_ESTIMATE = / is a third-party device, which cannot estimate downloads$/

const WELL: Cells = {
  relay: 'right',
  filter: 'right',
  merge: 'right',
  export: 'right',
  resume: 'right',
  list: 'right',
  estimate: 'unknown',
  health: 'up, api',
}

/** One packet in ten comes a second late. */
const late = (records: readonly PcapRecord[]): readonly PcapRecord[] => {
  const second = Number(1_000_000_000n / API_STEP_NS)
  const place = (index: number) => (index % 10 === 3 ? index + second + 0.5 : index)
  return records
    .map((record, index) => ({ record, at: place(index) }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ record }) => record)
}

const busy = (limit: ApiBehaviour['limit'] & string): Row => ({
  does: { streamsMax: 1, limit },
  isBusy: true,
})

/** Rejected before the first byte, in every column. */
const refused = (code: string): Partial<Cells> => ({
  ...Object.fromEntries(['relay', 'filter', 'merge', 'resume'].map((column) => [column, `502 ${code}`])),
  export: `failed: ${code}`,
})

/** An answer that ends with its connection may have been cut, so the result is called unverified. */
const unverified = (what: 'right' | 'short'): Partial<Cells> => ({
  ...Object.fromEntries(
    ['relay', 'filter', 'merge', 'resume'].map((column) => [column, `unverified, ${what}`]),
  ),
  export: `partial, ${what}: device-unverified`,
})

const cut = (code: string): Partial<Cells> => ({
  relay: 'cut',
  filter: 'cut',
  merge: 'cut',
  resume: 'cut',
  export: `failed: ${code}`,
})

/** A bad record that comes together with the head is rejected; a later one cuts the running download. */
const DAMAGED: Partial<Cells> = {
  ...Object.fromEntries(['relay', 'filter', 'merge'].map((column) => [column, 'cut or 502 device-protocol'])),
  resume: 'cut or 410 aged-out or 502 device-protocol',
  export: 'failed: device-protocol',
}

const CLAIM = /sent a record that claims 2147483632 captured bytes at offset \d+/
const BY_CONNECTION = /ended its response by closing the connection/

const ROWS: Readonly<Record<string, Row>> = {
  // The slow ones come first.
  damaged: { does: { isDamaged: true }, cells: DAMAGED, cause: CLAIM },
  'damaged-chunks': {
    does: { isDamaged: true, isChunked: true },
    cells: DAMAGED,
    cause: CLAIM,
  },
  'breaks-once': { does: {}, breaks: 1, cells: { relay: 'cut' }, cause: /cannot be reached/ },
  'breaks-always': {
    does: {},
    breaks: Number.POSITIVE_INFINITY,
    cells: { ...cut('device-unreachable'), filter: '502 device-unreachable' },
    cause: /cannot be reached/,
  },
  'busy-503': busy('503'),
  'busy-retry-after': busy('503 with Retry-After'),
  'busy-429': busy('429'),
  'busy-text': busy('text'),
  'busy-nothing': busy('nothing'),
  'busy-reset': busy('reset'),
  'busy-wait': busy('wait'),
  length: { does: {} },
  chunks: { does: { isChunked: true } },
  close: { does: { endsByClose: 'whole' }, cells: unverified('right'), cause: BY_CONNECTION },
  'close-half': {
    does: { endsByClose: 'half' },
    // The one packet that would prove the filter does not come.
    cells: { ...unverified('short'), filter: '502 device-protocol' },
    cause:
      /closing|closed|connection|does not find a packet again by its time, so it cannot show that it filters$/,
  },
  'http10-length': { does: { isOldHttp: true } },
  'http10-close': {
    does: { isOldHttp: true, endsByClose: 'whole' },
    cells: unverified('right'),
    cause: BY_CONNECTION,
  },
  microseconds: { does: { isCoarse: true } },
  'big-endian': { does: { isBigEndian: true } },
  late: { does: { order: late } },
  zeros: { does: { zeros: 4_096 } },
  'zeros-chunks': {
    does: { zeros: 4_096, isChunked: true },
    // A chunk whose size has been sent cannot become shorter.
    cells: { ...cut('device-protocol'), merge: 'right', export: 'right' },
    cause: /sent zeros instead of a record at offset \d+$/,
  },
  // A stream that breaks off in its header has not begun.
  empty: {
    does: {},
    packets: 0,
    cells: { resume: 'right or 502 device-unreachable' },
    cause: /cannot be reached/,
  },
  'ignores-filters': {
    does: { ignores: ['FilterBPF', 'FilterFrame'] },
    cells: { filter: '400 bad-parameter' },
    cause: /does not support FilterBPF here/,
  },
  'refuses-empty': { does: { refusesEmpty: true } },
  legacy: {
    does: { missing: /^\/api\/v1\// },
    cells: { filter: '400 bad-parameter', health: 'up, legacy' },
    cause: /does not support FilterBPF here/,
  },
  'page-for-version': { does: { pageAt: '/api/v1/system/version' } },
  'page-for-list': {
    does: { pageAt: '/stream/list' },
    cells: { list: 'device-protocol' },
    cause: /sent malformed JSON for \/stream\/list$/,
  },
  'page-for-packets': {
    does: { pageAt: '/api/v1/pcap/timerange' },
    cells: refused('device-protocol'),
    cause: /does not begin with a PCAP header: its first bytes are 0x3c68746d$/,
  },
  stranger: {
    does: { missing: /^\// },
    cells: { ...refused('device-protocol'), list: 'device-protocol', health: 'down, device-protocol' },
    cause: /answered \/[a-z0-9_/]+ with status 404/,
  },
  names: { does: {}, captures: ['my cap/a:1 Größe+50%&x=y', '-dash', 'x'.repeat(300)] },
  'list-array': {
    does: { list: 'array' },
    cells: { list: 'device-protocol' },
    cause: /sent a list without List for \/stream\/list$/,
  },
  'list-null': { does: { list: 'null' }, cells: { list: '0 captures' } },
  'list-numbers': { does: { list: 'numbers' } },
  digest: {
    does: { wantsLogin: 'Digest realm="PX100", nonce="1"' },
    cells: { ...refused('device-rejected'), list: 'device-rejected', health: 'down, device-rejected' },
    cause: /it requires Digest, but the gateway can only log in with Basic or a token$/,
  },
  redirect: {
    does: { redirects: true },
    cells: { ...refused('device-protocol'), list: 'device-protocol', health: 'down, device-protocol' },
    cause: /redirects are not followed: configure the address that the device answers at$/,
  },
}

test('of each kind of appliance comes what it has, or what is wrong with it', {
  concurrency: 12,
}, async (t) => {
  await using parts = new AsyncDisposableStack()
  const devices = new Map<string, ApiDevice>()
  for (const [name, { packets = PACKETS, captures = [API_CAPTURE] }] of Object.entries({
    ...ROWS,
    zz: WELL_ROW,
  })) {
    const device = parts.use(await ApiDevice.start(name, packets))
    device.captures = captures
    devices.set(name, device)
  }
  for (const [name, { does }] of Object.entries(ROWS)) deviceOf(devices, name).behaviour = does
  process.env.FOREIGN_PASSWORD = deviceOf(devices, 'zz').password
  const world = parts.use(
    await ExportWorld.create({
      captureBytes: 0,
      exports: { deviceRetryS: 2 },
      settings: {
        devices: [...devices.values()].map(({ config }) => ({
          ...config,
          password: { env: 'FOREIGN_PASSWORD' },
        })),
        health: { failuresMax: 1_000_000, intervalS: 60 },
      },
    }),
  )
  parts.use(await startTempWorker(world.gateway))
  const found = new Map<string, Cells>()
  const ask = (name: string, row: Row) =>
    new Questions(world, row, [deviceOf(devices, name), deviceOf(devices, 'zz')])
  await Promise.all(
    Object.entries(ROWS).map(([name, row]) =>
      t.test(name, async () => {
        const cells = await ask(name, row).all()
        found.set(name, cells)
        const expected = { ...WELL, ...row.cells }
        for (const column of COLUMNS)
          assert.ok(
            expected[column].split(OR).includes(cells[column]),
            `${column}: ${cells[column]}, not ${expected[column]}`,
          )
      }),
    ),
  )
  for (const line of tableOf(found)) t.diagnostic(line)
})

const WELL_ROW: Row = { does: {} }

function deviceOf(devices: ReadonlyMap<string, ApiDevice>, name: string): ApiDevice {
  const device = devices.get(name)
  assert.ok(device)
  return device
}

class Questions {
  readonly #world: ExportWorld
  readonly #caller: ForeignCaller
  readonly #row: Row
  readonly #device: ApiDevice
  readonly #other: ApiDevice

  constructor(world: ExportWorld, row: Row, [device, other]: readonly [ApiDevice, ApiDevice]) {
    this.#world = world
    this.#caller = new ForeignCaller(world)
    this.#row = row
    this.#device = device
    this.#other = other
  }

  async all(): Promise<Cells> {
    const cells: Partial<Record<Column, string>> = {}
    // A merge takes longest if it fails.
    for (const column of ['merge', ...COLUMNS.filter((column) => column !== 'merge')] as const) {
      const { outcome, told } = await this.#asked(column)
      if (told !== undefined) {
        const text = `${this.#device.name}, ${column}: ${outcome}: ${told.detail}`
        assert.ok(told.detail.includes(`device ${this.#device.name}`), text)
        const { cause } = this.#row
        assert.ok(
          cause?.test(told.detail) === true || (column === 'estimate' && NO_ESTIMATE.test(told.detail)),
          text,
        )
      }
      cells[column] = outcome
    }
    return cells as Cells
  }

  async #asked(column: Column): Promise<Judged> {
    if (column === 'list') return await this.#list()
    if (column === 'estimate') return await this.#estimate()
    if (column === 'health') return await this.#health()
    if (column === 'resume') return await this.#resume()
    return await this.#besideAnother(() => this.#stream(column))
  }

  async #stream(column: 'relay' | 'filter' | 'merge' | 'export'): Promise<Judged> {
    const { records } = this.#device
    this.#device.breaksLeft = this.#row.breaks ?? 0
    if (column === 'relay') return await this.#caller.download(this.#path, this.#relayed(records))
    if (column === 'filter') {
      // The device's only filter leaves every second packet that it sends.
      const odd = (this.#row.does.order?.(records) ?? records).filter((_, index) => index % 2 === 1)
      const right = makePcap(odd, this.#form)
      return await this.#caller.download(`${this.#path}&FilterBPF=odd`, right)
    }
    const plain = { nanoseconds: this.#row.does.isCoarse !== true }
    if (column === 'export')
      return await this.#caller.export(`${this.#query}&Device=${this.#device.name}`, makePcap(records, plain))
    const both = [...records, ...this.#other.records].toSorted((a, b) => Number(a.ns - b.ns))
    const path = `/api/v1/pcap/timerange?${RANGE}&Device=${this.#device.name},${this.#other.name}&Wait=600`
    return await this.#caller.download(path, makePcap(both))
  }

  /** A download that breaks off after a third, and the rest of it. */
  async #resume(): Promise<Judged> {
    const right = this.#relayed(this.#device.records)
    this.#device.breaksLeft = this.#row.breaks ?? 0
    this.#device.breaks.push({ afterBytes: Math.floor(right.length / 3), by: 'reset' })
    const taken = await this.#caller.take(this.#path)
    this.#device.breaks.length = 0
    if (!taken.isCut) return await this.#caller.judge(taken, right)
    assert.match((await this.#caller.judge(taken, right)).outcome, /^cut$/)
    const [path = ''] = this.#path.split('?')
    return await this.#besideAnother(() => this.#caller.resume(taken, { path, right }))
  }

  async #list(): Promise<Judged> {
    const answer = await this.#world.call(`/stream/list?Device=${this.#device.name}`)
    const { List, Unreachable = [] } = answer.json() as unknown as Listed
    const [failed] = Unreachable
    if (failed !== undefined) return { outcome: failed.code, told: failed }
    const names = List.map(({ StreamName }) => StreamName).toSorted()
    assert.ok(List.every(({ Device }) => Device === this.#device.name))
    return {
      outcome:
        names.join() === this.#device.captures.toSorted().join() ? 'right' : `${names.length} captures`,
    }
  }

  async #estimate(): Promise<Judged> {
    const answer = await this.#world.call(`/v1/estimate?${this.#query}&Device=${this.#device.name}`)
    const { status } = answer
    if (status !== 200) return { outcome: `${status} ${answer.json().code}`, told: answer.json() as never }
    const { packets, devices } = answer.json() as unknown as Estimated
    assert.equal(answer.headers['capfleet-unreachable'], this.#device.name)
    return { outcome: packets === null ? 'unknown' : `${packets} packets`, told: devices[0]?.error }
  }

  async #health(): Promise<Judged> {
    const { reachable, kind, error } = (
      await this.#world.call(`/v1/devices/${this.#device.name}`)
    ).json() as never as {
      reachable: boolean
      kind: string
      error: { code: string; detail: string } | null
    }
    if (reachable) return { outcome: `up, ${kind}` }
    return { outcome: `down, ${error?.code}`, told: error ?? { code: '', detail: '' } }
  }

  /**
   * Another client holds a stream of a device with only one, until the gateway knows that the device rejected a second.
   */
  async #besideAnother(ask: () => Promise<Judged>): Promise<Judged> {
    if (this.#row.isBusy !== true) return await ask()
    // The gateway respects a limit that it has learned: the device need not reject again.
    const device = this.#device
    const answered = Promise.withResolvers<void>()
    device.behaviour = { ...this.#row.does, held: Promise.race([this.#refused(), answered.promise]) }
    const another = this.#caller.download(this.#path, this.#relayed(device.records))
    await device.until(() => device.running > 0)
    const judged = await ask().finally(() => answered.resolve())
    assert.equal((await another).outcome, 'right', 'the other client gets its packets, too')
    device.behaviour = this.#row.does
    assert.ok(device.refused > 0)
    return judged
  }

  async #refused(): Promise<void> {
    const device = this.#device
    if (this.#row.does.limit === 'wait') return await device.until(() => device.refused > 0)
    // A device that rejects without a reason counts as busy while others have streams there. It is judged before one
    // ends.
    const isSentBack = async () => {
      const { slotsLimit, waiting } = (await this.#world.call(`/v1/devices/${device.name}`)).json()
      return Number(waiting) > 0 && (device.refused > 0 || slotsLimit !== null)
    }
    await eventually(isSentBack, { message: `the gateway waits for a stream of ${device.name}` })
  }

  get #query(): string {
    const [capture] = this.#row.captures ?? []
    return capture === undefined ? RANGE : `StreamName=${encodeURIComponent(capture)}`
  }

  get #path(): string {
    const kind = this.#row.captures === undefined ? 'timerange' : 'single'
    return `/devices/${this.#device.name}/api/v1/pcap/${kind}?${this.#query}&Wait=600`
  }

  /** As the device sends them. */
  #relayed(records: readonly PcapRecord[]): Buffer {
    return makePcap(this.#row.does.order?.(records) ?? records, this.#form)
  }

  get #form() {
    const { isCoarse, isBigEndian } = this.#row.does
    return { nanoseconds: isCoarse !== true, isBigEndian: isBigEndian === true }
  }
}

interface Listed {
  readonly List: readonly { readonly StreamName: string; readonly Device: string }[]
  readonly Unreachable?: readonly { readonly code: string; readonly detail: string }[]
}

interface Estimated {
  readonly packets: string | null
  readonly devices: readonly { readonly error?: { readonly code: string; readonly detail: string } }[]
}

function tableOf(found: ReadonlyMap<string, Cells>): string[] {
  const rows = [
    ['', ...COLUMNS],
    ...Object.keys(ROWS).map((name) => [name, ...COLUMNS.map((column) => found.get(name)?.[column] ?? '?')]),
  ]
  const widths = ['', ...COLUMNS].map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
