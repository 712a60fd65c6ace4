// The units for machines without Kubernetes: systemd knows every directive, and the units restrict the programs
// tightly.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { loadGatewayConfig } from '../src/gateway/gateway-config.ts'
import { putUser } from '../src/shared/auth/edit-users-file.ts'
import { tempClient } from './support/processes/client-process.ts'
import { REPOSITORY_ROOT } from './support/repository-files.ts'
import { skipWithout } from './support/set-up-tools.ts'
import { tempFolder } from './support/temp-folder.ts'

const FOLDER = join(REPOSITORY_ROOT, 'config/systemd')
const UNITS = readdirSync(FOLDER).filter((name) => name.endsWith('.service'))
const RECORDER = 'capfleet-recorder.service'
const EXPOSURE_MAX = 3

/** The value of this directive in a unit. */
function valuesOf(unit: string, name: string): readonly string[] {
  const text = readFileSync(join(FOLDER, unit), 'utf8')
  return [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}

function analyze(...args: readonly string[]): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { encoding: 'utf8' })
  return { status, said: stdout + stderr }
}

function exposureIn(said: string): number {
  return Number(/exposure level for \S+: ([0-9.]+)/.exec(said)?.[1])
}

const isThere = spawnSync('systemd-analyze', ['--version']).error === undefined
const skip = skipWithout(isThere, 'systemd-analyze is missing: apt-get install systemd')

describe('the units of systemd', { skip }, () => {
  for (const unit of UNITS) {
    test(`${unit} leaves its program little of the machine`, () => {
      const { said } = analyze('security', '--offline=true', '--no-pager', join(FOLDER, unit))
      assert.ok(exposureIn(said) < EXPOSURE_MAX, said)
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

  test('has lines for time stamps of the card, which leave the recorder little, too', async () => {
    await using folder = await tempFolder()
    const path = join(folder.path, RECORDER)
    const lines = /^# (?=(?:PrivateDevices|DeviceAllow|CapabilityBoundingSet|AmbientCapabilities)=)/gm
    const text = (await readFile(join(FOLDER, RECORDER), 'utf8')).replaceAll('/opt/capfleet', REPOSITORY_ROOT)
    assert.equal(text.match(lines)?.length, 4)
    await writeFile(path, text.replace(lines, ''))
    assert.deepEqual(analyze('verify', path), { status: 0, said: '' })
    const { said } = analyze('security', '--offline=true', '--no-pager', path)
    assert.ok(exposureIn(said) < EXPOSURE_MAX, said)
    assert.match(said, /✗ PrivateDevices=/)
    assert.match(said, /✗ CapabilityBoundingSet=~CAP_NET_ADMIN/)
    assert.match(said, /✗ CapabilityBoundingSet=~CAP_NET_\(BIND_SERVICE\|BROADCAST\|RAW\)/)
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
    const capability = unit === RECORDER ? 'CAP_NET_RAW' : ''
    assert.deepEqual(valuesOf(unit, 'CapabilityBoundingSet'), [capability], unit)
    assert.deepEqual(valuesOf(unit, 'AmbientCapabilities'), capability === '' ? [] : [capability], unit)
    assert.deepEqual(valuesOf(unit, 'LimitCORE'), ['0'], unit)
  }
})

test('no unit gives up, nor starts without its disk', () => {
  for (const unit of UNITS) {
    assert.deepEqual(valuesOf(unit, 'StartLimitIntervalSec'), ['0'], unit)
    assert.deepEqual(valuesOf(unit, 'Restart'), [unit === RECORDER ? 'always' : 'on-failure'], unit)
    const isOfStore = unit === RECORDER || unit === 'capfleet-appliance.service'
    const disk = `/var/lib/capfleet/${isOfStore ? 'store' : 'gateway'}`
    assert.deepEqual(valuesOf(unit, 'RequiresMountsFor'), [disk], unit)
  }
})

test('programs end their processes by themselves, outlive them, and read files again on a reload', () => {
  for (const unit of UNITS.filter((name) => name !== RECORDER)) {
    assert.deepEqual(valuesOf(unit, 'KillMode'), ['mixed'], unit)
    assert.deepEqual(valuesOf(unit, 'OOMPolicy'), ['continue'], unit)
    assert.deepEqual(valuesOf(unit, 'ExecReload'), ['/bin/kill -HUP $MAINPID'], unit)
  }
  assert.match(valuesOf('capfleet-worker.service', 'After')[0] ?? '', /\bcapfleet-gateway\.service\b/)
})

test('the documents are taken where the units expect them, and write only where those may', async () => {
  await using folder = await tempFolder()
  await using client = await tempClient()
  for (const document of ['appliance', 'gateway'] as const) {
    const path = join(folder.path, `${document}.yaml`)
    await cp(join(FOLDER, `${document}.yaml`), path)
    await putUser(join(folder.path, `${document}-users.yaml`), { name: 'ann', role: 'full' }, 'open sesame')
  }
  await writeFile(join(folder.path, 'here-password'), 'open sesame\n')
  for (const unit of UNITS) {
    const [, program = '', name = ''] =
      /capfleet (\w+) --config \/etc\/capfleet\/(.+)$/.exec(valuesOf(unit, 'ExecStart')[0] ?? '') ?? []
    const path = join(folder.path, name)
    const { status, stdout, stderr } = await client.run([program, '--config', path, '--check'])
    assert.deepEqual([status, stdout.toString(), stderr], [0, '', `${path}: OK\n`], unit)
    const { store, home } = parse(await readFile(path, 'utf8'))
    for (const writable of valuesOf(unit, 'ReadWritePaths')) assert.equal(writable, store ?? home, unit)
  }
  const { drainS } = await loadGatewayConfig(join(folder.path, 'gateway.yaml'))
  assert.deepEqual(valuesOf('capfleet-gateway.service', 'TimeoutStopSec'), [`${drainS + 20}`])
})

test('the installation in the documentation leaves out no file, no unit, and no users', async () => {
  const section = await readFile(join(REPOSITORY_ROOT, 'docs', 'get-started', 'systemd.md'), 'utf8')
  const named = [...section.matchAll(/config\/systemd\/([\w*.-]+)/g)].map(([, name]) => name)
  const others = readdirSync(FOLDER).filter((name) => !UNITS.includes(name))
  assert.deepEqual(named.toSorted(), ['*.service', ...others].toSorted())
  const enabled = [...section.matchAll(/^systemctl enable --now (.*)$/gm)].flatMap(([, names = '']) =>
    names.split(' '),
  )
  assert.deepEqual(enabled.map((name) => `${name}.service`).toSorted(), UNITS.toSorted())
  for (const program of ['appliance', 'gateway']) {
    const { auth } = parse(await readFile(join(FOLDER, `${program}.yaml`), 'utf8'))
    const users = `/etc/capfleet/${auth.users}`
    const [group] = valuesOf(`capfleet-${program}.service`, 'Group')
    assert.match(section, new RegExp(`^src/capfleet user add .* --file ${users}$`, 'm'))
    assert.ok(section.includes(`\nchgrp ${group} ${users} && chmod 640 ${users}\n`), users)
  }
})
