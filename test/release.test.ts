// The checks before a release, on a copy of what they read: each mistake is named, with what to do about it.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { reportAddresses } from './support/documents/report-addresses.ts'
import { REPOSITORY_ROOT } from './support/repository-files.ts'
import { tempFolder } from './support/temp-folder.ts'

const READ = [
  '.ci',
  'package.json',
  'package-lock.json',
  'CHANGELOG.md',
  'helm/Chart.yaml',
  'config/Dockerfile',
]

type Package = Record<string, unknown>

/** What speaks against a release of a commit in which everything is right, but for the changed package.json. */
async function mistakesWith(change: (facts: Package) => Package): Promise<readonly string[]> {
  await using folder = await tempFolder()
  for (const path of READ) {
    await mkdir(dirname(join(folder.path, path)), { recursive: true })
    await cp(join(REPOSITORY_ROOT, path), join(folder.path, path), { recursive: true })
  }
  const facts = JSON.parse(await readFile(join(folder.path, 'package.json'), 'utf8')) as Package
  await writeFile(join(folder.path, 'package.json'), JSON.stringify(change(facts)))
  const changes = `# Changelog\n\n## [Unreleased]\n\n## [${String(facts.version)}] - 2026-12-01\n\n- Something.\n`
  await writeFile(join(folder.path, 'CHANGELOG.md'), changes)
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.net', ...args], {
      cwd: folder.path,
    })
  git('init', '--quiet', '--initial-branch=main')
  git('add', '--all')
  git('commit', '--quiet', '--message', 'all')
  const { stderr } = spawnSync(process.execPath, ['.ci/release.mjs', '--dry-run'], {
    cwd: folder.path,
    encoding: 'utf8',
  })
  const lines = stderr.split('\n').map((line) => line.replace(/^setup: /, ''))
  return lines.filter((line) => /\.$/.test(line) && !line.startsWith('Only root'))
}

test('a release needs an address for reports of vulnerabilities', async () => {
  for (const bugs of [
    undefined,
    {},
    { url: 'https://example.net/issues' },
    { email: 'nobody' },
    'https://example.net',
  ]) {
    const [first = '', ...others] = await mistakesWith((facts) => ({ ...facts, bugs }))
    assert.match(first, /^package\.json has no "bugs": \{ "email": .* npm run reference/)
    assert.deepEqual(others, [])
  }
})

test('nothing speaks against a release with an address', async () => {
  const bugs = { email: 'security@example.net', url: 'https://example.net/issues' }
  assert.deepEqual(await mistakesWith((facts) => ({ ...facts, bugs })), [])
})

test('another version than that of the other files is named', async () => {
  const bugs = { email: 'security@example.net' }
  const found = await mistakesWith((facts) => ({ ...facts, bugs, version: '0.1.7' }))
  assert.ok(
    found.some((line) =>
      /^helm\/Chart\.yaml \(version\) has the version .*, and package\.json 0\.1\.7\.$/.test(line),
    ),
    found.join('\n'),
  )
})

test('the documents show the address, or that there is none', () => {
  assert.match(reportAddresses({}), /names no address/)
  const one = reportAddresses({ email: 'security@example.net' })
  assert.match(one, /^\| an ordinary bug \| <security@example\.net> \|$/m)
  const both = reportAddresses({ email: 'security@example.net', url: 'https://example.net/issues' })
  assert.match(both, /^\| a vulnerability, in private \| <security@example\.net> \|$/m)
  assert.match(both, /^\| an ordinary bug \| <https:\/\/example\.net\/issues> \|$/m)
})
