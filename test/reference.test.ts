/**
 * The tables of the documentation are those of the programs. `npm run reference` writes them.
 */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { alertTable } from './support/documents/alert-table.ts'
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

const DOCS = join(REPOSITORY_ROOT, 'docs')

test('docs has every command, path, parameter, header, error, metric, alert and setting', async () => {
  const tables: Readonly<Record<string, string>> = {
    times: timeTable(),
    roles: roleTable(),
    audit: auditTable(),
    alerts: alertTable(),
    commands: await commandTables(),
    paths: pathTables(),
    parameters: parameterTables(),
    headers: headerTables(),
    errors: errorTable(),
    metrics: metricTables(await metricTexts()),
    settings: settingBlocks(),
  }
  const named: string[] = []
  for (const path of readdirSync(DOCS, { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.md')) continue
    const text = await readFile(join(DOCS, path), 'utf8')
    const made = text.replaceAll(
      /<!-- table: (\w+) -->\n[\s\S]*?<!-- end of table -->/g,
      (_, name: string) => {
        named.push(name)
        return `<!-- table: ${name} -->\n\n${tables[name]}\n\n<!-- end of table -->`
      },
    )
    if (process.env.REFERENCE === 'write') await writeFile(join(DOCS, path), made)
    else
      assert.ok(made === text, `docs/${path} is not what the programs are; write it by \`npm run reference\``)
  }
  assert.deepEqual(named.toSorted(), Object.keys(tables).toSorted())
})
