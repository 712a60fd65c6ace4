// How the set-up talks and runs commands. Its stdout belongs to the program that follows.
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

export function say(text) {
  process.stderr.write(`setup: ${text}\n`)
}

export function fail(text) {
  say(text)
  process.exit(1)
}

/** Runs a command with its output on stderr; says whether it ended well. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: ROOT, stdio: ['ignore', 2, 2], ...options })
  if (result.error) fail(`cannot run ${command}: ${result.error.message}`)
  return result.status === 0
}

/** What a command prints; nothing when it fails. */
export function output(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', ...options })
  return result.status === 0 ? result.stdout : ''
}
