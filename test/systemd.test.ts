// The units for machines without Kubernetes: systemd knows every directive, and they leave the programs little.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { REPOSITORY_ROOT } from './support/repository-files.ts'
import { tempFolder } from './support/temp-folder.ts'

const FOLDER = join(REPOSITORY_ROOT, 'config/systemd')
const UNITS = readdirSync(FOLDER).filter((name) => name.endsWith('.service'))
const EXPOSURE_MAX = 3

/** What stands in a unit under this name. */
function valuesOf(unit: string, name: string): readonly string[] {
  const text = readFileSync(join(FOLDER, unit), 'utf8')
  return [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}

function analyze(...args: readonly string[]): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
  return { status, said: stdout + stderr }
}

const isMissing = spawnSync('systemd-analyze', ['--version']).error !== undefined
const skip =
  isMissing && process.env.CI !== 'true' ? 'systemd-analyze is missing: apt-get install systemd' : false

describe('the units of systemd', { skip }, () => {
  for (const unit of UNITS) {
    test(`${unit} leaves its program little of the machine`, () => {
      const { said } = analyze('security', '--offline=true', '--no-pager', join(FOLDER, unit))
      const exposure = Number(/exposure level for \S+: ([0-9.]+)/.exec(said)?.[1])
      assert.ok(exposure < EXPOSURE_MAX, said)
    })
  }

  test('has directives that systemd knows alone', async () => {
    await using folder = await tempFolder()
    for (const unit of UNITS) {
      // The program need not be installed where the test runs.
      const text = (await readFile(join(FOLDER, unit), 'utf8')).replaceAll('/opt/capfleet', REPOSITORY_ROOT)
      await writeFile(join(folder.path, unit), text)
      assert.deepEqual(analyze('verify', join(folder.path, unit)), { status: 0, said: '' })
      const wrong = join(folder.path, `wrong-${unit}`)
      await writeFile(wrong, text.replace('RestrictNamespaces=', 'RestrictNamespace='))
      assert.match(analyze('verify', wrong).said, /Unknown key 'RestrictNamespace'/)
    }
  })

  test('makes users and folders as the units need them', async () => {
    await using root = await tempFolder()
    await mkdir(join(root.path, 'etc'))
    for (const [tool, file] of [
      ['sysusers', 'capfleet-sysusers.conf'],
      ['tmpfiles', 'capfleet-tmpfiles.conf'],
    ] as const) {
      const copy = join(root.path, 'usr/lib', `${tool}.d`, 'capfleet.conf')
      await mkdir(dirname(copy), { recursive: true })
      await cp(join(FOLDER, file), copy)
      const more = tool === 'tmpfiles' ? ['--create'] : []
      const { status, stderr } = spawnSync(`systemd-${tool}`, [...more, `--root=${root.path}`, copy])
      assert.equal(status, 0, String(stderr))
    }
    const [users, groups] = await Promise.all(
      ['passwd', 'group'].map((file) => readFile(join(root.path, 'etc', file), 'utf8')),
    )
    for (const unit of UNITS) {
      assert.match(users ?? '', new RegExp(`^${valuesOf(unit, 'User')[0]}:`, 'm'))
      assert.match(groups ?? '', new RegExp(`^${valuesOf(unit, 'Group')[0]}:`, 'm'))
    }
    assert.match(groups ?? '', /^capfleet:.*:capfleet-recorder$/m)
    const store = spawnSync('stat', ['-c', '%a', join(root.path, 'var/lib/capfleet/store')], {
      encoding: 'utf8',
    })
    assert.equal(store.stdout, '2750\n')
  })
})

test('only the recorder has a capability, and no unit writes memory to the disk', () => {
  for (const unit of UNITS) {
    const capability = unit === 'capfleet-recorder.service' ? 'CAP_NET_RAW' : ''
    assert.deepEqual(valuesOf(unit, 'CapabilityBoundingSet'), [capability], unit)
    assert.deepEqual(valuesOf(unit, 'AmbientCapabilities'), capability === '' ? [] : [capability], unit)
    assert.deepEqual(valuesOf(unit, 'LimitCORE'), ['0'], unit)
    assert.deepEqual(valuesOf(unit, 'Restart'), ['on-failure'], unit)
  }
})
