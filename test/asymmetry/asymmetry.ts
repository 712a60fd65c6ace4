/**
 * `npm run asymmetry [-- NAME ...] [--seconds 10] [--json FILE]` attacks gateway and appliance, each a real process,
 * with every attack of ATTACKS or with those whose names begin with NAME. For each it prints what the attacker spent,
 * what we spent, and how other users were affected. verdict.ts defines the measure. Status 1: a limit was exceeded.
 * Everything happens on loopback, in a temporary folder.
 */
import { appendFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { runProgram } from '../../src/shared/base/program.ts'
import { headingLine, measureInWords, pricesInWords, resultJson, resultLine } from './attack-report.ts'
import { AttackRun, FULL_FORM } from './attack-run.ts'
import { ATTACKS } from './attacks.ts'
import type { Target } from './stand.ts'
import { failuresOf, LIMITS } from './verdict.ts'

/** The first few failures are enough to diagnose a problem. */
const FAILURES_SHOWN = 3

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string' }, json: { type: 'string' } },
})
const seconds = Number(values.seconds ?? FULL_FORM.timings.attackMs / 1_000)
if (!(seconds >= 1 && seconds <= 600)) refuse(`--seconds must be 1 to 600, got "${values.seconds}"`)
const names = chooseAttacks()
let hasBroken = false

const timings = { ...FULL_FORM.timings, attackMs: seconds * 1_000 }
await runProgram(attackAll)
if (hasBroken) process.exitCode = 1

/**
 * An interruption takes effect when the running attack has been measured; then everything that was started is ended.
 */
async function attackAll(signal: AbortSignal): Promise<void> {
  print(measureInWords(LIMITS))
  await using run = await AttackRun.start({ ...FULL_FORM, timings }, (stand, quiet) =>
    print(pricesInWords(`${stand.target} ${stand.url}`, quiet.prices)),
  )
  print(headingLine())
  for (const [name, target] of pairsOf(names)) {
    if (signal.aborted) return
    const result = await run.attack(name, target)
    print(resultLine(result))
    for (const failure of failuresOf(result.measured.felt).slice(0, FAILURES_SHOWN)) print(`  ${failure}`)
    if (values.json !== undefined) await appendFile(values.json, `${resultJson(result)}\n`)
    hasBroken ||= result.verdict.broken.length > 0
  }
}

function pairsOf(attacks: readonly string[]): readonly (readonly [string, Target])[] {
  return attacks.flatMap((name) => (ATTACKS[name]?.targets ?? []).map((target) => [name, target] as const))
}

function chooseAttacks(): readonly string[] {
  const all = Object.keys(ATTACKS)
  const unknown = positionals.find((name) => !all.some((attack) => attack.startsWith(name)))
  if (unknown !== undefined) refuse(`no attack "${unknown}"; there are ${all.join(', ')}`)
  if (positionals.length === 0) return all
  return all.filter((attack) => positionals.some((name) => attack.startsWith(name)))
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function refuse(why: string): never {
  process.stderr.write(`asymmetry: ${why}\n`)
  process.exit(2)
}
