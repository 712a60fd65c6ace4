// Output and commands of the set-up. Its stdout belongs to the program that follows.
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** Shown before each message: how far the set-up is. */
let place = 'setup'

export function say(text) {
  process.stderr.write(`${place}: ${text}\n`)
}

/** Runs the steps in order. A step that finds nothing to do says nothing. */
export function inSteps(steps) {
  for (const [index, step] of steps.entries()) {
    place = `setup ${index + 1}/${steps.length}`
    step()
  }
  place = 'setup'
}

export function fail(text) {
  say(text)
  process.exit(1)
}

/** Runs a command with its output on stderr; returns whether it succeeded. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: ROOT, stdio: ['ignore', 2, 2], ...options })
  if (result.error) fail(`cannot run ${command}: ${result.error.message}`)
  return result.status === 0
}

/** The output of a command, or nothing if it fails. */
export function output(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', ...options })
  return result.status === 0 ? result.stdout : ''
}
