import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type FinishedSegment,
  type FinishedSegments,
  type RemovableCapture,
  type Removal,
  RemovalQueue,
} from '../../../../appliance/recorder/retention/removal-queue.ts'
import { type SeededRandom, seededRandom } from '../../../support/seeded-random.ts'

const CREATED_NS = 1_000_000n
const SEGMENT_BYTES = 10n

/** The finished segments of a port, without those that have been removed. */
class Port implements FinishedSegments<FinishedSegment> {
  readonly port: number
  readonly segments: FinishedSegment[] = []
  #last = 0

  constructor(port: number) {
    this.port = port
  }

  get newest(): number {
    return this.#last
  }

  after(number: number): FinishedSegment | undefined {
    return this.segments.find((segment) => segment.number > number)
  }

  finish(maxNs: bigint): void {
    this.#last += 1
    this.segments.push({ number: this.#last, maxNs })
  }
}

class Capture implements RemovableCapture<FinishedSegment> {
  readonly name: string
  readonly createdNs: bigint
  readonly isImport: boolean
  isActive: boolean
  readonly ports: Port[]

  constructor(name: string, options: Partial<Pick<Capture, 'createdNs' | 'isImport' | 'isActive'>> = {}) {
    this.name = name
    this.createdNs = options.createdNs ?? CREATED_NS
    this.isImport = options.isImport ?? false
    this.isActive = options.isActive ?? false
    this.ports = []
  }

  get heldBytes(): bigint {
    return BigInt(this.ports.reduce((sum, { segments }) => sum + segments.length, 0)) * SEGMENT_BYTES
  }

  /** `ends` are the largest timestamps of its segments, relative to its creation. */
  withPort(port: number, ends: readonly bigint[]): this {
    const added = new Port(port)
    for (const end of ends) added.finish(this.createdNs + end)
    this.ports.push(added)
    return this
  }

  remove({ port, segment }: Removal<FinishedSegment>): void {
    const { segments } = this.ports.find((one) => one.port === port) as Port
    const [oldest] = segments.splice(0, 1)
    assert.equal(oldest?.number, segment.number, 'a port loses its segments in the order of their numbers')
  }
}

const queueOf = (...captures: readonly Capture[]): RemovalQueue<FinishedSegment> => {
  const queue = new RemovalQueue<FinishedSegment>()
  for (const capture of captures) queue.update(capture)
  return queue
}

const nameOf = ({ name, port, segment }: Removal<FinishedSegment>): string =>
  `${name} ${port}.${segment.number}`

function drained(queue: RemovalQueue<FinishedSegment>): string[] {
  const names: string[] = []
  for (let next = queue.take(); next !== undefined; next = queue.take()) names.push(nameOf(next))
  return names
}

test('the capture that was created first goes first, whatever its name and its packets', () => {
  const younger = new Capture('a', { createdNs: CREATED_NS + 5n }).withPort(0, [1n])
  const older = new Capture('b').withPort(0, [9n, 10n])
  assert.deepEqual(drained(queueOf(younger, older)), ['b 0.1', 'b 0.2', 'a 0.1'])
})

test('of several ports the segment goes first that ended first, and of two that ended together the lower port', () => {
  const capture = new Capture('a').withPort(0, [1n, 4n, 9n]).withPort(1, [4n, 6n])
  assert.deepEqual(drained(queueOf(capture)), ['a 0.1', 'a 0.2', 'a 1.1', 'a 1.2', 'a 0.3'])
})

test('a port loses its segments in their order, also where the clock went back', () => {
  const capture = new Capture('a').withPort(0, [50n, 2n, 60n]).withPort(1, [20n, 55n])
  assert.deepEqual(drained(queueOf(capture)), ['a 1.1', 'a 0.1', 'a 0.2', 'a 1.2', 'a 0.3'])
})

test('the last finished segment of a port stays while the capture is being recorded', () => {
  const capture = new Capture('a', { isActive: true }).withPort(0, [1n, 4n]).withPort(1, [2n]).withPort(2, [])
  const queue = queueOf(capture)
  assert.deepEqual(drained(queue), ['a 0.1'])
  capture.isActive = false
  queue.update(capture)
  assert.deepEqual(drained(queue), ['a 1.1', 'a 0.2'])
})

test('an imported packet is as old as its import', () => {
  const queue = queueOf(new Capture('a', { isImport: true }).withPort(0, [-1_000n]))
  assert.equal(queue.peek()?.storedNs, CREATED_NS)
})

test('the oldest segment of all is found after younger ones of an older capture', () => {
  const long = new Capture('a').withPort(0, [500n, 600n])
  const short = new Capture('b', { createdNs: CREATED_NS + 1n }).withPort(0, [100n])
  const queue = queueOf(long, short)
  assert.equal(nameOf(queue.peek() as Removal<FinishedSegment>), 'a 0.1')
  assert.equal(nameOf(queue.take('storing') as Removal<FinishedSegment>), 'b 0.1')
  assert.deepEqual(drained(queue), ['a 0.1', 'a 0.2'])
})

test('a capture that is set aside delays no other, and returns with what was taken and not removed', () => {
  const first = new Capture('a').withPort(0, [1n, 2n])
  const second = new Capture('b', { createdNs: CREATED_NS + 5n }).withPort(0, [1n])
  const queue = queueOf(first, second)
  queue.take()
  queue.setAside('a')
  queue.forgetTaken('a')
  queue.update(first)
  assert.deepEqual(drained(queue), ['b 0.1'])
  queue.returnAll()
  assert.deepEqual(drained(queue), ['a 0.1', 'a 0.2'])
})

const random = seededRandom()
test(`after any changes the order is that of all segments sorted (SEED=${random.seed})`, () => {
  for (let round = 0; round < 100; round++) {
    const captures = new Map<string, Capture>()
    const queue = new RemovalQueue<FinishedSegment>()
    for (let step = 0; step < 60; step++) {
      changeOne({ captures, queue, random })
      const order = sorted([...captures.values()])
      assert.equal(queue.peek() && nameOf(queue.peek() as Removal<FinishedSegment>), order[0]?.name)
      assert.equal(queue.peek('storing')?.storedNs, oldestOf(order))
      const held = [...captures.values()].reduce((sum, { heldBytes }) => sum + heldBytes, 0n)
      assert.equal(queue.heldBytes, held)
    }
    assert.deepEqual(
      drained(queue),
      sorted([...captures.values()]).map(({ name }) => name),
    )
  }
})

interface Change {
  readonly captures: Map<string, Capture>
  readonly queue: RemovalQueue<FinishedSegment>
  readonly random: SeededRandom
}

function changeOne({ captures, queue, random }: Change): void {
  const all = [...captures.values()]
  const kind = all.length === 0 ? 0 : random.integer(0, 9)
  if (kind === 0) {
    const ports = Array.from({ length: random.integer(1, 4) }, (_, port) => port)
    const capture = new Capture(`c${random.integer(0, 999)}`, {
      createdNs: CREATED_NS + BigInt(random.integer(0, 20)),
      isImport: random.next() < 0.2,
      isActive: random.next() < 0.5,
    })
    for (const port of ports) capture.withPort(port, randomEnds(random))
    if (captures.has(capture.name)) return
    captures.set(capture.name, capture)
    queue.update(capture)
    return
  }
  const capture = random.pick(all)
  if (kind === 1) {
    captures.delete(capture.name)
    queue.delete(capture.name)
  } else if (kind === 2) {
    capture.isActive = false
    queue.update(capture)
  } else if (kind <= 6) {
    random.pick(capture.ports).finish(CREATED_NS + BigInt(random.integer(-5, 60)))
    queue.update(capture)
  } else {
    const removal = random.next() < 0.5 ? queue.take() : queue.take('storing')
    if (removal === undefined) return
    const changed = captures.get(removal.name) as Capture
    changed.remove(removal)
    queue.update(changed)
  }
}

function randomEnds(random: SeededRandom): bigint[] {
  return Array.from({ length: random.integer(0, 6) }, () => BigInt(random.integer(-5, 60)))
}

interface Sorted {
  readonly name: string
  readonly capture: string
  readonly storedNs: bigint
}

/** Every removable segment, with the latest time up to it in its port, sorted. */
function sorted(captures: readonly Capture[]): Sorted[] {
  const all = captures.flatMap((capture) =>
    capture.ports.flatMap(({ port, segments, newest }) => {
      let latestNs = capture.createdNs
      return segments
        .filter(({ number }) => !capture.isActive || number !== newest)
        .map(({ number, maxNs }) => {
          if (!capture.isImport && maxNs > latestNs) latestNs = maxNs
          return { capture, port, number, storedNs: latestNs }
        })
    }),
  )
  const by = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)
  return all
    .sort(
      (a, b) =>
        by(a.capture.createdNs, b.capture.createdNs) ||
        a.capture.name.localeCompare(b.capture.name) ||
        by(a.storedNs, b.storedNs) ||
        a.port - b.port ||
        a.number - b.number,
    )
    .map(({ capture, port, number, storedNs }) => ({
      name: `${capture.name} ${port}.${number}`,
      capture: capture.name,
      storedNs,
    }))
}

/** When the oldest of the captures' next segments was stored. */
function oldestOf(order: readonly Sorted[]): bigint | undefined {
  const heads = new Map<string, bigint>()
  for (const { capture, storedNs } of order) if (!heads.has(capture)) heads.set(capture, storedNs)
  return [...heads.values()].reduce<bigint | undefined>(
    (oldest, ns) => (oldest === undefined || ns < oldest ? ns : oldest),
    undefined,
  )
}
