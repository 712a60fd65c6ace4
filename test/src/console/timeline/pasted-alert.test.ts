import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isPastedAlert, selectAlert } from '../../../../src/console/timeline/pasted-alert.ts'

const EVENT =
  '{"timestamp":"2026-11-02T09:01:27+0000","event_type":"alert","src_ip":"192.0.2.1","src_port":51234,"dest_ip":"203.0.113.9","dest_port":443,"proto":"TCP"}'
const AT_NS = 1_793_610_087_000_000_000n
const SECOND_NS = 1_000_000_000n

test('addresses and networks are searched for, and everything else is an alert', () => {
  for (const text of [
    '',
    '192.0.2.1',
    '192.0.2.0/24',
    '2001:db8::1',
    '2001:db8::/32, 192.0.2.1',
    '192.0.2.1 203.0.113.9',
    '192.0.2.1 # of lon1',
    'example.org',
  ])
    assert.equal(isPastedAlert(text), false, text)
  for (const text of [
    EVENT,
    '192.0.2.1:443',
    '192.0.2.1 -> 203.0.113.9',
    '192.0.2.1:1->203.0.113.9:2',
    '[2001:db8::1]:443',
    '11/02/2026-09:01:27.25  [**] [1:1:1] Checkin #2 [**] [Priority: 2] {TCP} 192.0.2.1:1 -> 203.0.113.9:2',
    '192.0.2.1 203.0.113.9 tcp',
    '192.0.2.1 51234 203.0.113.9 443',
    '2026-11-02T09:01:27Z 192.0.2.1',
  ])
    assert.equal(isPastedAlert(text), true, text)
})

test('selects range, filter and the hosts whose devices are searched, and nothing of what was selected before', () => {
  const before = {
    Device: 'lon1',
    FilterAddresses: '10.0.0.1',
    MaxPackets: '5',
    Compression: 'zstd',
    TSBegin: '1',
    TSEnd: '2',
    seen: '10.0.0.1',
  }
  const changes = selectAlert(EVENT, before, 'UTC')
  for (const name of ['Device', 'FilterAddresses', 'MaxPackets', 'seen', 'FilterBPFDecap'])
    assert.ok(name in changes && changes[name] === undefined, name)
  assert.ok(!('Compression' in changes))
  assert.equal(changes.TSBegin, String(AT_NS - 30n * SECOND_NS))
  assert.equal(changes.TSEnd, String(AT_NS + 300n * SECOND_NS))
  assert.equal(changes.saw, '192.0.2.1,203.0.113.9')
  assert.match(
    changes.FilterBPF ?? '',
    /src host 192\.0\.2\.1 and src port 51234 and dst host 203\.0\.113\.9 and dst port 443/,
  )
  assert.ok(BigInt(changes['view-from'] ?? 0) < BigInt(changes.TSBegin ?? 0))
})

test('without a time it is looked for in the selected range', () => {
  const flow = 'tcp 192.0.2.1:51234 -> 203.0.113.9:443'
  const range = { TSBegin: '2026-11-02T09:00', TSEnd: '+10m', TSZone: 'Europe/Berlin' }
  const { TSBegin, TSEnd, TSZone, saw, FilterBPF } = selectAlert(flow, range, 'UTC')
  assert.deepEqual({ TSBegin, TSEnd, TSZone }, range)
  assert.equal(saw, '192.0.2.1,203.0.113.9')
  assert.match(FilterBPF ?? '', /^\(tcp and /)
  assert.throws(
    () => selectAlert(flow, {}, 'UTC'),
    /^CapfleetError: the alert has no time; add it, or select a range/,
  )
})

test('an alert inside a tunnel is looked for at all devices, and an event without an address is refused', () => {
  const tunnelled = EVENT.replace('{', '{"tunnel":{"src_ip":"10.0.0.1"},')
  const changes = selectAlert(tunnelled, {}, 'UTC')
  assert.deepEqual([changes.FilterBPFDecap, changes.saw], ['true', undefined])
  assert.throws(
    () => selectAlert('{"event_type":"stats","stats":{}}', {}, 'UTC'),
    /has no address \(event_type "stats"\)/,
  )
})
