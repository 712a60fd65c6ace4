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
import { reportAddresses } from './support/documents/report-addresses.ts'
import { REPOSITORY_ROOT } from './support/repository-files.ts'

const DOCS = readdirSync(join(REPOSITORY_ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.md'))
  .map((path) => join('docs', path))

test('docs has every command, path, parameter, header, error, metric, alert, setting and address', async () => {
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
    reports: reportAddresses(),
  }
  const named = new Set<string>()
  for (const path of [...DOCS, 'SECURITY.md']) {
    const file = join(REPOSITORY_ROOT, path)
    const text = await readFile(file, 'utf8')
    const made = text.replaceAll(
      /<!-- table: (\w+) -->\n[\s\S]*?<!-- end of table -->/g,
      (_, name: string) => {
        named.add(name)
        return `<!-- table: ${name} -->\n\n${tables[name]}\n\n<!-- end of table -->`
      },
    )
    if (process.env.REFERENCE === 'write') await writeFile(file, made)
    else assert.ok(made === text, `${path} is not what the programs are; write it by \`npm run reference\``)
  }
  assert.deepEqual([...named].toSorted(), Object.keys(tables).toSorted())
})
