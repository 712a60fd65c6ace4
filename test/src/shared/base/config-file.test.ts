import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { z } from 'zod'
import { loadConfig, parseConfig, readSecret } from '../../../../src/shared/base/config-file.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'

const schema = z.strictObject({
  drainS: z.number().int().min(0).default(30),
  listen: z.strictObject({ port: z.number().int().min(0).max(65535) }).prefault({ port: 8080 }),
  devices: z.array(z.strictObject({ name: z.string(), streamsMax: z.number().default(4) })).default([]),
})

function complaint(text: string): string {
  try {
    parseConfig(text, 'gw.yaml', schema)
  } catch (error) {
    assert.ok(error instanceof CapfleetError && error.code === 'bad-config')
    return error.message
  }
  return assert.fail('the configuration was accepted')
}

test('defaults fill what is absent, and the result is frozen to the depth', () => {
  const config = parseConfig('devices: [{name: nyc1}]', 'gw.yaml', schema)
  assert.deepEqual(config, { drainS: 30, listen: { port: 8080 }, devices: [{ name: 'nyc1', streamsMax: 4 }] })
  assert.throws(() => {
    ;(config.devices[0] as { name: string }).name = 'x'
  }, TypeError)
})

test('an empty document is a document of defaults', () => {
  assert.equal(parseConfig('', 'gw.yaml', schema).listen.port, 8080)
})

test('an unknown key is named with its path and its place', () => {
  assert.equal(
    complaint('devices:\n  - name: a\n  - name: b\n    streems: 4'),
    'gw.yaml: devices[1].streems: unknown key (line 4, column 14)',
  )
})

test('a key in the wrong case gets a hint', () => {
  assert.match(complaint('drains: 3'), /drains: unknown key \(did you mean drainS\?\)/)
  assert.match(complaint('devices: [{name: a, streamsmax: 1}]'), /devices\[0\]\.streamsmax.*streamsMax/)
})

test('a value of the wrong type is named with its path', () => {
  assert.match(complaint('listen: {port: high}'), /^gw\.yaml: listen\.port: /)
})

test('a value in the place of a group of settings gets their names', () => {
  assert.equal(
    complaint('listen: 127.0.0.1:8080'),
    'gw.yaml: listen: must be a group of settings (port), not a string (line 1, column 9)',
  )
  assert.match(
    complaint('devices: [nyc1]'),
    /devices\[0\]: must be a group of settings \(name, streamsMax\), not/,
  )
  assert.match(
    complaint('- a'),
    /^gw\.yaml: document: must be a group of settings \(drainS, listen, devices\), not/,
  )
})

test('every problem is listed, not only the first', () => {
  assert.match(complaint('drainS: -1\nlisten: {port: 70000}'), /drainS.*listen\.port/)
})

test('a YAML mistake is reported with its line', () => {
  assert.match(complaint('listen: {port: 1\ndrainS: 2'), /line \d/)
})

test('a missing file is a bad-config that names it', async () => {
  await assert.rejects(
    loadConfig('/nonexistent/gw.yaml', schema),
    /cannot read the configuration \/nonexistent\/gw\.yaml/,
  )
})

test('a secret comes from a file beside the configuration or from the environment', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'capfleet-'))
  t.after(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'pw'), 'top secret\n')
  const config = join(folder, 'gw.yaml')
  assert.equal((await readSecret({ file: 'pw' }, config, 'devices[0].password')).reveal(), 'top secret')
  process.env.CAPFLEET_TEST_SECRET = 'from env'
  assert.equal((await readSecret({ env: 'CAPFLEET_TEST_SECRET' }, config, 'x')).reveal(), 'from env')
  await assert.rejects(
    readSecret({ env: 'CAPFLEET_ABSENT' }, config, 'devices[0].password'),
    /devices\[0\]\.password: .*CAPFLEET_ABSENT/,
  )
  await assert.rejects(
    readSecret({ file: 'absent' }, config, 'devices[0].password'),
    /devices\[0\]\.password: cannot read/,
  )
})
