// The four download slots with clients that do not read, leave, time out and wait.
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawnSync } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, beforeEach, test } from 'node:test'
import { slowReader } from '../../support/clients/slow-consumer.ts'
import { eventually } from '../../support/eventually.ts'
import type { OpenAnswer } from '../../support/http-get.ts'
import { type BigCapture, writeBigCapture } from '../../support/packets/big-capture.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { pause } from '../../support/pause.ts'
import {
  startTempAppliance,
  type TempAppliance,
  type TempApplianceOptions,
} from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { WAIT_LIMIT_MS } from '../../support/test-limits.ts'

const SINGLE = '/api/v1/pcap/single?StreamName=big'
/** A client that holds a slot must not be cut off because the machine is busy. */
const PATIENT = { idleTimeoutMs: 600_000, slowAfterMs: 600_000 }
const parts = new AsyncDisposableStack()
let appliance: TempAppliance
let big: BigCapture
let bigPath: string

before(async () => {
  bigPath = join(parts.use(await tempFolder()).path, 'big.pcap')
  big = await writeBigCapture(bigPath)
  appliance = parts.use(await bigAppliance({ config: { downloads: PATIENT } }))
})
after(() => parts.disposeAsync())

/** An appliance with the capture "big". */
async function bigAppliance(options: TempApplianceOptions = {}): Promise<TempAppliance> {
  const made = await startTempAppliance(options)
  await made.importFiles('big', bigPath)
  return made
}

const slotsBecome = (count: number, of = appliance): Promise<void> =>
  eventually(async () => (await of.slotsUsed()) === count, { message: `${count} slots used` })

async function slotsWaiting(): Promise<number> {
  const { body } = await appliance.get('/metrics')
  return Number(/slots_waiting (\d+)/.exec(body.toString())?.[1])
}

/** This many downloads whose clients do not read. */
async function hold(count: number): Promise<DisposableStack> {
  const held = new DisposableStack()
  for (let index = 0; index < count; index++) held.use(await appliance.open(`${SINGLE}&rand=${index}`))
  await slotsBecome(count)
  return held
}

beforeEach(() => slotsBecome(0))

test('the fifth is refused with Retry-After and the readers; a slot is free as soon as its client has gone', async () => {
  const held = await hold(4)
  const fifth = await appliance.get(SINGLE)
  assert.equal(fifth.status, 503)
  assert.equal(fifth.headers['content-type'], 'application/problem+json')
  assert.ok(Number(fifth.headers['retry-after']) > 0)
  const problem = fifth.json()
  assert.equal(problem.code, 'download-slots-exhausted')
  const readers = problem.readers as { what: string; user: string; bytes: string }[]
  assert.equal(readers.length, 4)
  for (const reader of readers) {
    assert.deepEqual([reader.what, reader.user], ['big', 'full'])
    assert.ok(Number(reader.bytes) >= 24)
  }
  held.dispose()
  // Long before the idle time ends.
  await slotsBecome(0)
  assert.equal((await appliance.get(`${SINGLE}&Slice=1`)).status, 200)
})

test('HEAD takes no slot', async () => {
  using _held = await hold(4)
  assert.equal((await appliance.get(SINGLE, { method: 'HEAD' })).status, 200)
})

test('curl --retry gets through when a slot falls free', async () => {
  const held = await hold(4)
  void pause(500, 'curl has been refused once').then(() => held.dispose())
  const child = execFile('curl', [
    '-fsS',
    '--retry',
    '3',
    '-o',
    '/dev/null',
    '-u',
    appliance.credentials('user'),
    `${appliance.url}${SINGLE}`,
  ])
  const [status] = await once(child, 'exit')
  assert.equal(status, 0)
})

test('with Wait the downloads are served in the order of arrival', async () => {
  const holders: OpenAnswer[] = []
  for (let index = 0; index < 4; index++) holders.push(await appliance.open(`${SINGLE}&rand=${index}`))
  const served: number[] = []
  const waiting: Promise<OpenAnswer>[] = []
  for (let number = 0; number < 3; number++) {
    const answer = appliance.open(`${SINGLE}&Wait=600&rand=${number}`)
    waiting.push(answer.finally(() => served.push(number)))
    await eventually(async () => (await slotsWaiting()) === number + 1, { message: 'the request waits' })
  }
  for (const [number, answer] of waiting.entries()) {
    holders[number]?.[Symbol.dispose]()
    holders.push(await answer)
    assert.deepEqual(served, [0, 1, 2].slice(0, number + 1))
    assert.equal(await appliance.slotsUsed(), 4)
  }
  for (const holder of holders) holder[Symbol.dispose]()
})

test('a client that leaves while it waits leaves the queue', async () => {
  using _held = await hold(4)
  const leaving = new AbortController()
  const url = `${appliance.url}${SINGLE}&Wait=600`
  const authorization = `Basic ${Buffer.from(appliance.credentials('user')).toString('base64')}`
  const request = fetch(url, { headers: { authorization }, signal: leaving.signal })
  await eventually(async () => (await slotsWaiting()) === 1, { message: 'it waits' })
  leaving.abort()
  await assert.rejects(request)
  await eventually(async () => (await slotsWaiting()) === 0, { message: 'it is gone' })
})

test('a client that leaves while its filter compiles takes no slot and stops the compiler', async () => {
  // It keeps the compiler busy for as long as it may run.
  const bomb = Array.from({ length: 600 }, (_, i) => `host 10.7.${i >> 8}.${i & 255}`).join(' or ')
  const leaving = new AbortController()
  const authorization = `Basic ${Buffer.from(appliance.credentials('user')).toString('base64')}`
  const url = `${appliance.url}${SINGLE}&FilterBPF=${encodeURIComponent(bomb)}`
  const compiler = nextProgram()
  const refused = assert.rejects(fetch(url, { headers: { authorization }, signal: leaving.signal }))
  const child = await compiler
  assert.ok(child.kill('SIGSTOP'))
  assert.match(child.spawnfile, /capfleet-bpf-compile$/)
  leaving.abort()
  await refused
  const compiles = async (result: string): Promise<number> => {
    const { body } = await appliance.get('/metrics')
    return Number(new RegExp(`filter_compiles_total{result="${result}"} (\\d+)`).exec(body.toString())?.[1])
  }
  await eventually(async () => (await compiles('left')) + (await compiles('late')) > 0, {
    message: 'the compiler has ended',
  })
  assert.equal(child.signalCode, 'SIGKILL')
  assert.equal(await compiles('late'), 0, 'it was not ended by its time limit')
  assert.equal(await appliance.slotsUsed(), 0)
})

test('a client that does not read is cut off after the idle time, with a reset', async () => {
  const idleTimeoutMs = 2_000
  await using impatient = await bigAppliance({ config: { downloads: { idleTimeoutMs } } })
  const startedMs = performance.now()
  const answer = await impatient.open(SINGLE)
  // A partly accepted write counts as progress, so it takes up to two idle times.
  await slotsBecome(0, impatient)
  assert.ok(performance.now() - startedMs > idleTimeoutMs * 0.9)
  await assert.rejects(buffer(answer.response))
})

test('a slow reader that keeps reading is not cut off', async () => {
  const idleTimeoutMs = 5_000
  await using impatient = await bigAppliance({ config: { downloads: { idleTimeoutMs } } })
  // If this process stood still for long, so did the reader: then once more.
  let isLate: boolean
  do {
    isLate = false
    const { response } = await impatient.open(SINGLE)
    const startedMs = performance.now()
    let [bytes, readMs] = [0, startedMs]
    const noteRead = () => {
      const nowMs = performance.now()
      isLate ||= nowMs - readMs > idleTimeoutMs / 2
      readMs = nowMs
    }
    try {
      for await (const chunk of response) {
        noteRead()
        bytes += (chunk as Buffer).length
        if (readMs - startedMs < 2 * idleTimeoutMs) await pause(20, 'a slow reader')
      }
    } catch (error) {
      noteRead()
      if (!isLate) throw error
    }
    if (isLate) continue
    assert.equal(bytes, big.bytes)
    assert.equal(response.trailers['capfleet-complete'], '1')
  } while (isLate)
})

test('an HTTP/1.0 reader holds a slot and gives it back', async () => {
  const { hostname, port } = new URL(appliance.url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const authorization = Buffer.from(appliance.credentials('user')).toString('base64')
  socket.write(`GET ${SINGLE} HTTP/1.0\r\nAuthorization: Basic ${authorization}\r\n\r\n`)
  await slotsBecome(1)
  const answer = await buffer(socket)
  assert.equal(readPcap(answer.subarray(answer.indexOf('\r\n\r\n') + 4)).records.length, big.packets)
})

const random = seededRandom()
/** More than there are slots; at night many more. */
const CLIENTS = process.env.CAPFLEET_LONG === '1' ? 64 : 16
test(`${CLIENTS} clients come and go: never more than four, none left (SEED=${random.seed})`, async () => {
  let most = 0
  let complete = 0
  const client = async (): Promise<void> => {
    for (let round = 0; round < 4; round++) {
      const waitS = random.integer(0, 1) * 5
      const compression = random.pick(['none', 'fast', 'zstd_fast'])
      let answer: OpenAnswer
      try {
        answer = await appliance.open(
          `${SINGLE}&Slice=${random.integer(1, 200)}&Wait=${waitS}&Compression=${compression}`,
        )
      } catch {
        continue
      }
      using _answer = answer
      most = Math.max(most, await appliance.slotsUsed())
      if (answer.response.statusCode === 503) continue
      assert.equal(answer.response.statusCode, 200)
      if (random.next() < 0.6) continue
      await buffer(answer.response)
      assert.equal(answer.response.trailers['capfleet-complete'], '1')
      assert.equal(answer.response.trailers['capfleet-packets'], String(big.packets))
      complete++
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  assert.ok(most <= 4 && most >= 2, `${most} slots were used at once`)
  assert.ok(complete > 0)
  await slotsBecome(0)
})

/** The next program that this process, and thus the appliance, starts. */
function nextProgram(): Promise<ChildProcess> {
  return new Promise((resolve) => {
    const note = (message: unknown): void => {
      unsubscribe('child_process', note)
      const { process: child } = message as { readonly process: ChildProcess }
      // Until then it is only about to be started.
      queueMicrotask(() => resolve(child))
    }
    subscribe('child_process', note)
  })
}

test('deleting by force cuts a running download inside a record, so that tcpdump sees it', async () => {
  await using other = await bigAppliance({ segmentBytes: 1 << 20 })
  using answer = await other.open(SINGLE)
  const inUse = await other.get('/pcap/del?StreamName=big')
  assert.deepEqual([inUse.status, inUse.json().code], [409, 'capture-in-use'])
  assert.equal((await other.get('/pcap/del?StreamName=big&Force=1')).status, 200)
  const parts: Buffer[] = []
  await assert.rejects(async () => {
    for await (const part of answer.response) parts.push(part as Buffer)
  })
  const body = Buffer.concat(parts)
  assert.ok(body.length < big.bytes)
  assert.equal(spawnSync('tcpdump', ['-nr', '-', '-w', '/dev/null'], { input: body }).status, 1)
})

test('close drains: running downloads end, new ones are refused', async () => {
  await using other = await bigAppliance()
  const { response } = await other.open(SINGLE)
  const closed = other.closeAppliance(WAIT_LIMIT_MS)
  assert.equal((await buffer(response)).length, big.bytes)
  assert.equal(response.trailers['capfleet-complete'], '1')
  await closed
})

test('a download that hardly moves is cut when another user waits for its slot', async () => {
  const slowAfterMs = 1_000
  await using impatient = await bigAppliance({ config: { downloads: { ...PATIENT, slowAfterMs } } })
  using held = new DisposableStack()
  const ends: Promise<void>[] = []
  for (let index = 0; index < 4; index++) {
    const answer = await impatient.open(`${SINGLE}&rand=${index}`, { user: impatient.credentials('user') })
    held.use(answer)
    ends.push(slowReader(answer.response, { bytesPerSecond: 100_000 }))
  }
  await slotsBecome(4, impatient)
  await pause(3 * slowAfterMs, 'they are slow for longer than is allowed')
  assert.equal(await impatient.slotsUsed(), 4, 'nobody is cut while nobody waits')
  const answer = await impatient.get(`${SINGLE}&MaxPackets=1&Wait=600`)
  assert.equal(answer.status, 200)
  await assert.rejects(Promise.race(ends), { code: 'ECONNRESET' })
  held.dispose()
  await Promise.allSettled(ends)
  const metrics = (await impatient.get('/metrics')).body.toString()
  assert.match(metrics, /capfleet_store_downloads_total\{kind="single",outcome="too-slow"\} [1-9]/)
})

test('a removed user no longer holds a slot, and their body is cut', async () => {
  const asUser = { user: appliance.credentials('user') }
  const [reading, stalled] = await Promise.all([
    appliance.open(SINGLE, asUser),
    appliance.open(`${SINGLE}&rand=1`, asUser),
  ])
  using _stalled = stalled
  await slotsBecome(2)
  using following = await appliance.open('/api/v1/system/events', asUser)
  await appliance.removeUser('user')
  await slotsBecome(0)
  await assert.rejects(buffer(reading.response))
  await once(following.response.resume(), 'close')
  assert.equal((await appliance.get(SINGLE, asUser)).status, 401)
  assert.equal((await appliance.get('/stream/list')).status, 200)
})
