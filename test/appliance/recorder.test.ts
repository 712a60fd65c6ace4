import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { frameHead } from '../../appliance/link/body-frames.ts'
import { readLines } from '../../appliance/link/read-lines.ts'
import { RecorderClient } from '../../appliance/link/recorder-client.ts'
import { startRecorder } from '../../appliance/recorder.ts'
import { withRecorder } from '../../appliance/recorder-session.ts'
import { captureConfigSchema } from '../../appliance/settings/capture-config.ts'
import { segmentsOf } from '../../appliance/store/stored-capture.ts'
import { createLog } from '../../src/shared/base/log.ts'
import { storedCaptureOf } from '../support/disks/store-captures.ts'
import { eventually } from '../support/eventually.ts'
import { ScriptedDriver } from '../support/live/scripted-driver.ts'
import { writeBigCapture } from '../support/packets/big-capture.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import { pause } from '../support/pause.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { tempFolder } from '../support/temp-folder.ts'

const log = createLog('test', 'silent')
const capture = { timeZone: 'UTC', config: captureConfigSchema.parse({}) }
const RECORDER = fileURLToPath(new URL('../../appliance/recorder.ts', import.meta.url))
const capturesOf = (store: string): Promise<string[]> => readdir(join(store, 'captures'))

interface RecorderHere extends AsyncDisposable {
  readonly store: string
  readonly client: RecorderClient
  readonly file: string
}

/** A recorder in this process over an empty store, and a small capture file. */
async function recorderHere(): Promise<RecorderHere> {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  const store = join(folder.path, 'store')
  const recorder = await startRecorder({ storePath: store, log })
  parts.defer(() => recorder.close())
  const file = join(folder.path, 'a.pcap')
  await writeFile(file, makePcap([makePacket(5n, 'five', 60), makePacket(9n, 'nine', 60)]))
  const owner = parts.move()
  return {
    store,
    file,
    client: new RecorderClient(store),
    [Symbol.asyncDispose]: () => owner.disposeAsync(),
  }
}

test('an import becomes a capture with its record', async () => {
  await using here = await recorderHere()
  const record = await here.client.importCapture({
    name: 'a',
    files: [here.file, here.file],
    description: 'twice',
  })
  assert.deepEqual(
    [record.packets, record.startNs, record.endNs, record.description, record.sources],
    [4n, 5n, 10n, 'twice', ['a.pcap', 'a.pcap']],
  )
  assert.deepEqual(await capturesOf(here.store), ['a'])
  const stored = await storedCaptureOf(here.store, 'a')
  assert.deepEqual([stored.endNs, stored.packets], [10n, 4n])
  assert.equal(await readFile(join(here.store, 'store.json'), 'utf8'), '{"format":2}\n')
  const [segment] = segmentsOf(stored)
  const { size } = await stat(join(here.store, 'captures', 'a', 'cap0', '00000', '00000001.pcap'))
  assert.equal(segment?.bytes, BigInt(size))
})

test('refuses what it cannot import, and leaves nothing over', async () => {
  await using here = await recorderHere()
  const bad = join(here.store, '..', 'bad.pcap')
  await writeFile(bad, 'this is no capture file')
  await here.client.importCapture({ name: 'a', files: [here.file] })
  const cases = [
    [{ name: 'a', files: [here.file] }, 'capture-exists'],
    [{ name: '../a', files: [here.file] }, 'bad-parameter'],
    [{ name: '.a', files: [here.file] }, 'bad-parameter'],
    [{ name: '', files: [here.file] }, 'bad-parameter'],
    [{ name: 'b', files: [] }, 'bad-parameter'],
    [{ name: 'b', files: ['relative.pcap'] }, 'bad-parameter'],
    [{ name: 'b', files: [bad] }, 'bad-capture-file'],
    [{ name: 'b', files: ['/nonexistent.pcap'] }, 'bad-capture-file'],
    [{ name: 'b', files: ['/'] }, 'bad-capture-file'],
  ] as const
  for (const [request, code] of cases) {
    await assert.rejects(here.client.importCapture(request), { code }, JSON.stringify(request))
  }
  assert.deepEqual(await capturesOf(here.store), ['a'])
})

/** The file in pieces of this many bytes. */
async function* piecesOf(path: string, pieceBytes: number): AsyncGenerator<Buffer> {
  const bytes = await readFile(path)
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

test('bytes that are sent become a capture, and are kept only until then', async () => {
  await using here = await recorderHere()
  const file = join(here.store, '..', 'big.pcap')
  await writeBigCapture(file, 20_000)
  const record = await here.client.importStream(
    { name: 'sent', source: 'a b.pcap', description: 'by pipe' },
    piecesOf(file, 10_007),
  )
  assert.deepEqual([record.packets, record.description, record.sources], [20_000n, 'by pipe', ['a b.pcap']])
  assert.deepEqual(await capturesOf(here.store), ['sent'])
  assert.equal((await storedCaptureOf(here.store, 'sent')).packets, 20_000n)
})

test('bytes that cannot be imported leave nothing, and a name that is taken reads none', async () => {
  await using here = await recorderHere()
  const text = join(here.store, '..', 'text')
  await writeFile(text, 'this is no capture file'.repeat(100_000))
  await here.client.importCapture({ name: 'a', files: [here.file] })
  const { client } = here
  let reads = 0
  const unread = async function* (): AsyncGenerator<Buffer> {
    reads++
    yield Buffer.from('x')
  }
  await assert.rejects(client.importStream({ name: 'a', source: 'a.pcap' }, unread()), {
    code: 'capture-exists',
  })
  for (const source of ['', '.', '..', '../a', 'a/b', 'a\0b', 'x'.repeat(256)]) {
    await assert.rejects(client.importStream({ name: 'b', source }, unread()), { code: 'bad-parameter' })
  }
  assert.equal(reads, 0)
  await assert.rejects(client.importStream({ name: 'b', source: 'notes.txt' }, piecesOf(text, 65_536)), {
    code: 'bad-capture-file',
    message: /^notes\.txt is neither PCAP nor pcapng/,
  })
  assert.deepEqual(await capturesOf(here.store), ['a'])
})

test('a sender that fails, is aborted or is killed half way leaves nothing', async (t) => {
  await using here = await recorderHere()
  const broken = async function* (): AsyncGenerator<Buffer> {
    yield await readFile(here.file)
    throw new Error('the client has left')
  }
  const sent = { name: 'b', source: 'b.pcap' }
  await assert.rejects(here.client.importStream(sent, broken()), /the client has left/)
  await eventually(async () => (await capturesOf(here.store)).length === 0, {
    message: 'the file is removed',
  })

  const abort = new AbortController()
  const endless = async function* (): AsyncGenerator<Buffer> {
    yield await readFile(here.file)
    abort.abort(new Error('enough'))
    await once(t.signal, 'abort')
  }
  const aborted = here.client.importStream(sent, endless(), { signal: abort.signal })
  await assert.rejects(aborted, /enough/)
  await eventually(async () => (await capturesOf(here.store)).length === 0, {
    message: 'the file is removed',
  })

  // The kernel ends the connection of a killed process in order.
  const socket = createConnection(join(here.store, 'recorder-owner.sock'))
  socket.write(`${JSON.stringify({ command: 'import-stream', ...sent })}\n`)
  await once(socket, 'data')
  const bytes = await readFile(here.file)
  socket.end(Buffer.concat([frameHead(bytes), bytes]))
  await eventually(async () => (await capturesOf(here.store)).length === 0, {
    message: 'the file is removed',
  })
  await here.client.importStream(sent, piecesOf(here.file, 7))
})

/** So many that an import of them is not over before a busy machine has seen its first progress. */
const manyOf = (file: string): string[] => Array.from({ length: 200 }, () => file)

test('progress is reported, and an aborted import vanishes', async () => {
  await using here = await recorderHere()
  const file = join(here.store, '..', 'big.pcap')
  const { bytes } = await writeBigCapture(file, 40_000)
  const files = manyOf(file)
  const abort = new AbortController()
  const seen: bigint[] = []
  const importing = here.client.importCapture(
    { name: 'big', files },
    {
      signal: abort.signal,
      onProgress: (progress) => {
        seen.push(progress.inputBytes)
        assert.equal(progress.totalInputBytes, BigInt(bytes * files.length))
        abort.abort(new Error('enough'))
      },
    },
  )
  await assert.rejects(importing, /enough/)
  assert.ok(seen.length > 0)
  await eventually(async () => (await capturesOf(here.store)).length === 0, {
    message: 'the import is removed',
  })
})

test('a capture is deleted by its full name only, with the bytes that it took', async () => {
  await using here = await recorderHere()
  await here.client.importCapture({ name: 'a_20261120_0930', files: [here.file] })
  await assert.rejects(here.client.deleteCapture('a'), { code: 'unknown-capture' })
  await assert.rejects(here.client.deleteCapture('..'), { code: 'unknown-capture' })
  const { bytesFreed } = await here.client.deleteCapture('a_20261120_0930')
  assert.ok(bytesFreed > 180n)
  assert.deepEqual(await capturesOf(here.store), [])
})

test('a store has one recorder, and its path may be long', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'x'.repeat(120), 'store')
  await using recorder = await startedRecorder({ storePath: store, log })
  await assert.rejects(startRecorder({ storePath: store, log }), {
    code: 'store-unavailable',
    message: /another recorder \(process \d+\)/,
  })
  assert.deepEqual(await new RecorderClient(store).info(), { pid: process.pid })
  await recorder.close()
  await assert.rejects(new RecorderClient(store).info(), { code: 'store-unavailable' })
})

test('a new start removes what a killed recorder left, and its dead socket', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const file = join(folder.path, 'big.pcap')
  await writeBigCapture(file, 40_000)
  using owned = recorderProcess(store)
  const { child } = owned
  const exited = once(child, 'exit')
  await ready(child)
  const importing = new RecorderClient(store).importCapture(
    { name: 'big', files: manyOf(file) },
    { onProgress: () => child.kill('SIGKILL') },
  )
  await assert.rejects(importing, { code: 'store-unavailable' })
  await exited
  assert.deepEqual(await capturesOf(store), ['.importing-big'])
  await mkdir(join(store, 'captures', '.deleting-x'))
  await using _recorder = await startedRecorder({ storePath: store, log })
  await eventually(async () => (await capturesOf(store)).length === 0, {
    limitMs: 30_000,
    message: 'both are removed in the background',
  })
})

const random = seededRandom()
test(`a recorder killed at any moment around a start leaves a whole capture or none (SEED=${random.seed})`, async () => {
  await using folder = await tempFolder()
  for (let round = 0; round < 6; round++) {
    const store = join(folder.path, `store${round}`)
    using owned = recorderProcess(store)
    const { child } = owned
    const exited = once(child, 'exit')
    await ready(child)
    const started = new RecorderClient(store).startCapture('x').catch(() => undefined)
    await Promise.race([started, pause(random.integer(0, 12), 'it is killed at any moment of its start')])
    child.kill('SIGKILL')
    const wasStarted = (await started) !== undefined
    await exited
    await using _recorder = await startedRecorder({ storePath: store, log, capture })
    const client = new RecorderClient(store)
    const { state, name } = await client.captureReport()
    assert.ok(state === 'running' || !wasStarted, 'a start that was answered is not forgotten')
    assert.deepEqual(await capturesOf(store), state === 'running' ? [name] : [])
    const next = state === 'running' ? await client.stopCapture(false) : await client.startCapture('x')
    assert.match(next.name, /^x_\d{8}_\d{4}$/)
  }
})

test('a recorder that only imports leaves an active capture alone', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  await using first = await startedRecorder({ storePath: store, log, capture })
  const { name } = await new RecorderClient(store).startCapture('x')
  await first.close()
  await withRecorder(store, async (client) => {
    await assert.rejects(client.stopCapture(false), { code: 'store-unavailable', message: /only imports/ })
  })
  await using _next = await startedRecorder({ storePath: store, log, capture })
  assert.equal((await new RecorderClient(store).captureReport()).name, name)
})

const LIMIT_BYTES = 400_000
const KEEPS_ALL = { maxBytes: 0, minFreeBytes: 0, maxAgeMs: 0, onFull: 'stop', pinMs: 30_000 } as const
/** 100 packets of 10,000 bytes, one millisecond apart. */
const BIG_PACKETS = Array.from({ length: 100 }, (_, i) => makePacket(BigInt(i) * 1_000_000n, `${i}`, 10_000))

test('onFull "stop" ends a running capture properly at the limit, and continues it when there is room', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  await using driver = await ScriptedDriver.make([BIG_PACKETS], 100_000)
  const options = {
    storePath: store,
    log,
    retention: { ...KEEPS_ALL, maxBytes: LIMIT_BYTES },
    capture: { ...capture, driver },
  }
  await using recorder = await startedRecorder(options)
  const client = new RecorderClient(store)
  const file = join(folder.path, 'old.pcap')
  await writeFile(file, makePcap(BIG_PACKETS.slice(0, 30)))
  await client.importCapture({ name: 'old', files: [file] })
  const { name } = await client.startCapture('x')
  await pause(1_500, 'room is looked for every second')
  assert.equal((await client.captureReport()).state, 'running', 'there is room')
  await driver.flushUntil(18_000_000n)
  const inState = (wanted: string) =>
    eventually(async () => (await client.captureReport()).state === wanted, {
      message: `the capture is ${wanted}`,
    })
  await inState('error')
  const waiting = await client.captureReport()
  assert.equal(waiting.name, name)
  assert.match(
    waiting.message,
    /no room left within retention\.maxBytes .*, and retention\.onFull is "stop"; delete captures, /,
  )
  await eventually(
    async () => {
      const { state, packets } = await storedCaptureOf(store, name)
      return state === 'active' && packets === 18n
    },
    { message: 'all that came is in its record, and it is not over' },
  )
  await assert.rejects(client.startCapture('y'), { code: 'capture-running' })

  await recorder.close()
  await using _next = await startedRecorder(options)
  await inState('error')
  await client.deleteCapture('old')
  await inState('running')
  const stopped = await client.stopCapture(false)
  assert.deepEqual([stopped.name, stopped.packets], [name, 18n])
  assert.equal((await client.captureReport()).state, 'idle')
})

test('onFull "stop" starts no capture while the disk has too little room', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const retention = { ...KEEPS_ALL, minFreeBytes: 1e14 }
  await using _recorder = await startedRecorder({ storePath: store, log, retention, capture })
  const client = new RecorderClient(store)
  await assert.rejects(client.startCapture('x'), { code: 'store-full', message: /no room left/ })
  assert.equal((await client.captureReport()).state, 'error')
  assert.deepEqual(await capturesOf(store), [])
})

/** A recorder until dispose, or until it is closed before. */
async function startedRecorder(options: Parameters<typeof startRecorder>[0]) {
  const recorder = await startRecorder(options)
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    closing ??= recorder.close()
    return closing
  }
  return { close, [Symbol.asyncDispose]: close }
}

/** A recorder in its own process, until dispose at the latest. */
function recorderProcess(store: string): Disposable & { readonly child: ChildProcess } {
  const script = `
    const { startRecorder } = await import(${JSON.stringify(RECORDER)})
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    await startRecorder({ storePath: ${JSON.stringify(store)}, log, capture: ${JSON.stringify(capture)} })
    console.log('ready')`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return { child, [Symbol.dispose]: () => void child.kill('SIGKILL') }
}

async function ready(child: ChildProcess): Promise<void> {
  assert.ok(child.stdout)
  for await (const _line of createInterface({ input: child.stdout })) return
}

test('withRecorder starts one when none runs and uses the running one', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const file = join(folder.path, 'a.pcap')
  await writeFile(file, makePcap([makePacket(5n, 'five', 60)]))
  await withRecorder(store, (recorder) => recorder.importCapture({ name: 'a', files: [file] }))
  await assert.rejects(new RecorderClient(store).info(), { code: 'store-unavailable' })
  await using running = await startedRecorder({ storePath: store, log })
  await withRecorder(store, (recorder) => recorder.importCapture({ name: 'b', files: [file] }))
  assert.deepEqual(await new RecorderClient(store).info(), { pid: process.pid })
  await running.close()
  assert.deepEqual((await capturesOf(store)).toSorted(), ['a', 'b'])
})

test('two at once for the same name: one wins', async () => {
  await using here = await recorderHere()
  const results = await Promise.allSettled(
    Array.from({ length: 4 }, () => here.client.importCapture({ name: 'a', files: [here.file] })),
  )
  const lost = results.filter((result) => result.status === 'rejected')
  assert.equal(lost.length, 3)
  for (const { reason } of lost) assert.equal(reason.code, 'capture-exists')
})

test('a folder that is no store, or of another format, is refused', async () => {
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'store.json'), '{"format":3}')
  await assert.rejects(startRecorder({ storePath: folder.path, log }), {
    code: 'store-unavailable',
    message: /store\.json/,
  })
  await rm(join(folder.path, 'store.json'))
  await using _recorder = await startedRecorder({ storePath: folder.path, log })
})

test('a format that cannot be read is no reason to make a new store', async () => {
  await using folder = await tempFolder()
  await mkdir(join(folder.path, 'store.json'))
  await assert.rejects(startRecorder({ storePath: folder.path, log }), {
    code: 'store-unavailable',
    message: /cannot read the store: .*EISDIR/,
  })
})

/** The recorder's answer to a command, sent as any process may that can connect to this socket. */
async function rawAnswer(here: RecorderHere, socketName: string, command: unknown): Promise<unknown> {
  using connection = new DisposableStack()
  const socket = createConnection(join(here.store, socketName))
  connection.defer(() => void socket.destroy())
  await once(socket, 'connect')
  socket.write(`${JSON.stringify(command)}\n`)
  let last: unknown
  for await (const line of readLines(socket)) last = JSON.parse(line)
  return last
}

test('the socket of the group takes no files by name, but bytes', async () => {
  await using here = await recorderHere()
  const command = { command: 'import', name: 'a', files: [here.file] }
  const message =
    'the recorder accepts the command "import" only on the socket recorder-owner.sock; ' +
    'run `capfleet import` as root or as the user of the recorder'
  assert.deepEqual(await rawAnswer(here, 'recorder.sock', command), {
    error: { code: 'bad-parameter', message, param: 'command' },
  })
  const stream = { command: 'import-stream', name: 'a', source: 'a.pcap' }
  assert.deepEqual(await rawAnswer(here, 'recorder.sock', { ...stream, source: '../a.pcap' }), {
    error: {
      code: 'bad-parameter',
      message: 'source must be the name of a file, of 1 to 255 bytes without "/", got "../a.pcap"',
      param: 'source',
    },
  })
  assert.deepEqual(await capturesOf(here.store), [])
  await rawAnswer(here, 'recorder-owner.sock', command)
  assert.deepEqual(await capturesOf(here.store), ['a'])
})

test('a symbolic link is followed by the client, and not by the recorder', async () => {
  await using here = await recorderHere()
  const link = join(here.store, '..', 'link.pcap')
  await symlink(here.file, link)
  assert.deepEqual(
    await rawAnswer(here, 'recorder-owner.sock', { command: 'import', name: 'a', files: [link] }),
    {
      error: {
        code: 'bad-capture-file',
        message: `${link} is a symbolic link; name the file that it points to`,
      },
    },
  )
  const { sources } = await here.client.importCapture({ name: 'a', files: [link] })
  assert.deepEqual(sources, ['a.pcap'])
})

test('a FIFO, a device and a folder are refused by the recorder at once, with their name', async () => {
  await using here = await recorderHere()
  const fifo = join(here.store, '..', 'fifo.pcap')
  assert.equal(spawnSync('mkfifo', [fifo]).status, 0)
  for (const path of [fifo, '/dev/zero', '/dev/tty', here.store]) {
    const answer = await rawAnswer(here, 'recorder-owner.sock', {
      command: 'import',
      name: 'a',
      files: [path],
    })
    const { error } = answer as { error: { code: string; message: string } }
    assert.equal(error.code, 'bad-capture-file', path)
    assert.ok(error.message.includes(path), error.message)
  }
  assert.deepEqual(await capturesOf(here.store), [])
})

test('invalid input on the socket is answered and does no harm', async () => {
  await using here = await recorderHere()
  for (const line of ['', 'hello', '{}', '{"command":"format"}', '{"command":"delete"}', '[]']) {
    using connection = new DisposableStack()
    const socket = createConnection(join(here.store, 'recorder.sock'))
    connection.defer(() => void socket.destroy())
    await once(socket, 'connect')
    socket.write(`${line}\n`)
    for await (const answer of readLines(socket)) {
      assert.equal(JSON.parse(answer).error.code, 'bad-parameter')
    }
  }
  assert.deepEqual(await here.client.info(), { pid: process.pid })
})

test('commands are taken before the capture is open, and those that need it wait', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const client = new RecorderClient(store)
  const opening = Promise.withResolvers<void>()
  await using scripted = await ScriptedDriver.make([BIG_PACKETS], 100_000)
  {
    await using first = await startedRecorder({
      storePath: store,
      log,
      capture: { ...capture, driver: scripted },
    })
    await client.startCapture('x')
    await first.close()
  }
  // A slow disk.
  const driver = Object.assign(Object.create(scripted) as ScriptedDriver, {
    ports: scripted.ports,
    start: async (...[target]: Parameters<ScriptedDriver['start']>) => {
      await opening.promise
      await scripted.start(target)
    },
    counts: () => scripted.counts(),
    takeFinished: () => scripted.takeFinished(),
    stop: () => scripted.stop(),
  })
  const starting = startedRecorder({ storePath: store, log, capture: { ...capture, driver } })
  await eventually(
    async () => {
      const info = await client.info().catch(() => undefined)
      return info?.pid === process.pid
    },
    { limitMs: 30_000, message: 'the recorder answers' },
  )
  assert.equal((await client.captureReport()).state, 'starting')
  const stopping = client.stopCapture(false)
  opening.resolve()
  await using _recorder = await starting
  assert.match((await stopping).name, /^x_/)
  assert.equal((await client.captureReport()).state, 'idle')
})

test('a recorder that is stopped while starting leaves the capture as it was', async () => {
  await using folder = await tempFolder()
  const store = join(folder.path, 'store')
  const client = new RecorderClient(store)
  {
    await using first = await startedRecorder({ storePath: store, log, capture })
    await client.startCapture('x')
    await first.close()
  }
  const reason = new Error('told to end')
  await assert.rejects(startRecorder({ storePath: store, log, capture }, AbortSignal.abort(reason)), reason)
  await using _next = await startedRecorder({ storePath: store, log, capture })
  const { state, name } = await client.captureReport()
  assert.deepEqual([state, name.slice(0, 2)], ['running', 'x_'])
})
