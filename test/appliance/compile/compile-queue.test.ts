import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CompileOutcome } from '../../../appliance/compile/compile-process.ts'
import { CompileQueue } from '../../../appliance/compile/compile-queue.ts'
import type { LabelledCaller } from '../../../appliance/request/labelled-caller.ts'

const never = new AbortController().signal
const SETTINGS = { compilers: 3, waitingMax: 64, waitMs: 60_000, limitMs: 1_200_000 }

/** A queue whose helpers end when the test says so. */
class QueueStage {
  readonly queue: CompileQueue
  /** Texts whose helpers are running, in the order in which they were started. */
  readonly running: string[] = []
  /** All texts whose helpers were ever started. */
  readonly started: string[] = []
  readonly #ends = new Map<string, PromiseWithResolvers<CompileOutcome>>()

  constructor(settings: Partial<typeof SETTINGS> = {}) {
    this.queue = new CompileQueue({ ...SETTINGS, ...settings }, async (_helper, input, { signal }) => {
      const text = input.toString()
      const end = Promise.withResolvers<CompileOutcome>()
      this.#ends.set(text, end)
      this.running.push(text)
      this.started.push(text)
      signal.addEventListener('abort', () => end.reject(signal.reason), { once: true })
      try {
        return await end.promise
      } finally {
        this.running.splice(this.running.indexOf(text), 1)
      }
    })
  }

  ask(caller: LabelledCaller, text: string, signal: AbortSignal = never): Promise<CompileOutcome> {
    const helper = { path: '/a/helper', cpuLimitMs: 1 }
    return this.queue.compile({ helper, input: Buffer.from(text) }, { caller, signal })
  }

  /** Like ask(), for results that the test does not check. */
  wants(caller: LabelledCaller, text: string): void {
    this.ask(caller, text).catch(() => undefined)
  }

  async end(text: string, outcome: CompileOutcome | Error = { output: Buffer.from(text) }): Promise<void> {
    const end = this.#ends.get(text)
    assert.ok(end, `${text} was never started`)
    if (outcome instanceof Error) end.reject(outcome)
    else end.resolve(outcome)
    while (this.running.includes(text)) await new Promise(setImmediate)
    await new Promise(setImmediate)
  }
}

const ann: LabelledCaller = { user: 'ann', id: 'ann' }
const bob: LabelledCaller = { user: 'bob', id: 'bob' }
/** A caller behind a gateway. */
const behind = (name: string): LabelledCaller => ({ user: 'gateway', id: `gateway/${name}` })

test('one caller has one helper, however many there are', () => {
  const stage = new QueueStage()
  for (const text of ['a', 'b', 'c']) stage.wants(ann, text)
  assert.deepEqual(stage.running, ['a'])
  assert.equal(stage.queue.waiting, 2)
})

test('a user with many callers leaves one helper to other users', () => {
  const stage = new QueueStage()
  for (const name of ['1', '2', '3', '4']) stage.wants(behind(name), name)
  assert.deepEqual(stage.running, ['1', '2'])
  stage.wants(bob, 'bob')
  assert.deepEqual(stage.running, ['1', '2', 'bob'])
})

test('a user alone with the only helper has it', () => {
  const stage = new QueueStage({ compilers: 1 })
  stage.wants(ann, 'a')
  stage.wants(ann, 'b')
  assert.deepEqual(stage.running, ['a'])
})

test('the caller served longest ago is next, not the first in line', async () => {
  const stage = new QueueStage({ compilers: 1 })
  for (const text of ['a1', 'a2', 'a3']) stage.wants(ann, text)
  for (const text of ['b1', 'b2']) stage.wants(bob, text)
  for (const text of ['a1', 'b1', 'a2', 'b2', 'a3']) await stage.end(text)
  assert.deepEqual(stage.started, ['a1', 'b1', 'a2', 'b2', 'a3'])
})

test('labels that a user makes up bring no more turns than those of a user', async () => {
  const stage = new QueueStage({ compilers: 1 })
  for (const name of ['1', '2', '3', '4']) stage.wants(behind(name), name)
  for (const text of ['b1', 'b2']) stage.wants(bob, text)
  for (const text of ['1', 'b1', '2', 'b2', '3', '4']) await stage.end(text)
  assert.deepEqual(stage.started, ['1', 'b1', '2', 'b2', '3', '4'])
})

test('callers of one user take turns', async () => {
  const stage = new QueueStage({ compilers: 1 })
  for (const text of ['x1', 'x2', 'x3']) stage.wants(behind('x'), text)
  for (const text of ['y1', 'y2']) stage.wants(behind('y'), text)
  for (const text of ['x1', 'y1', 'x2', 'y2', 'x3']) await stage.end(text)
  assert.deepEqual(stage.started, ['x1', 'y1', 'x2', 'y2', 'x3'])
})

test('an equal text that is being compiled is joined, and its outcome remembered', async () => {
  const stage = new QueueStage()
  const asked = [stage.ask(ann, 'a'), stage.ask(ann, 'a'), stage.ask(bob, 'a')]
  assert.deepEqual(stage.running, ['a'])
  await stage.end('a', { problem: 'a mistake' })
  for (const outcome of await Promise.all(asked)) assert.deepEqual(outcome, { problem: 'a mistake' })
  assert.deepEqual(await stage.ask(bob, 'a'), { problem: 'a mistake' })
  assert.deepEqual(stage.started, ['a'])
})

test('an equal text that waits is compiled with the first that has its turn', async () => {
  const stage = new QueueStage({ compilers: 1 })
  stage.wants(ann, 'slow')
  const asked = [stage.ask(ann, 'equal'), stage.ask(bob, 'equal')]
  await stage.end('slow')
  await stage.end('equal')
  await Promise.all(asked)
  assert.deepEqual(stage.started, ['slow', 'equal'])
})

test('a caller that leaves does not end what another waits for; the last one does', async () => {
  const stage = new QueueStage()
  const [first, second] = [new AbortController(), new AbortController()]
  const asked = [stage.ask(ann, 'a', first.signal), stage.ask(bob, 'a', second.signal)]
  first.abort(new Error('ann has gone'))
  await assert.rejects(asked[0] ?? Promise.resolve(), /ann has gone/)
  assert.deepEqual(stage.running, ['a'])
  second.abort(new Error('bob has gone'))
  await assert.rejects(asked[1] ?? Promise.resolve(), /bob has gone/)
  await new Promise(setImmediate)
  assert.deepEqual(stage.running, [])
  stage.wants(ann, 'a')
  assert.deepEqual(stage.running, ['a'], 'nothing is remembered of it')
})

test('a caller that leaves while waiting is never served', async () => {
  const stage = new QueueStage()
  const client = new AbortController()
  stage.wants(ann, 'a')
  const waiting = stage.ask(ann, 'b', client.signal)
  client.abort(new Error('gone'))
  await assert.rejects(waiting, /gone/)
  await stage.end('a')
  assert.deepEqual(stage.started, ['a'])
})

test('a helper that was killed is nothing to remember', async () => {
  const stage = new QueueStage()
  const killed = assert.rejects(stage.ask(ann, 'a'), /killed/)
  await stage.end('a', new Error('killed'))
  await killed
  const again = stage.ask(ann, 'a')
  await stage.end('a')
  assert.deepEqual(await again, { output: Buffer.from('a') })
})

test('a caller fills an eighth of the queue, a user half, and together at most all of it', async () => {
  const stage = new QueueStage({ waitingMax: 16 })
  const busy = { code: 'compiler-busy', message: /too many filters are already waiting/ }
  for (let i = 0; i < 3; i++) stage.wants(ann, `a${i}`)
  assert.equal(stage.queue.waiting, 2)
  await assert.rejects(stage.ask(ann, 'one too many'), busy)
  for (let i = 0; i < 10; i++) stage.wants(behind(String(i)), `g${i}`)
  assert.equal(stage.queue.waiting, 2 + 8)
  await assert.rejects(stage.ask(behind('10'), 'one too many'), busy)
  for (let i = 0; i < 6; i++) stage.wants({ user: `u${i}`, id: `u${i}` }, `u${i}`)
  assert.equal(stage.queue.waiting, 16)
  await assert.rejects(stage.ask(bob, 'one too many'), busy)
  assert.equal(stage.queue.counts.busy, 3)
})

test('a caller that waits too long is answered, with when to try again', async () => {
  const stage = new QueueStage({ waitMs: 20 })
  stage.wants(ann, 'slow')
  await assert.rejects(stage.ask(ann, 'other'), {
    code: 'compiler-busy',
    message: /no compiler became free within 0.02 s/,
    details: { retryAfterS: 1 },
  })
  assert.equal(stage.queue.waiting, 0)
  assert.deepEqual(stage.running, ['slow'], 'what is being compiled has limits of its own')
})

test('counts what became of everything', async () => {
  const stage = new QueueStage()
  const client = new AbortController()
  const asked = ['good', 'bad', 'killed', 'left'].map((text) =>
    stage.ask(ann, text, text === 'left' ? client.signal : never).catch(() => undefined),
  )
  await stage.end('good')
  await stage.end('bad', { problem: 'a mistake' })
  await stage.end('killed', new Error('killed'))
  client.abort(new Error('gone'))
  await Promise.all(asked)
  await new Promise(setImmediate)
  assert.deepEqual(stage.queue.counts, { compiled: 1, refused: 1, late: 1, busy: 0, left: 1 })
})
