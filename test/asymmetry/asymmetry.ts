/**
 * `npm run asymmetry [-- NAME ...] [--seconds 10] [--json FILE]`: attacks gateway and appliance, each a real
 * process, in every way of ATTACKS or in those whose names begin with NAME, and prints for each what the
 * attacker spent, what we spent, and what somebody else felt meanwhile. verdict.ts has the measure. Status 1:
 * a limit is broken. Everything happens on loopback, in a temporary folder.
 */
import { appendFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { headingLine, measureInWords, pricesInWords, resultJson, resultLine } from './attack-report.ts'
import { AttackRun, FULL_FORM } from './attack-run.ts'
import { ATTACKS } from './attacks.ts'
import { failuresOf, LIMITS } from './verdict.ts'

/** The first failures say what there is to say. */
const FAILURES_SHOWN = 3

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string' }, json: { type: 'string' } },
})
const seconds = Number(values.seconds ?? FULL_FORM.timings.attackMs / 1_000)
if (!(seconds >= 1 && seconds <= 60)) refuse(`--seconds must be 1 to 60, got "${values.seconds}"`)
const names = chooseAttacks()

print(measureInWords(LIMITS))
const timings = { ...FULL_FORM.timings, attackMs: seconds * 1_000 }
await using run = await AttackRun.start({ ...FULL_FORM, timings }, (stand, quiet) =>
  print(pricesInWords(`${stand.target} ${stand.url}`, quiet.prices)),
)
print(headingLine())
for (const name of names) {
  for (const target of ATTACKS[name]?.targets ?? []) {
    const result = await run.attack(name, target)
    print(resultLine(result))
    for (const failure of failuresOf(result.measured.felt).slice(0, FAILURES_SHOWN)) print(`  ${failure}`)
    if (values.json !== undefined) await appendFile(values.json, `${resultJson(result)}\n`)
    if (result.verdict.broken.length > 0) process.exitCode = 1
  }
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
