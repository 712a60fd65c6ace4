/** A Redis, appliances behind lines that can fail, and a gateway that writes exports of them to a folder. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { FETCH_QUEUE, jobPrefix, UPKEEP_QUEUE, WRITE_QUEUE } from '../../../src/gateway/export/export-jobs.ts'
import { DeviceLine } from '../devices/device-line.ts'
import { eventually } from '../eventually.ts'
import { type HttpAnswer, httpGet } from '../http-get.ts'
import { startTempAppliance, type TempAppliance } from '../processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../processes/temp-gateway.ts'
import { TempRedis } from '../processes/temp-redis.ts'
import { type TempFolder, tempFolder } from '../temp-folder.ts'
import { EXPORT_BEGIN_NS, EXPORT_END_NS, writeExportCapture } from './export-captures.ts'

export const EXPORT_DEVICES = ['east', 'north', 'west'] as const

/** One device: its appliance and the line to it. */
export interface ExportDevice {
  readonly name: string
  readonly appliance: TempAppliance
  readonly line: DeviceLine
}

export interface ExportWorldOptions {
  /** Bytes of packets on each device; each has one capture, named like the device. */
  readonly captureBytes: number
  /** Export settings in addition to the common ones. */
  readonly exports?: Readonly<Record<string, unknown>>
  /** For workers: less than a configuration may say, so that small captures have several spans. */
  readonly spanBytes?: number
  readonly settings?: Readonly<Record<string, unknown>>
  /** Where spool and files are; absent: in a temporary folder. */
  readonly folder?: string
}

/** An export as returned by GET. */
export interface ShownExport {
  readonly id: string
  readonly state: string
  readonly error: { readonly code: string; readonly detail: string } | null
  readonly files: readonly {
    readonly name: string
    readonly sha256: string
    readonly bytes: string
    readonly packets: string
  }[]
  readonly devices: readonly {
    readonly device: string
    readonly retries: number
    readonly missing: readonly {
      readonly fromNs: string
      readonly toNs: string
      readonly final: boolean
      readonly error: { readonly code: string; readonly detail: string }
    }[]
  }[]
  readonly progress: {
    readonly stage: string
    readonly fetchedBytes: string
    readonly writtenBytes: string
    readonly doneNs: string | null
    readonly waiting: { readonly device: string; readonly detail: string } | null
  }
}

/** The whole time of the captures. */
export const WHOLE_RANGE = `TSBegin=${EXPORT_BEGIN_NS}&TSEnd=${EXPORT_END_NS}`
const ENDED = ['complete', 'partial', 'failed', 'cancelled']
const PREFIX = 'capfleet'

export type Caller = 'viewer' | 'user' | 'full'

export class ExportWorld implements AsyncDisposable {
  readonly redis: TempRedis
  readonly gateway: TempGateway
  readonly devices: readonly ExportDevice[]
  /** Contains spool/ and files/. */
  readonly folder: string
  readonly #owned: AsyncDisposableStack

  private constructor(
    parts: Pick<ExportWorld, 'redis' | 'gateway' | 'devices' | 'folder'>,
    owned: AsyncDisposableStack,
  ) {
    this.redis = parts.redis
    this.gateway = parts.gateway
    this.devices = parts.devices
    this.folder = parts.folder
    this.#owned = owned
  }

  static async create(options: ExportWorldOptions): Promise<ExportWorld> {
    await using building = new AsyncDisposableStack()
    const own: TempFolder = building.use(await tempFolder())
    const folder = options.folder ?? own.path
    const redis = building.use(await TempRedis.create())
    const devices: ExportDevice[] = []
    for (const [index, name] of EXPORT_DEVICES.entries()) {
      const appliance = building.use(await startTempAppliance({ config: { deviceName: name } }))
      if (options.captureBytes > 0) {
        const path = join(appliance.folder, `${name}.pcap`)
        await writeExportCapture(path, { device: index, bytes: options.captureBytes })
        await appliance.importFiles(name, path)
      }
      const line = building.use(await DeviceLine.start(appliance.url))
      devices.push({ name, appliance, line })
    }
    process.env.EXPORT_WORLD_PASSWORD = (devices[0]?.appliance.credentials('full') ?? '').split(':')[1] ?? ''
    const gateway = building.use(
      await startTempGateway([], redis.url, {
        devices: devices.map(({ name, line: { url } }) => ({
          name,
          url,
          user: 'full',
          password: { env: 'EXPORT_WORLD_PASSWORD' },
        })),
        health: { failuresMax: 1_000_000, intervalS: 2 },
        ...options.settings,
        exports: {
          spool: join(folder, 'spool'),
          targets: [{ name: 'files', type: 'directory', path: join(folder, 'files') }],
          spanBytes: 1_048_576,
          ...options.exports,
        },
      }),
    )
    const { spanBytes = gateway.config.exports.spanBytes } = options
    const config = { ...gateway.config, exports: { ...gateway.config.exports, spanBytes } }
    return new ExportWorld({ redis, gateway: { ...gateway, config }, devices, folder }, building.move())
  }

  get spool(): string {
    return join(this.folder, 'spool')
  }

  get target(): string {
    return join(this.folder, 'files')
  }

  device(name: (typeof EXPORT_DEVICES)[number]): ExportDevice {
    const found = this.devices.find((device) => device.name === name)
    assert.ok(found)
    return found
  }

  /** After this many more bytes from each device nothing more comes, until the next `hold` or `release`. */
  hold(afterBytes: number): void {
    for (const { line } of this.devices) line.hold(afterBytes)
  }

  release(): void {
    for (const { line } of this.devices) line.release()
  }

  call(
    path: string,
    options: { method?: string; as?: Caller; headers?: Record<string, string> } = {},
  ): Promise<HttpAnswer> {
    const { method = 'GET', as = 'user', headers = {} } = options
    return httpGet(this.gateway.url + path, { method, headers: { ...this.gateway.as[as], ...headers } })
  }

  /** The answer to the request for an export. */
  order(query: string, options: { as?: Caller; headers?: Record<string, string> } = {}): Promise<HttpAnswer> {
    return this.call(`/v1/exports?${query}`, { ...options, method: 'POST' })
  }

  /** Creates an export and returns its id. */
  async ordered(
    query: string,
    options: { as?: Caller; headers?: Record<string, string> } = {},
  ): Promise<string> {
    const headers = { 'Idempotency-Key': randomUUID(), ...options.headers }
    const answer = await untilRedisAnswers(() => this.order(query, { ...options, headers }))
    assert.equal(answer.status, 202, answer.body.toString())
    return String(answer.json().id)
  }

  async shown(id: string): Promise<ShownExport> {
    const answer = await untilRedisAnswers(() => this.call(`/v1/exports/${id}`, { as: 'full' }))
    assert.equal(answer.status, 200, answer.body.toString())
    return answer.json() as unknown as ShownExport
  }

  /** The export as soon as it meets `condition`. */
  async until(
    id: string,
    condition: (shown: ShownExport) => boolean,
    limitMs?: number,
  ): Promise<ShownExport> {
    let shown = await this.shown(id)
    await eventually(
      async () => {
        if (condition(shown)) return true
        shown = await this.shown(id)
        return condition(shown)
      },
      { limitMs, message: `the export ${id} is as it shall be` },
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(shown)}`)
    })
    return shown
  }

  /** The export when it has ended. */
  ended(id: string, limitMs?: number): Promise<ShownExport> {
    return this.until(id, ({ state }) => ENDED.includes(state), limitMs)
  }

  /** Waits until the gateway uses a recovered device again: until it has answered a probe, requests fail at once. */
  async isAnswering(device: string): Promise<void> {
    await eventually(
      async () => (await this.call(`/devices/${device}/api/v1/system/version`)).status === 200,
      { limitMs: 60_000, message: `${device} is back` },
    )
  }

  /** The files of a new export, which is complete. */
  async exported(query: string): Promise<Buffer[]> {
    const id = await this.ordered(query)
    const shown = await this.ended(id)
    assert.equal(shown.state, 'complete', JSON.stringify(shown.error))
    return await this.files(shown)
  }

  /** The files of an export that has ended, in order. */
  files({ id, files }: ShownExport): Promise<Buffer[]> {
    return Promise.all(files.map(({ name }) => readFile(join(this.target, id, name))))
  }

  /** What a client gets that downloads the same directly. */
  async direct(path: string): Promise<Buffer> {
    const answer = await this.call(path)
    assert.equal(answer.status, 200, answer.body.toString())
    return answer.body
  }

  directRange(query: string): Promise<Buffer> {
    return this.direct(`/api/v1/pcap/timerange?${query}`)
  }

  /** Whatever is left in the spool and in the target's folder apart from kept files, and of jobs. */
  async leftovers(): Promise<readonly string[]> {
    const [spool, work, jobs] = await Promise.all([
      namesIn(this.spool).then((names) => names.filter((name) => name !== '.spool')),
      namesIn(join(this.target, '.work')),
      this.jobKeys(),
    ])
    return [...spool.map((name) => `spool/${name}`), ...work.map((name) => `.work/${name}`), ...jobs]
  }

  /** Waits until nothing is left of exports that have ended. */
  async isTidy(): Promise<void> {
    let left: readonly string[] = []
    await eventually(
      async () => {
        left = await this.leftovers()
        return left.length === 0
      },
      { message: 'nothing is left behind' },
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${left.join(' ')}`)
    })
  }

  /** BullMQ keys of export jobs; those of canaries and of the sweep come and go. */
  async jobKeys(): Promise<readonly string[]> {
    const keys = await this.redisKeys(`${jobPrefix(PREFIX)}:*`)
    return keys.filter((key) =>
      [FETCH_QUEUE, WRITE_QUEUE, UPKEEP_QUEUE].some((queue) => {
        const [, id = ''] = key.split(`:${queue}:`)
        return EXPORT_JOB.test(id)
      }),
    )
  }

  async redisKeys(pattern: string): Promise<string[]> {
    const redis = new Redis(this.redis.url)
    try {
      return await redis.keys(pattern.replaceAll(/[[\]]/g, '\\$&'))
    } finally {
      redis.disconnect()
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync()
  }
}

/** Repeats the request if a gateway could not reach Redis in time, because the machine is busy. */
async function untilRedisAnswers(ask: () => Promise<HttpAnswer>): Promise<HttpAnswer> {
  for (;;) {
    const answer = await ask()
    if (answer.status !== 503 || answer.json().code !== 'scheduler-unavailable') return answer
  }
}

const EXPORT_JOB = /^(clean-)?[0-9a-f]{8}-/

async function namesIn(folder: string): Promise<string[]> {
  return await readdir(folder).catch(() => [])
}
