/**
 * The tables of REFERENCE.md are those of the programs. `npm run reference` writes them.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { commandTables } from './support/command-tables.ts'
import { startTempAppliance } from './support/processes/temp-appliance.ts'
import { startTempGateway } from './support/processes/temp-gateway.ts'
import { TempRedis } from './support/processes/temp-redis.ts'
import {
  auditTable,
  errorTable,
  headerTables,
  metricTables,
  parameterTables,
  pathTables,
  roleTable,
  settingBlocks,
} from './support/reference-tables.ts'
import { REPOSITORY_ROOT } from './support/repository-files.ts'

const PATH = join(REPOSITORY_ROOT, 'REFERENCE.md')

/** The texts of /metrics of a gateway and of the appliance behind it. */
async function metrics(): Promise<readonly [string, string]> {
  await using redis = await TempRedis.create()
  await using appliance = await startTempAppliance()
  const [user = '', password = ''] = appliance.credentials('user').split(':')
  const config = { name: 'a', url: appliance.url, user, password: { env: 'FAKE_DEVICE_PASSWORD' } }
  await using gateway = await startTempGateway([{ config, password }], redis.url)
  const ofGateway = await fetch(`${gateway.url}/metrics`, { headers: gateway.as.viewer })
  return [await ofGateway.text(), (await appliance.get('/metrics')).body.toString()]
}

test('REFERENCE.md has every command, path, parameter, header, error, metric and setting', async () => {
  const tables: Readonly<Record<string, string>> = {
    roles: roleTable(),
    audit: auditTable(),
    commands: await commandTables(),
    paths: pathTables(),
    parameters: parameterTables(),
    headers: headerTables(),
    errors: errorTable(),
    metrics: metricTables(...(await metrics())),
    settings: settingBlocks(),
  }
  const text = await readFile(PATH, 'utf8')
  const named: string[] = []
  const made = text.replaceAll(/<!-- table: (\w+) -->\n[\s\S]*?<!-- end of table -->/g, (_, name: string) => {
    named.push(name)
    return `<!-- table: ${name} -->\n\n${tables[name]}\n\n<!-- end of table -->`
  })
  assert.deepEqual(named, Object.keys(tables))
  if (process.env.REFERENCE === 'write') await writeFile(PATH, made)
  else assert.ok(made === text, 'REFERENCE.md is not what the programs are; write it by `npm run reference`')
})
