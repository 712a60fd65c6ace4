import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { readDevices } from '../../../../../src/gateway/fleet/roster/configured-devices.ts'
import { type DeviceSettings, deviceSchema } from '../../../../../src/gateway/fleet/roster/device-settings.ts'
import { TempAuthority } from '../../../../support/access/temp-authority.ts'
import { tempFolder } from '../../../../support/temp-folder.ts'

const settings = (tls: object): DeviceSettings =>
  deviceSchema.parse({ name: 'd', url: 'https://d', user: 'u', password: { file: 'password' }, ...tls })

test('certificates of a device that cannot be used are refused by the name of the setting', async () => {
  await using authority = await TempAuthority.create()
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'password'), 'p')
  await writeFile(join(folder.path, 'empty.pem'), '')
  const [own, other] = [await authority.issue('own'), await authority.issue('other')]
  const read = (tls: object) => readDevices([settings(tls)], join(folder.path, 'gateway.yaml'))
  const [device] = await read({ ca: authority.ca, ...own })
  assert.ok(device?.connectOptions.secureContext)
  // Without a certificate in the file, Node's default CA certificates would be trusted for the device.
  for (const tls of [
    { ca: 'empty.pem' },
    { ...own, key: other.key },
    { ...own, cert: 'empty.pem' },
    { ...own, key: 'empty.pem' },
  ]) {
    await assert.rejects(read(tls), /devices\[0\]: cannot use ca, cert and key/)
  }
})

test('a device is another one when its certificates are', async () => {
  await using authority = await TempAuthority.create()
  await using folder = await tempFolder()
  await writeFile(join(folder.path, 'password'), 'p')
  const [own, other] = [await authority.issue('own'), await authority.issue('other')]
  const configPath = join(folder.path, 'gateway.yaml')
  const [first, same, changed, without] = await readDevices(
    [own, own, other, {}].map((tls) => settings(tls)),
    configPath,
  )
  assert.ok(first && same && changed && without)
  assert.deepEqual(
    [same, changed, without].map((device) => first.equals(device)),
    [true, false, false],
  )
})

test('a certificate needs its key, and a key its certificate', () => {
  for (const tls of [{ cert: 'a.pem' }, { key: 'a.pem' }])
    assert.throws(() => settings(tls), /both cert and key/)
})
