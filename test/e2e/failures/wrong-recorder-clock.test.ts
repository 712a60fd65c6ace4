// The clock of a recorder jumps (libfaketime): while it runs, at its start, and between its starts.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { stringify } from 'yaml'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { CaptureCatalogue } from '../../../appliance/store/capture-catalogue.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import { eventually } from '../../support/eventually.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { CLOCK_JUMPS, FakedClock, WITHOUT_FAKETIME } from '../../support/processes/faked-clock.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { type TempFolder, tempFolder } from '../../support/temp-folder.ts'

/** Less than the smallest jump, and longer than any of these tests takes. */
const MAX_AGE_MS = 3_000_000
const DAY_MS = 86_400_000
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const LIMIT_MS = 60_000

class ClockedRecorder implements AsyncDisposable {
  readonly clock: FakedClock
  readonly client: RecorderClient
  readonly store: string
  readonly #folder: TempFolder
  #child: ChildProcess | undefined

  private constructor(folder: TempFolder, clock: FakedClock) {
    this.#folder = folder
    this.clock = clock
    this.store = join(folder.path, 'store')
    this.client = new RecorderClient(this.store)
  }

  /** With a capture "day" that is recorded yesterday, today and tomorrow, but not two days before or after. */
  static async create(): Promise<ClockedRecorder> {
    const folder = await tempFolder()
    const recorder = new ClockedRecorder(folder, await FakedClock.create(folder.path))
    const nowMs = Date.now()
    const days = [-DAY_MS, 0, DAY_MS].map((ms) => WEEKDAYS[new Date(nowMs + ms).getUTCDay()])
    const config = {
      listen: { host: '127.0.0.1', port: 0 },
      store: recorder.store,
      timeZone: 'UTC',
      logLevel: 'warn',
      auth: { users: join(folder.path, 'users.yaml') },
      retention: { minFreeBytes: 0, maxAgeMs: MAX_AGE_MS },
      capture: {
        schedule: [{ name: 'day', start: '00:00:00', stop: '24:00:00', days, zone: 'UTC' }],
        roll: { everySeconds: 6 * 3_600 },
      },
    }
    await writeFile(join(folder.path, 'appliance.yaml'), stringify(config))
    await writeFile(
      join(folder.path, 'one.pcap'),
      makePcap([makePacket(1_700_000_000_000_000_000n, 'one', 100)]),
    )
    await recorder.start()
    return recorder
  }

  async start(): Promise<void> {
    const child = spawn(
      process.execPath,
      [
        join(REPOSITORY_ROOT, 'src/cli.ts'),
        'recorder',
        '--config',
        join(this.#folder.path, 'appliance.yaml'),
      ],
      { stdio: ['ignore', 'pipe', 'inherit', 'ipc'], env: { ...process.env, ...this.clock.environment } },
    )
    this.#child = child
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream }))
      if (line.includes(' ready ')) return
    throw new Error('the recorder did not start')
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  import(name: string): Promise<unknown> {
    return this.client.importCapture({ name, files: [join(this.#folder.path, 'one.pcap')] })
  }

  /** Makes the recorder remove what it may, and waits for that: deleting a capture triggers a collection. */
  async collect(): Promise<void> {
    await this.import('gone')
    await this.client.deleteCapture('gone')
  }

  async holdIs(hold: string): Promise<void> {
    await eventually(async () => (await this.client.captureReport()).clockHold === hold, {
      limitMs: LIMIT_MS,
      message: `the clock is held for "${hold}"`,
    })
  }

  /** Names of all captures, oldest first. */
  async captures(): Promise<readonly string[]> {
    const catalogue = new CaptureCatalogue(storePaths(this.store), createLog('test', 'silent'))
    return (await catalogue.list()).map(({ name }) => name).sort()
  }

  async forgetClock(): Promise<void> {
    await rm(storePaths(this.store).clock)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL')
    await this.#folder[Symbol.asyncDispose]()
  }
}

describe('a recorder whose clock jumps', { skip: WITHOUT_FAKETIME }, () => {
  for (const { name, jumpS } of CLOCK_JUMPS)
    test(`by ${name} removes nothing, and the capture continues`, async () => {
      await using recorder = await ClockedRecorder.create()
      await recorder.import('before')
      const { name: capture } = await recorder.client.captureReport()
      await recorder.clock.set(jumpS)
      await recorder.holdIs('clock-stepped')
      await recorder.collect()
      await recorder.import('meanwhile')
      await recorder.collect()
      const all = ['before', capture, 'meanwhile'].sort()
      assert.deepEqual(await recorder.captures(), all, 'while it runs')
      await recorder.end('SIGKILL')
      await recorder.start()
      assert.equal((await recorder.client.captureReport()).clockHold, 'clock-stepped')
      await recorder.collect()
      assert.deepEqual(await recorder.captures(), all, 'at its start')
      await recorder.clock.set(0)
      await recorder.holdIs('')
      await recorder.collect()
      assert.deepEqual(await recorder.captures(), all, 'when it is back')
      const report = await recorder.client.captureReport()
      assert.deepEqual([report.state, report.name], ['running', capture])
      await recorder.end('SIGTERM')
      await recorder.clock.set(jumpS)
      await recorder.start()
      await recorder.collect()
      await recorder.end('SIGKILL')
      await recorder.clock.set(0)
      await recorder.start()
      await recorder.holdIs('')
      await recorder.collect()
      assert.deepEqual(await recorder.captures(), all, 'between starts')
      assert.equal((await recorder.client.captureReport()).name, capture)
    })

  test('before its first start with this store removes nothing', async () => {
    await using recorder = await ClockedRecorder.create()
    await recorder.import('before')
    for (const { name, jumpS } of CLOCK_JUMPS) {
      await recorder.end('SIGTERM')
      await recorder.forgetClock()
      await recorder.clock.set(jumpS)
      await recorder.start()
      assert.equal((await recorder.client.captureReport()).clockHold, 'clock-unconfirmed', name)
      await recorder.collect()
      assert.ok((await recorder.captures()).includes('before'), name)
    }
  })

  test('removes by age where an operator confirms it', async () => {
    await using recorder = await ClockedRecorder.create()
    await recorder.import('before')
    await recorder.end('SIGTERM')
    await recorder.forgetClock()
    await recorder.clock.set(172_800)
    await recorder.start()
    assert.equal(await recorder.client.trustClock(), 'clock-unconfirmed')
    await recorder.collect()
    assert.equal((await recorder.captures()).includes('before'), false)
  })
})
