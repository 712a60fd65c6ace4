// The real recorder on a real interface: packets are stored across rolls, restarts and failures.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { storedEvents } from '../../../appliance/events/stored-event.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import { eventually } from '../../support/eventually.ts'
import {
  type CaptureWire,
  captureWire,
  inNamespace,
  WITHOUT_WIRE,
} from '../../support/network/capture-wire.ts'
import { NumberedSender } from '../../support/packets/numbered-sender.ts'
import { storedNumbers } from '../../support/packets/stored-numbers.ts'
import { pause } from '../../support/pause.ts'
import { RecorderProcess } from '../../support/processes/recorder-process.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const run = promisify(execFile)
const PACKETS_PER_TICK = 10
const ALWAYS = {
  name: 'always',
  start: '00:00:00',
  stop: '24:00:00',
  days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'],
  zone: 'UTC',
}

interface Stage extends AsyncDisposable {
  readonly wire: CaptureWire
  readonly recorder: RecorderProcess
}

async function stageWith(options: {
  readonly capture?: Readonly<Record<string, unknown>>
  readonly retention?: Readonly<Record<string, unknown>>
  readonly through?: readonly string[]
}): Promise<Stage> {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  const wire = parts.use(await captureWire())
  const recorder = parts.use(await RecorderProcess.start({ wire, folder: folder.path, ...options }))
  const owner = parts.move()
  return { wire, recorder, [Symbol.asyncDispose]: () => owner.disposeAsync() }
}

/** Packets in the segments that retention has removed, according to the events. */
async function removedPackets(storePath: string): Promise<number> {
  const { events } = storePaths(storePath)
  return storedEvents(await readFile(events.newest))
    .events.filter(({ data }) => data.Kind === 'segment-removed')
    .reduce((sum, { data }) => sum + Number(data.packets), 0)
}

const folderOf = (recorder: RecorderProcess, name: string): string =>
  join(recorder.storePath, 'captures', name)
/** Captures in the order of their creation. */
const capturesOf = async (recorder: RecorderProcess): Promise<string[]> =>
  (await readdir(join(recorder.storePath, 'captures'))).sort(
    (a, b) => a.length - b.length || (a < b ? -1 : 1),
  )

describe('a recorder on an interface', { skip: WITHOUT_WIRE }, () => {
  test('stores every packet, counts them, and says until when they are safe', async () => {
    await using stage = await stageWith({})
    const { recorder, wire } = stage
    const { name } = await recorder.client.startCapture('live')
    await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
    await eventually(() => sender.sent > 1_000, { message: 'packets are sent' })
    await sender[Symbol.asyncDispose]()
    await eventually(
      async () => {
        const { counts } = await recorder.client.captureReport()
        // On a quiet wire the watermark advances with the clock.
        return counts.packets === BigInt(sender.sent) && counts.flushedNs > counts.lastPacketNs
      },
      { message: 'all is stored, and known to be' },
    )
    const { counts, ports } = await recorder.client.captureReport()
    assert.deepEqual(ports, [0])
    assert.ok(counts.lastPacketNs > 0n)
    assert.deepEqual([counts.drops, counts.pendingPackets, counts.diskErrors], [0n, 0n, 0n])
    const stopped = await recorder.client.stopCapture(false)
    assert.equal(stopped.packets, counts.packets)
    assert.deepEqual(
      await storedNumbers(folderOf(recorder, name)),
      Array.from({ length: sender.sent }, (_, number) => number),
    )
  })

  test('rolls every second under load: every packet is in one capture, none in two', async (t) => {
    await using stage = await stageWith({ capture: { roll: { everySeconds: 1 } } })
    const { recorder, wire } = stage
    await recorder.client.startCapture('rolled')
    await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
    await eventually(async () => (await capturesOf(recorder)).length >= 5, {
      message: 'it has rolled four times',
    })
    await sender[Symbol.asyncDispose]()
    const stopped = await recorder.client.stopCapture(false)
    const stored = await Promise.all(
      (await capturesOf(recorder)).map((name) => storedNumbers(folderOf(recorder, name)).catch(() => [])),
    )
    t.diagnostic(`${sender.sent} sent, stored ${stored.map(({ length }) => length).join(' + ')}`)
    const all = stored.flat().sort((a, b) => a - b)
    assert.deepEqual(
      all,
      Array.from({ length: sender.sent }, (_, number) => number),
    )
    assert.ok(stored.filter(({ length }) => length > 0).length >= 3)
    assert.equal(stopped.drops, 0n)
  })

  test('a clean restart loses nothing that came before or after it', async () => {
    await using stage = await stageWith({})
    const { recorder, wire } = stage
    const { name } = await recorder.client.startCapture('kept')
    for (let part = 0; part < 2; part++) {
      await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
      await eventually(() => sender.sent > 300, { message: 'packets are sent' })
      await sender[Symbol.asyncDispose]()
      await recorder.end('SIGTERM')
      await recorder.start()
      assert.equal((await recorder.running()).name, name)
    }
    const { packets } = await recorder.client.stopCapture(false)
    const stored = await storedNumbers(folderOf(recorder, name))
    assert.equal(packets, BigInt(stored.length))
    const second = stored.lastIndexOf(0)
    for (const part of [stored.slice(0, second), stored.slice(second)]) {
      assert.ok(part.length >= 300)
      assert.deepEqual(
        part,
        Array.from({ length: part.length }, (_, number) => number),
      )
    }
  })

  test('that has no right to capture answers why, and stays up', async () => {
    const through = ['setpriv', '--bounding-set', '-net_raw', '--inh-caps', '-net_raw']
    await using stage = await stageWith({ through })
    const { client } = stage.recorder
    await assert.rejects(client.startCapture('x'), { code: 'capture-unavailable', message: /CAP_NET_RAW/ })
    const { state, message, name } = await client.captureReport()
    assert.deepEqual([state, name], ['error', ''])
    assert.match(message, /CAP_NET_RAW/)
    assert.deepEqual(await capturesOf(stage.recorder), [])
  })

  test('continues while the disk is full, counts what it drops, and stores again when there is room', async (t) => {
    await using folder = await tempFolder()
    const store = join(folder.path, 'store')
    await mkdir(store)
    await run('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'none', store])
    await using mounted = new AsyncDisposableStack()
    mounted.defer(async () => void (await run('umount', [store])))
    await writeFile(join(store, 'ballast'), Buffer.alloc(12 * 2 ** 20))
    await using wire = await captureWire()
    await using recorder = await RecorderProcess.start({
      wire,
      folder: folder.path,
      capture: { queueBytes: 2 ** 20 },
    })
    const { client } = recorder
    const { name } = await client.startCapture('full')
    await using sender = await NumberedSender.start(wire, 5 * PACKETS_PER_TICK)
    await eventually(async () => (await client.captureReport()).counts.diskDrops > 0n, {
      message: 'packets are dropped',
    })
    const { state, message } = await client.captureReport()
    assert.equal(state, 'running')
    assert.match(message, /disk error: .*[Nn]o space/)
    await rm(join(store, 'ballast'))
    const before = (await client.captureReport()).counts.packets
    await eventually(async () => (await client.captureReport()).counts.packets > before + 100n, {
      message: 'packets are stored again',
    })
    await sender[Symbol.asyncDispose]()
    const stopped = await client.stopCapture(false)
    // While there is no space, retention may make some, but not after the recorder has ended.
    await recorder.end('SIGTERM')
    const stored = await storedNumbers(folderOf(recorder, name))
    const removed = await removedPackets(store)
    t.diagnostic(`${sender.sent} sent, ${stored.length} stored, ${removed} removed, ${stopped.drops} dropped`)
    assert.equal(Number(stopped.packets), stored.length + removed)
    assert.ok(stored.every((number, index) => number > (stored[index - 1] ?? -1)))
    assert.equal(stored.length + removed + Number(stopped.drops), sender.sent)
  })

  test('that keeps everything ends its capture in order where there is no more room', async (t) => {
    const maxBytes = 3 * 2 ** 20
    await using stage = await stageWith({ retention: { onFull: 'stop', maxBytes } })
    const { wire, recorder } = stage
    const { client } = recorder
    const { name } = await client.startCapture('kept')
    await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
    const isWaiting = async () => (await client.captureReport()).state === 'error'
    await eventually(isWaiting, { message: 'there is no room' })
    const sizes = async () => {
      const port = join(folderOf(recorder, name), 'cap0', '00000')
      const files = await Promise.all((await readdir(port)).map((file) => stat(join(port, file))))
      return files.reduce((sum, { size }) => sum + size, 0)
    }
    let stored: number
    do {
      stored = await sizes()
      await pause(2_000, 'room is looked for every second')
    } while ((await sizes()) !== stored)
    t.diagnostic(`${stored - maxBytes} bytes are beyond ${maxBytes}`)
    // Free space is checked every second; then packets in memory are written.
    assert.ok(stored > maxBytes && stored < 2 * maxBytes, `${stored}`)
    const [{ message }, before] = [await client.captureReport(), sender.sent]
    assert.match(message, /no room left/)
    await assert.rejects(client.deleteCapture(name), { code: 'capture-active' })
    await pause(4_000, 'packets come while there is no room')
    assert.deepEqual([await isWaiting(), await sizes()], [true, stored], 'nothing comes while it waits')
    assert.ok(sender.sent > before)
    const { packets } = await client.stopCapture(false)
    const numbers = await storedNumbers(folderOf(recorder, name))
    assert.deepEqual(
      numbers,
      Array.from({ length: Number(packets) }, (_, number) => number),
      'it ended in order: whole up to its end',
    )
    await assert.rejects(client.startCapture('next'), { code: 'store-full' })
    await client.deleteCapture(name)
    await client.startCapture('next')
    await eventually(async () => (await client.captureReport()).counts.packets > 0n, {
      message: 'packets come in',
    })
    await sender[Symbol.asyncDispose]()
  })

  test('whose interface is not there yet begins with its schedule when it is', async () => {
    await using stage = await stageWith({
      capture: { schedule: [ALWAYS], ports: [{ port: 0, interface: 'later0' }] },
    })
    const { recorder, wire } = stage
    await eventually(async () => (await recorder.client.captureReport()).state === 'error', {
      message: 'it cannot begin',
    })
    assert.match((await recorder.client.captureReport()).message, /later0/)
    const inside = (...args: readonly string[]) => run(...inNamespace(wire.receiver, ['ip', ...args]))
    await inside('link', 'set', wire.interfaceName, 'down')
    await inside('link', 'set', wire.interfaceName, 'name', 'later0', 'up')
    await recorder.running()
    await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
    await eventually(async () => (await recorder.client.captureReport()).counts.packets > 0n, {
      message: 'packets come in',
    })
    await assert.rejects(recorder.client.stopCapture(false), { code: 'capture-scheduled' })
    await sender[Symbol.asyncDispose]()
  })

  test('whose interface disappears says so, and captures again when it is back', async () => {
    await using stage = await stageWith({})
    const { recorder, wire } = stage
    const inside = (...args: string[]) =>
      run(...inNamespace(wire.receiver, ['ip', 'link', 'set', wire.interfaceName, ...args]))
    const says = (pattern: RegExp) =>
      eventually(async () => pattern.test((await recorder.client.captureReport()).message), {
        message: `the recorder says ${pattern}`,
      })
    await recorder.client.startCapture('live')
    await inside('down')
    await says(/^cap\d captures nothing: /)
    assert.equal((await recorder.client.captureReport()).state, 'running')
    await inside('up')
    await says(/^$/)
    const told = async () => {
      const text = await readFile(join(recorder.storePath, 'events.jsonl'), 'utf8')
      return [...text.matchAll(/"(port-\w+)"/g)].map(([, kind]) => kind).join()
    }
    await eventually(async () => (await told()) === 'port-down,port-up', {
      message: 'both are events',
    })
  })

  test('whose active capture has an invalid index repairs it, and continues the capture', async () => {
    await using stage = await stageWith({})
    const { recorder, wire } = stage
    const { name } = await recorder.client.startCapture('damaged')
    await using _sender = await NumberedSender.start(wire, 4 * PACKETS_PER_TICK)
    const port = join(folderOf(recorder, name), 'cap0', '00000')
    const hasTwo = async (): Promise<boolean> =>
      (await readdir(port).catch((): string[] => [])).includes('00000002.idx')
    await eventually(hasTwo, { message: 'a segment is finished' })
    await recorder.end('SIGKILL')
    await truncate(join(port, '00000001.idx'), 0)
    await writeFile(join(port, '00000001.idx'), 'this is no index'.repeat(16))
    await recorder.start()
    const report = await recorder.running()
    assert.equal(report.name, name)
    assert.equal((await readFile(join(port, '00000001.idx'))).toString('latin1', 0, 8), 'CFINDEX1')
  })
})
