// What may be removed because of its age, whatever happens to the clock: while the recorder runs, at its start, and
// between restarts.
import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { RecorderClock } from '../../../../appliance/recorder/clock/recorder-clock.ts'
import { type StorePaths, storePaths } from '../../../../appliance/store/store-paths.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const SECOND = 1_000_000_000n
const MINUTE = 60n * SECOND
const HOUR = 60n * MINUTE
const DAY = 24n * HOUR
const YEAR = 365n * DAY
const NOW = 1_700_000_000n * SECOND
const JUMPS = { '1 h': HOUR, '2 d': 2n * DAY, '10 y': 10n * YEAR } as const
const signed = Object.entries(JUMPS).flatMap(
  ([name, ns]) =>
    [
      [`+${name}`, ns],
      [`-${name}`, -ns],
    ] as const,
)
/** Less than each jump. */
const MAX_AGE_MS = 1_800_000
const MAX_AGE = BigInt(MAX_AGE_MS) * 1_000_000n

/** A machine, whose clock the test sets, with a store. */
class Machine implements AsyncDisposable {
  bootId = 'boot-1'
  monotonic = 1_000n * SECOND
  wall = NOW
  isSynced = false
  newestNs: bigint | undefined
  /** The recorder has read its store as soon as it starts. */
  isLearned = true
  readonly events: string[] = []
  readonly #paths: StorePaths
  readonly #folder: AsyncDisposable
  #clock: RecorderClock | undefined

  private constructor(folder: AsyncDisposable, paths: StorePaths) {
    this.#folder = folder
    this.#paths = paths
  }

  static async start(newestNs?: bigint): Promise<Machine> {
    const folder = await tempFolder()
    const paths = storePaths(`${folder.path}/store`)
    await mkdir(paths.root)
    const machine = new Machine(folder, paths)
    machine.newestNs = newestNs
    await machine.startRecorder()
    return machine
  }

  get clock(): RecorderClock {
    assert.ok(this.#clock)
    return this.#clock
  }

  async startRecorder(): Promise<void> {
    this.#clock = await RecorderClock.open({
      clocks: { realtimeNs: () => this.wall, monotonicNs: () => this.monotonic },
      bootId: this.bootId,
      isSynced: () => this.isSynced,
      paths: this.#paths,
      events: {
        append: (kind, { reason, by }) => void this.events.push(`${kind} ${String(reason ?? by)}`),
      },
      log: createLog('test', 'silent'),
    })
    if (this.isLearned) this.#clock.learn(this.newestNs)
  }

  async stopRecorder(): Promise<void> {
    await this.#clock?.[Symbol.asyncDispose]()
    this.#clock = undefined
  }

  /** The recorder stops, and the machine starts again after `ns`; then the clock shows `wall`. */
  async reboot(ns: bigint, wall = this.wall + ns): Promise<void> {
    await this.stopRecorder()
    this.bootId = 'boot-2'
    this.monotonic = 10n * SECOND
    this.wall = wall
    await this.startRecorder()
  }

  pass(ns: bigint): void {
    const steps = 20n
    for (let i = 0n; i < steps; i += 1n) {
      this.monotonic += ns / steps
      this.wall += ns / steps
      this.clock.check()
    }
  }

  step(ns: bigint): void {
    this.wall += ns
  }

  isAged(storedNs: bigint): boolean {
    return this.clock.isAged(storedNs, MAX_AGE_MS)
  }

  async forgetClock(): Promise<void> {
    await rm(this.#paths.clock, { force: true })
  }

  async spoilClock(): Promise<void> {
    await writeFile(this.#paths.clock, '{')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopRecorder()
    await this.#folder[Symbol.asyncDispose]()
  }
}

test('a clock that runs lets packets age, by the millisecond', async () => {
  await using machine = await Machine.start()
  const storedNs = machine.wall
  machine.pass(MAX_AGE)
  assert.equal(machine.isAged(storedNs), false)
  machine.pass(1_000_000n)
  assert.equal(machine.isAged(storedNs), true)
  assert.deepEqual(machine.events, [])
})

describe('a clock that steps while the recorder runs', () => {
  for (const [name, jump] of signed)
    test(`makes nothing old by ${name}, and is trusted again when it is back`, async () => {
      await using machine = await Machine.start()
      machine.pass(10n * MINUTE)
      const before = machine.wall
      machine.step(jump)
      assert.equal(machine.isAged(before), false, 'at the next look')
      machine.pass(30n * SECOND)
      const meanwhile = machine.wall
      assert.deepEqual([machine.isAged(before), machine.clock.hold], [false, 'clock-stepped'])
      machine.pass(HOUR)
      assert.equal(machine.isAged(before), false, 'it is old by now, and the clock is wrong still')
      machine.step(-jump)
      assert.equal(machine.isAged(machine.wall), false)
      assert.deepEqual(machine.events, ['clock-distrusted clock-stepped', 'clock-trusted returned'])
      // The late clock has stamped packets with that time again, so those are younger.
      assert.equal(machine.isAged(before), jump !== -HOUR, 'an hour has passed')
      if (jump < 0n) assert.equal(machine.isAged(meanwhile), true, 'it ages as if its clock had been right')
    })

  for (const [name, jump] of signed)
    test(`makes nothing old that was stored while it was wrong by ${name}`, async () => {
      await using machine = await Machine.start()
      machine.pass(10n * MINUTE)
      machine.step(jump)
      machine.pass(10n * SECOND)
      const stamps = [machine.wall]
      machine.pass(20n * SECOND)
      stamps.push(machine.wall)
      machine.step(-jump)
      machine.pass(MINUTE)
      assert.equal(machine.clock.hold, '')
      assert.deepEqual(
        stamps.map((ns) => machine.isAged(ns)),
        [false, false],
      )
    })

  test('is trusted where it is by what NTP or an operator says, and nothing that was stored is older for it', async () => {
    for (const [, jump] of signed) {
      for (const by of ['synchronised', 'operator']) {
        await using machine = await Machine.start()
        machine.pass(10n * MINUTE)
        const before = machine.wall
        machine.step(jump)
        if (by === 'operator') machine.clock.confirm()
        machine.isSynced = by === 'synchronised'
        machine.pass(2n * MINUTE)
        assert.deepEqual(machine.events, ['clock-distrusted clock-stepped', `clock-trusted ${by}`])
        const after = machine.wall
        machine.pass(MAX_AGE - 3n * MINUTE)
        assert.deepEqual([machine.isAged(before), machine.isAged(after)], [false, false], `${by} ${jump}`)
        machine.pass(5n * MINUTE)
        assert.equal(machine.isAged(after), true)
        if (jump > 0n) assert.equal(machine.isAged(before), true)
      }
    }
  })

  test('to and fro, each time confirmed, neither ages what is stored nor makes it immortal', async () => {
    await using machine = await Machine.start()
    const before = machine.wall
    for (const jump of [2n * DAY, DAY, -3n * DAY, HOUR, -HOUR]) {
      machine.step(jump)
      machine.clock.confirm()
      machine.pass(MINUTE)
      assert.equal(machine.isAged(before), false, String(jump))
    }
    machine.pass(MAX_AGE)
    assert.equal(machine.isAged(before), true)
  })

  test('by less than a minute stays trusted', async () => {
    await using machine = await Machine.start()
    machine.step(50n * SECOND)
    machine.pass(MINUTE)
    assert.deepEqual([machine.clock.hold, machine.events], ['', []])
  })
})

describe('a clock that stepped while no recorder ran', () => {
  for (const [name, jump] of signed)
    test(`in the same boot, by ${name}, is noticed, and so is its return`, async () => {
      await using machine = await Machine.start()
      const before = machine.wall
      await machine.stopRecorder()
      machine.monotonic += MINUTE
      machine.wall += MINUTE + jump
      await machine.startRecorder()
      assert.deepEqual([machine.clock.hold, machine.isAged(before)], ['clock-stepped', false])
      await machine.stopRecorder()
      machine.step(-jump)
      await machine.startRecorder()
      assert.deepEqual([machine.clock.hold, machine.isAged(before)], ['', false])
    })

  test('in the same boot, over a downtime of days, is known not to have stepped', async () => {
    await using machine = await Machine.start()
    const before = machine.wall
    await machine.stopRecorder()
    machine.monotonic += 3n * DAY
    machine.wall += 3n * DAY
    await machine.startRecorder()
    assert.deepEqual([machine.clock.hold, machine.isAged(before)], ['', true])
  })

  test('in another boot is trusted as far as a restart takes', async () => {
    await using machine = await Machine.start()
    machine.pass(HOUR)
    await machine.reboot(5n * MINUTE)
    assert.equal(machine.clock.hold, '')
  })

  for (const [name, jump] of signed)
    test(`in another boot, by ${name}, waits for who knows better`, async () => {
      await using machine = await Machine.start()
      machine.pass(HOUR)
      const before = machine.wall
      await machine.reboot(MINUTE, machine.wall + MINUTE + jump)
      assert.deepEqual([machine.clock.hold, machine.isAged(before)], ['clock-unconfirmed', false])
      machine.pass(MINUTE)
      const meanwhile = machine.wall
      machine.step(-jump)
      machine.pass(MINUTE)
      assert.deepEqual(
        [machine.clock.hold, machine.isAged(before), machine.isAged(meanwhile)],
        ['', false, false],
      )
    })

  test('a machine that starts in 2000, and is set by NTP, keeps what it has recorded by then', async () => {
    await using machine = await Machine.start()
    const old = machine.wall - DAY
    machine.pass(HOUR)
    await machine.reboot(3n * DAY, 946_684_800n * SECOND)
    machine.pass(10n * MINUTE)
    const early = machine.wall
    machine.wall = NOW + 4n * DAY
    machine.isSynced = true
    machine.pass(2n * MINUTE)
    assert.deepEqual(machine.events.slice(-1), ['clock-trusted synchronised'])
    assert.deepEqual([machine.isAged(old), machine.isAged(early)], [true, false])
    machine.pass(MAX_AGE)
    assert.equal(machine.isAged(early), true)
  })
})

describe('without a record of the clock', () => {
  test('an empty store trusts the clock', async () => {
    await using machine = await Machine.start()
    assert.equal(machine.clock.hold, '')
  })

  test('a store that was written a minute ago trusts it too', async () => {
    await using machine = await Machine.start(NOW - MINUTE)
    assert.equal(machine.clock.hold, '')
  })

  test('an older store, or one from the future, waits; an operator ends it', async () => {
    for (const newestNs of [NOW - DAY, NOW + DAY]) {
      await using machine = await Machine.start(newestNs)
      assert.deepEqual([machine.clock.hold, machine.isAged(0n)], ['clock-unconfirmed', false])
      machine.clock.confirm()
      assert.deepEqual([machine.clock.hold, machine.isAged(0n)], ['', true])
    }
  })

  test('that can be read it is as without one', async () => {
    await using machine = await Machine.start()
    machine.newestNs = NOW - DAY
    await machine.stopRecorder()
    await machine.spoilClock()
    await machine.startRecorder()
    assert.equal(machine.clock.hold, 'clock-unconfirmed')
    await machine.stopRecorder()
    await machine.forgetClock()
    await machine.startRecorder()
    assert.equal(machine.clock.hold, 'clock-unconfirmed')
  })
})

describe('while the recorder still reads a store without a record of the clock', () => {
  async function unlearned(): Promise<Machine> {
    const machine = await Machine.start()
    await machine.stopRecorder()
    await machine.forgetClock()
    machine.isLearned = false
    await machine.startRecorder()
    return machine
  }

  test('nothing is old, also after a step', async () => {
    await using machine = await unlearned()
    assert.deepEqual([machine.clock.hold, machine.isAged(0n)], ['clock-unconfirmed', false])
    machine.pass(10n * SECOND)
    machine.step(2n * DAY)
    machine.pass(10n * SECOND)
    assert.deepEqual(
      [machine.clock.hold, machine.isAged(0n), machine.events],
      ['clock-unconfirmed', false, []],
    )
    machine.clock.learn(NOW - MINUTE)
    assert.deepEqual([machine.clock.hold, machine.isAged(0n)], ['clock-stepped', false])
    assert.deepEqual(machine.events, ['clock-distrusted clock-stepped'])
  })

  test('the store decides once it is read', async () => {
    for (const [newestNs, hold] of [
      [undefined, ''],
      [NOW - MINUTE, ''],
      [NOW - DAY, 'clock-unconfirmed'],
      [NOW + DAY, 'clock-unconfirmed'],
    ] as const) {
      await using machine = await unlearned()
      machine.pass(20n * MINUTE)
      machine.clock.learn(newestNs)
      assert.deepEqual([machine.clock.hold, machine.isAged(0n)], [hold, hold === ''], String(newestNs))
    }
  })

  test('an operator decides before', async () => {
    await using machine = await unlearned()
    machine.clock.confirm()
    assert.deepEqual([machine.clock.hold, machine.isAged(0n)], ['', true])
    machine.clock.learn(NOW - DAY)
    assert.equal(machine.clock.hold, '', 'what is read later changes nothing')
  })

  test('a store that cannot be read leaves it to NTP', async () => {
    await using machine = await unlearned()
    machine.clock.learn(0n)
    machine.pass(2n * MINUTE)
    assert.deepEqual([machine.clock.hold, machine.isAged(0n)], ['clock-unconfirmed', false])
    machine.isSynced = true
    machine.pass(2n * MINUTE)
    assert.deepEqual([machine.clock.hold, machine.isAged(0n)], ['', true])
  })

  for (const [name, scene] of Object.entries({
    'set to 1970 for 20 s and set back': (machine: Machine) => {
      const wall = machine.wall
      machine.wall = 0n
      machine.pass(20n * SECOND)
      const stamps = [machine.wall - 10n * SECOND]
      machine.wall = wall + 20n * SECOND
      machine.pass(20n * SECOND)
      return stamps
    },
    'set by NTP after it was in 1970': (machine: Machine) => {
      machine.wall = 0n
      machine.pass(90n * SECOND)
      const stamps = [machine.wall - 10n * SECOND]
      machine.wall = NOW + 90n * SECOND
      machine.isSynced = true
      machine.pass(2n * MINUTE)
      return stamps
    },
    'wrong twice, then right': (machine: Machine) => {
      const stamps: bigint[] = []
      for (const wrong of [10n * YEAR, 20n * YEAR]) {
        machine.wall = wrong
        machine.pass(20n * SECOND)
        stamps.push(machine.wall - 10n * SECOND)
      }
      machine.wall = NOW + 40n * SECOND
      machine.pass(20n * SECOND)
      return stamps
    },
  })) {
    for (const by of ['learned', 'confirmed'] as const)
      test(`a clock that is ${name} makes nothing old that came meanwhile, once it is ${by}`, async () => {
        await using machine = await unlearned()
        const stamps = scene(machine)
        if (by === 'learned') machine.clock.learn(NOW - MINUTE)
        else machine.clock.confirm()
        machine.pass(2n * MINUTE)
        if (by === 'confirmed') assert.equal(machine.clock.hold, '')
        assert.deepEqual(
          stamps.map((ns) => machine.isAged(ns)),
          stamps.map(() => false),
        )
        machine.clock.confirm()
        assert.deepEqual(
          stamps.map((ns) => machine.isAged(ns)),
          stamps.map(() => false),
          'nor when an operator confirms it',
        )
        machine.pass(MAX_AGE + MINUTE)
        assert.deepEqual(
          stamps.map((ns) => machine.isAged(ns)),
          stamps.map(() => true),
          'it ages from then on',
        )
      })
  }

  test('what came at a wrong time is known to the next recorder, too', async () => {
    await using machine = await unlearned()
    machine.wall = 0n
    machine.pass(20n * SECOND)
    const stamp = machine.wall - 10n * SECOND
    machine.wall = NOW + 20n * SECOND
    machine.pass(20n * SECOND)
    await machine.stopRecorder()
    await machine.startRecorder()
    machine.clock.confirm()
    assert.deepEqual([machine.clock.hold, machine.isAged(stamp)], ['', false])
  })

  test('its end leaves the next recorder to decide', async () => {
    await using machine = await unlearned()
    await machine.stopRecorder()
    machine.isLearned = true
    machine.newestNs = NOW - DAY
    await machine.startRecorder()
    assert.equal(machine.clock.hold, 'clock-unconfirmed')
  })
})

describe('the time of schedules', () => {
  for (const [name, jump] of signed)
    test(`stays where it was for ten minutes after a step of ${name}`, async () => {
      await using machine = await Machine.start()
      machine.step(jump)
      machine.pass(9n * MINUTE)
      assert.equal(machine.clock.scheduleNs(), NOW + 9n * MINUTE)
      machine.pass(2n * MINUTE)
      assert.equal(machine.clock.scheduleNs(), machine.wall)
      assert.equal(machine.clock.hold, 'clock-stepped', 'nothing is removed for that')
      machine.step(-jump)
      assert.equal(machine.clock.scheduleNs(), machine.wall, 'and it is back at once')
    })

  test('follows what is less than a minute, and what is confirmed, at once', async () => {
    await using machine = await Machine.start()
    machine.step(30n * SECOND)
    assert.equal(machine.clock.scheduleNs(), machine.wall)
    machine.step(HOUR)
    machine.clock.check()
    machine.clock.confirm()
    assert.equal(machine.clock.scheduleNs(), machine.wall)
  })

  test('is that of the clock in another boot', async () => {
    await using machine = await Machine.start()
    await machine.reboot(DAY)
    assert.equal(machine.clock.scheduleNs(), machine.wall)
  })
})
