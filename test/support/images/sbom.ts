/** Bills of materials, checked by the schema of CycloneDX. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { REPOSITORY_ROOT } from '../repository-files.ts'

export interface Sbom {
  readonly metadata: { readonly component: { readonly type: string; readonly name: string } }
  readonly components: readonly { readonly name: string; readonly version: string; readonly purl: string }[]
}

/** What is wrong with a document: nothing, or a line for each mistake. */
export function sbomMistakes(text: string): string {
  const [python, program] = ['.venv/bin/python', 'test/support/images/check-sbom.py']
  const checked = spawnSync(join(REPOSITORY_ROOT, python), [join(REPOSITORY_ROOT, program)], {
    input: text,
    encoding: 'utf8',
  })
  if (checked.status !== 0) throw checked.error ?? new Error(checked.stderr)
  return checked.stdout
}
