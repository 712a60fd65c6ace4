import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exportLeaseId, exportOfLease } from '../../../../src/gateway/export/export-lease.ts'

test('the queue can tell to which export a lease belongs, and that those of downloads and searches belong to none', () => {
  const id = '6f1c1d1e-6f0b-4f43-9d0e-0a5b3c2d1e0f'
  const lease = exportLeaseId(id, 'c0ffee00-0000-4000-8000-000000000000')
  assert.equal(exportOfLease(lease), id)
  assert.equal(exportOfLease(`${lease}-lon.1`), id)
  assert.notEqual(exportLeaseId(id, 'a'), exportLeaseId(id, 'b'))
  for (const other of [id, `${id}.3`, 'export', '']) assert.equal(exportOfLease(other), undefined)
})
