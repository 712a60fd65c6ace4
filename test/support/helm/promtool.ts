/** Prometheus' own checks of metrics and rules. */

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { skipWithout } from '../set-up-tools.ts'

const PROMTOOL = join(REPOSITORY_ROOT, '.tools/promtool')

/** Skip reason for tests, or false. */
export const NO_PROMTOOL = skipWithout(
  existsSync(PROMTOOL),
  'there is no .tools/promtool; `node .ci/setup.mjs --test` brings it',
)

export interface Checked {
  readonly status: number | null
  /** Its whole output. */
  readonly said: string
}

export function promtool(args: readonly string[], options: { readonly input?: string } = {}): Checked {
  const { error, status, stdout, stderr } = spawnSync(PROMTOOL, args, { encoding: 'utf8', ...options })
  if (error) throw error
  return { status, said: `${stdout}${stderr}` }
}
