/**
 * Every attack of the asymmetry harness once, short, against real programs: other users are served, and the program
 * survives, comes to rest afterwards, and keeps no more memory than allowed. Only what cannot flake is asserted here;
 * `npm run asymmetry` has the figures and the time limits.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { AttackMeter, type Quiet } from '../../asymmetry/attack-meter.ts'
import { resultLine } from '../../asymmetry/attack-report.ts'
import { AttackRun, SMALL_FORM } from '../../asymmetry/attack-run.ts'
import { ATTACKS } from '../../asymmetry/attacks.ts'
import { basic, type Stand } from '../../asymmetry/stand.ts'
import { failuresOf, judge, LIMITS } from '../../asymmetry/verdict.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'

describe('others are served, and the program lives and rests again, after', () => {
  let run: AttackRun
  before(async () => {
    run = await AttackRun.start(SMALL_FORM)
  })
  after(() => run?.[Symbol.asyncDispose]())

  for (const [name, { targets }] of Object.entries(ATTACKS)) {
    // A gateway has the devices behind it, so requests for them through the gateway reach both.
    const [target = 'gateway'] = targets
    test(`${name.replaceAll('-', ' ')}, against the ${target}`, async (t) => {
      const result = await run.attack(name, target)
      t.diagnostic(resultLine(result))
      assert.deepEqual(result.verdict.broken, [], failuresOf(result.measured.felt).slice(0, 3).join('\n'))
    })
  }
})

describe('negative control: of a server with faults the harness says', () => {
  const HONEST = basic('honest', 'x')
  let meter: AttackMeter
  let server: ChildProcess
  let stand: Stand
  let quiet: Quiet
  before(async () => {
    const program = join(REPOSITORY_ROOT, 'test/asymmetry/made-up-server.ts')
    server = fork(program, [HONEST], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    const [port] = (await once(server, 'message')) as [number]
    stand = madeUpStand(port, server.pid ?? 0, HONEST)
    // Long enough for an attacker who has to wait for a core.
    const timings = { ...SMALL_FORM.timings, attackMs: 1_000 }
    meter = await AttackMeter.start({ ...SMALL_FORM, timings })
    quiet = await meter.quiet(stand)
  })
  after(async () => {
    server?.kill('SIGKILL')
    await meter?.[Symbol.asyncDispose]()
  })

  const brokenBy = async (attack: string): Promise<string> => {
    const measured = await meter.attack(attack, stand, quiet)
    return judge(measured, quiet.felt, { prices: quiet.prices, limits: LIMITS }).broken.join(', ')
  }

  test('nothing when it behaves', async (t) => {
    const broken = await brokenBy('slow-heads')
    t.diagnostic(broken)
    assert.doesNotMatch(broken, /factor|MiB|no |ended/)
  })
  test('that a few bytes cost it seconds', async () => {
    assert.match(await brokenBy('many-estimates'), /factor above 100/)
  })
  test('that it keeps memory', async () => {
    assert.match(await brokenBy('many-splits'), /more than 64 MiB stay/)
  })
  test('that it blocks for others', async () => {
    assert.match(await brokenBy('many-system-reports'), /livez slower than/)
  })
  test('that it refuses others', async () => {
    assert.match(await brokenBy('many-metrics'), /times no livez/)
  })
  // Runs last, because the server is gone afterwards.
  test('that it ends', async () => {
    assert.match(await brokenBy('many-lists'), /the program ended/)
  })
})

function madeUpStand(port: number, pid: number, honest: string): Stand {
  return {
    target: 'appliance',
    url: `http://127.0.0.1:${port}`,
    attackedPid: pid,
    behindPids: [],
    devicePath: '',
    attacker: basic('attacker', 'x'),
    honest,
    wholeRange: 'TSBegin=1&TSEnd=9',
    shortRange: 'TSBegin=1&TSEnd=2',
    storePath: '',
  }
}
