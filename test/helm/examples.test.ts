// The values in examples render: a release with S3, an Ingress and alerts that link to its own documentation.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { render, WITHOUT_HELM } from '../support/helm/chart.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

test('Kubernetes with S3', { skip: WITHOUT_HELM }, async () => {
  const manifests = await render({ values: [join(REPOSITORY_ROOT, 'examples/kubernetes-s3/values.yaml')] })
  const kinds = new Set(manifests.map(({ kind }) => kind))
  for (const kind of ['Deployment', 'DaemonSet', 'Ingress', 'PrometheusRule'])
    assert.ok(kinds.has(kind), kind)
  const text = JSON.stringify(manifests)
  assert.match(text, /bucket: captures/)
  assert.ok(text.includes('https://captures.example.org/docs/operations/runbook.html#the-queue-is-long'))
})
