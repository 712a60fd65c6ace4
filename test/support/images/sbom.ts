/** Checks bills of materials against the CycloneDX schema. */

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { skipWithout } from '../set-up-tools.ts'

const PYTHON = join(REPOSITORY_ROOT, '.venv/bin/python')

/** Skip reason for tests, or false: the tests' Python tools, including hadolint. */
export const WITHOUT_PYTHON_TOOLS = skipWithout(
  existsSync(PYTHON),
  'there is no .venv; `node .ci/setup.mjs --test` brings it',
)

export interface Sbom {
  readonly metadata: { readonly component: { readonly type: string; readonly name: string } }
  readonly components: readonly { readonly name: string; readonly version: string; readonly purl: string }[]
}

/** The mistakes in a document: one line each, or nothing. */
export function sbomMistakes(text: string): string {
  const program = join(REPOSITORY_ROOT, 'test/support/images/check-sbom.py')
  const checked = spawnSync(PYTHON, [program], {
    input: text,
    encoding: 'utf8',
  })
  if (checked.status !== 0) throw checked.error ?? new Error(checked.stderr)
  return checked.stdout
}
