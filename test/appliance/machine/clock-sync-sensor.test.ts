import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseChrony, parsePmc } from '../../../appliance/machine/clock-sync-sensor.ts'

test('reads the tracking report of chrony', () => {
  const line =
    'C0000201,ntp1.example.net,2,1795171200.123,0.000012345,-0.000001,0.000002500,-3.1,0.001,0.02,0.01,0.0005,64.2,Normal\n'
  const sync = parseChrony(line)
  assert.deepEqual([sync?.isSynced, sync?.master], [true, 'ntp1.example.net'])
  assert.ok(Math.abs(Number(sync?.offsetNs) + 12_345) < 1e-6)
  assert.ok(Math.abs(Number(sync?.deviationNs) - 2_500) < 1e-6)
  assert.equal(parseChrony(line.replace('Normal', 'Not synchronised'))?.isSynced, false)
  assert.equal(parseChrony('506 Cannot talk to daemon\n'), undefined)
  assert.equal(parseChrony(undefined), undefined)
})

test('reads the time status of a PTP port', () => {
  const output = `sending: GET TIME_STATUS_NP
\t507c6f.fffe.1a2b3c-0 seq 0 RESPONSE MANAGEMENT TIME_STATUS_NP
\t\tmaster_offset              -17
\t\tingress_time               1795171264123456789
\t\tgmPresent                  true
\t\tgmIdentity                 001122.fffe.334455
`
  assert.deepEqual(parsePmc(output), {
    isSynced: true,
    master: '001122.fffe.334455',
    offsetNs: -17,
    deviationNs: undefined,
  })
  assert.equal(parsePmc('sending: GET TIME_STATUS_NP\n'), undefined)
})
