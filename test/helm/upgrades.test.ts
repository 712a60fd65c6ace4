// An upgrade replaces only the pods whose images or settings have changed.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { copyChart, type Manifest, type Rendering, render, WITHOUT_HELM } from '../support/helm/chart.ts'

type Templates = Readonly<Record<string, unknown>>

/** The pod template of each workload: if it does not change, the pods continue to run. */
async function podTemplates(rendering: Rendering): Promise<Templates> {
  const manifests = await render(rendering)
  const workloads = manifests.filter(({ kind }) => /^(Deployment|StatefulSet|DaemonSet)$/.test(kind))
  return Object.fromEntries(workloads.map((workload) => [workload.metadata.name, templateOf(workload)]))
}

function templateOf(workload: Manifest): unknown {
  return (workload as Manifest & { readonly spec: { readonly template: unknown } }).spec.template
}

/** The names of workloads whose pods are replaced. */
function changed(before: Templates, after: Templates): string[] {
  return Object.keys(before).filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
}

test('a newer chart replaces no pod whose image stays the same', { skip: WITHOUT_HELM }, async () => {
  await using newer = await copyChart()
  const about = join(newer.path, 'Chart.yaml')
  const text = await readFile(about, 'utf8')
  await writeFile(about, text.replaceAll(/^(version|appVersion): .*$/gm, '$1: 99.9.9'))
  const storage = 'storage.enabled=true'
  const pinned = { set: [storage, 'gateway.image.tag=same', 'appliance.image.tag=same'] }
  const before = await podTemplates(pinned)
  assert.deepEqual(
    Object.keys(before).sort(),
    ['appliance', 'gateway', 'redis', 'worker'].map((component) => `fleet-capfleet-${component}`),
  )
  assert.deepEqual(changed(before, await podTemplates({ ...pinned, chart: newer.path })), [])
  const unpinned = await podTemplates({ set: [storage] })
  assert.deepEqual(changed(unpinned, await podTemplates({ set: [storage], chart: newer.path })).sort(), [
    'fleet-capfleet-appliance',
    'fleet-capfleet-gateway',
    'fleet-capfleet-worker',
  ])
})
