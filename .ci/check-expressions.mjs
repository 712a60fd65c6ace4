// Fails if a regular expression of the programs takes more than linear time, unless expressions.json says why its text
// is trusted. Expressions in the list are not checked again, because that takes minutes for all of them.
//   node .ci/check-expressions.mjs [--write|--all]
// --write adds new linear expressions to the list and removes obsolete ones, --all checks all of them again.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expressionsIn, growthOf, programFiles } from './expressions.mjs'
import { ROOT } from './setup/console.mjs'

const LIST = join(ROOT, '.ci', 'expressions.json')
const mayWrite = process.argv.includes('--write')
const judgesAll = process.argv.includes('--all')

const list = JSON.parse(readFileSync(LIST, 'utf8'))
const { literals, composed } = expressionsIn(programFiles())
const linear = new Set(list.linear)
const problems = []

for (const [literal, places] of literals) {
  if (literal in list.superLinear || (linear.has(literal) && !judgesAll)) continue
  const growth = await growthOf(literal)
  if (growth === 'linear') linear.add(literal)
  else
    problems.push(
      `${places.join(', ')}: ${literal} takes ${growth} time. Match by index, or bound or anchor it; if its text is ours, ` +
        'say so in superLinear of .ci/expressions.json',
    )
}
for (const [call, places] of composed) {
  if (call in list.composed) continue
  problems.push(
    `${places.join(', ')}: ${call} cannot be judged; write a literal, or say in composed of .ci/expressions.json why it is linear`,
  )
}
for (const [name, found] of Object.entries({ superLinear: literals, composed })) {
  for (const text of Object.keys(list[name]))
    if (!found.has(text))
      problems.push(`${name} of .ci/expressions.json lists an expression that no longer exists: ${text}`)
}

const present = [...linear].filter((literal) => literals.has(literal)).sort()
const isListed = JSON.stringify(present) === JSON.stringify(list.linear)
if (mayWrite && !isListed) {
  writeFileSync(LIST, `${JSON.stringify({ ...list, linear: present }, undefined, 2)}\n`)
} else if (!isListed) {
  problems.push('linear of .ci/expressions.json is out of date: run `node .ci/check-expressions.mjs --write`')
}
for (const problem of problems) process.stderr.write(`${problem}\n`)
process.exitCode = problems.length === 0 ? 0 : 1
