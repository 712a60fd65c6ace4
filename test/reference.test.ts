/** The tables of REFERENCE.md are those of the programs. `npm run reference` writes them. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { commandTables } from './support/documents/command-tables.ts'
import { metricTexts } from './support/documents/metric-texts.ts'
import {
  auditTable,
  errorTable,
  headerTables,
  metricTables,
  parameterTables,
  pathTables,
  roleTable,
  settingBlocks,
  timeTable,
} from './support/documents/reference-tables.ts'
import { REPOSITORY_ROOT } from './support/repository-files.ts'

const PATH = join(REPOSITORY_ROOT, 'REFERENCE.md')

test('REFERENCE.md has every command, path, parameter, header, error, metric and setting', async () => {
  const tables: Readonly<Record<string, string>> = {
    times: timeTable(),
    roles: roleTable(),
    audit: auditTable(),
    commands: await commandTables(),
    paths: pathTables(),
    parameters: parameterTables(),
    headers: headerTables(),
    errors: errorTable(),
    metrics: metricTables(await metricTexts()),
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
