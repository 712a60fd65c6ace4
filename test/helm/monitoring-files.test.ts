// Rules and dashboards are files of the chart and are rendered unchanged: text in them that looks like a template is
// Prometheus's.
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { CI_VALUES, copyChart, render, WITHOUT_HELM } from '../support/helm/chart.ts'

const RULES = `groups:
  - name: planted
    rules:
      - alert: Planted
        expr: up == 0
        annotations: {summary: "{{ $labels.instance }} is gone for {{ $value }} s"}
`
const DASHBOARD = '{"title": "{{planted}}"}\n'

test('rules and dashboards come out as they are', { skip: WITHOUT_HELM }, async () => {
  await using chart = await copyChart()
  for (const folder of ['rules', 'dashboards']) await mkdir(join(chart.path, folder), { recursive: true })
  await writeFile(join(chart.path, 'rules', 'planted.yaml'), RULES)
  await writeFile(join(chart.path, 'dashboards', 'planted.json'), DASHBOARD)
  const manifests = await render({ chart: chart.path, values: [CI_VALUES.monitoring ?? ''] })
  const rule = manifests.find(({ kind }) => kind === 'PrometheusRule') as { spec?: { groups: unknown[] } }
  const [planted] = (parse(RULES) as { groups: unknown[] }).groups
  assert.deepEqual(
    rule.spec?.groups.find((group) => (group as { name: string }).name === 'planted'),
    planted,
  )
  const dashboard = manifests.find(({ metadata }) => metadata.name.endsWith('-dashboard-planted'))
  assert.equal(dashboard?.data?.['planted.json'], DASHBOARD)
})
