import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSmart } from '../../../appliance/machine/smart-sensor.ts'
import { smartProblems } from '../../../appliance/system-status/disk-groups.ts'

const disk = {
  model_name: 'Disk 9000',
  serial_number: 'S1',
  smart_status: { passed: true },
  temperature: { current: 41 },
}

test('reads health, temperature and bad sectors of an ATA disk', () => {
  const table = [
    { id: 5, raw: { value: 3 } },
    { id: 9, raw: { value: 20_000 } },
    { id: 197, raw: { value: 1 } },
  ]
  const health = parseSmart(JSON.stringify({ ...disk, ata_smart_attributes: { table } }))
  assert.deepEqual(health, { model: 'Disk 9000', serial: 'S1', celsius: 41, isHealthy: true, errors: 4 })
})

test('counts media errors of an NVMe disk, and its own verdict', () => {
  const log = { nvme_smart_health_information_log: { media_errors: 2 }, smart_status: { passed: false } }
  const health = parseSmart(JSON.stringify({ ...disk, ...log }))
  assert.ok(health)
  assert.equal(smartProblems(health), 3)
})

test('what is no report of a disk with SMART has no health', () => {
  for (const text of ['', 'no json', '{}', '[]', '{"smart_status":{}}']) {
    assert.equal(parseSmart(text), undefined, text)
  }
})
