import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { applianceConfigSchema, loadApplianceConfig } from '../../appliance/appliance-config.ts'
import { parseConfig } from '../../src/shared/base/config-file.ts'
import { tempFolder } from '../support/temp-folder.ts'

const EXAMPLE = fileURLToPath(new URL('../../config/appliance.example.yaml', import.meta.url))
const parse = (text: string) => parseConfig(text, 'appliance.yaml', applianceConfigSchema)
const MINIMAL = 'store: ./store\nauth: { users: ./users.yaml }\n'

test('the example shows every key with its default', async () => {
  const example = parse(await readFile(EXAMPLE, 'utf8'))
  assert.deepEqual(example, { ...parse(MINIMAL), timeZone: 'UTC' })
})

test('paths are relative to the file', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'appliance.yaml')
  await writeFile(path, `${MINIMAL}system: { mounts: { Remote0: ./archive, Remote1: /mnt } }\n`)
  const config = await loadApplianceConfig(path)
  assert.deepEqual(config.system.mounts, { Remote0: join(folder.path, 'archive'), Remote1: '/mnt' })
  assert.equal(config.store, join(folder.path, 'store'))
  assert.equal(config.auth.users, join(folder.path, 'users.yaml'))
})

for (const [text, problem] of [
  ['', /store/],
  ['store: a\n', /auth/],
  [`${MINIMAL}logLevel: loud\n`, /logLevel/],
  [`${MINIMAL}timeZone: Mars/Olympus\n`, /timeZone: must be an IANA name/],
  [`${MINIMAL}listen: { port: 70000 }\n`, /listen\.port/],
  [
    `${MINIMAL}downloads: { idleTimeoutMS: 5 }\n`,
    /downloads\.idleTimeoutMS: unknown key \(did you mean idleTimeoutMs\?\)/,
  ],
  [`${MINIMAL}downloads: { mac48LimitMs: 0 }\n`, /downloads\.mac48LimitMs/],
  [`${MINIMAL}downloads: { mac48LimitMs: 32768001 }\n`, /downloads\.mac48LimitMs/],
  [`${MINIMAL}deviceName: "a b"\n`, /deviceName/],
  [`${MINIMAL}capture: { defaultName: "../x" }\n`, /capture\.defaultName: must be 1 to 64 letters/],
  [`${MINIMAL}system: { interfaces: { cap8: eth1 } }\n`, /system\.interfaces\.cap8: unknown key/],
] as const) {
  test(`refuses ${JSON.stringify(text.replace(MINIMAL, ''))}, naming the setting`, () => {
    assert.throws(() => parse(text), { code: 'bad-config', message: problem })
  })
}
