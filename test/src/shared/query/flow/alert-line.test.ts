import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Alert, readAlertLine } from '../../../../../src/shared/query/flow/alert-line.ts'

const NINE_NS = 1_793_610_000_000_000_000n

function alertOf(fields: object, zone?: string): Alert {
  const alert = readAlertLine(JSON.stringify(fields), zone)
  assert.ok('flow' in alert, 'about' in alert ? alert.about : '')
  return alert
}

const EVE = {
  timestamp: '2026-11-02T09:00:01.123456+0000',
  flow_id: 586_497_171_462_735,
  event_type: 'alert',
  src_ip: '192.0.2.1',
  src_port: 51_234,
  dest_ip: '203.0.113.9',
  dest_port: 443,
  proto: 'TCP',
  alert: { action: 'allowed', gid: 1, signature_id: 1, rev: 1, signature: 'ET one', severity: 1 },
}

test('Suricata: an alert has the five-tuple, the time to the microsecond, and the signature', () => {
  assert.deepEqual(alertOf(EVE), {
    flow: {
      bits: 32,
      source: { host: '192.0.2.1', port: 51_234 },
      destination: { host: '203.0.113.9', port: 443 },
      protocol: 6,
    },
    firstNs: NINE_NS + 1_123_456_000n,
    lastNs: NINE_NS + 1_123_456_000n,
    isTunnelled: false,
    title: 'ET one',
  })
  assert.equal(alertOf({ ...EVE, timestamp: '2026-11-02T10:00:01.5+0100' }).firstNs, NINE_NS + 1_500_000_000n)
})

test('Suricata: an event with a flow begins with it, and other events are as good as alerts', () => {
  const started = alertOf({ ...EVE, flow: { start: '2026-11-02T08:59:00.000000+0000', pkts_toserver: 3 } })
  assert.deepEqual([started.firstNs, started.lastNs], [NINE_NS - 60_000_000_000n, NINE_NS + 1_123_456_000n])
  const flow = alertOf({
    ...EVE,
    event_type: 'flow',
    alert: undefined,
    timestamp: '2026-11-02T09:10:00.000000+0000',
    flow: { start: '2026-11-02T09:00:00.000000+0000', end: '2026-11-02T09:05:00.000000+0000' },
  })
  assert.deepEqual([flow.firstNs, flow.lastNs, flow.title], [NINE_NS, NINE_NS + 600_000_000_000n, 'flow'])
  assert.equal(alertOf({ ...EVE, event_type: 'dns', proto: 'UDP', dns: { type: 'query' } }).flow.protocol, 17)
})

test('Suricata: tunnels, ICMP and numbers of protocols', () => {
  const tunnel = {
    src_ip: '10.0.0.1',
    src_port: 0,
    dest_ip: '10.0.0.2',
    dest_port: 0,
    proto: 'GRE',
    depth: 1,
  }
  assert.equal(alertOf({ ...EVE, tunnel }).isTunnelled, true)
  const icmp = alertOf({ ...EVE, proto: 'ICMP', src_port: 0, dest_port: 0, icmp_type: 8, icmp_code: 0 })
  assert.deepEqual([icmp.flow.protocol, icmp.flow.source.port], [1, undefined])
  assert.equal(alertOf({ ...EVE, proto: '103' }).flow.protocol, 103)
})

test('Suricata: events about no address are said to be that', () => {
  const { src_ip: _source, dest_ip: _destination, ...rest } = EVE
  assert.deepEqual(readAlertLine(JSON.stringify({ ...rest, event_type: 'stats' }), undefined), {
    about: 'event_type "stats"',
  })
  // Decoder events of packets without IP have empty texts, or none.
  assert.ok('about' in readAlertLine(JSON.stringify({ ...EVE, src_ip: '', dest_ip: '' }), undefined))
})

const CONNECTION = {
  ts: 1_793_610_001.123456,
  uid: 'CHhAvVGS1DHFjwGM9',
  'id.orig_h': '2001:db8::1',
  'id.orig_p': 51_234,
  'id.resp_h': '2001:db8::2',
  'id.resp_p': 53,
  proto: 'udp',
  duration: 0.25,
  conn_state: 'SF',
}

test('Zeek: a connection lasts as long as its duration', () => {
  const { flow, firstNs, lastNs, title } = alertOf(CONNECTION)
  assert.deepEqual(flow.source, { host: '2001:db8::1', port: 51_234 })
  assert.deepEqual(flow.destination, { host: '2001:db8::2', port: 53 })
  assert.deepEqual([firstNs, lastNs], [NINE_NS + 1_123_456_000n, NINE_NS + 1_373_456_000n])
  assert.equal(title, 'a connection')
  const { duration: _duration, ...unanswered } = CONNECTION
  assert.equal(alertOf(unanswered).lastNs, firstNs)
  assert.equal(alertOf({ ...CONNECTION, duration: 9.5e-7 }).lastNs, firstNs + 950n)
})

test('Zeek: times as ISO and in milliseconds, nested ids, ICMP, tunnels, protocols without a name', () => {
  for (const ts of ['2026-11-02T09:00:01.123Z', 1_793_610_001_123])
    assert.equal(alertOf({ ...CONNECTION, ts }).firstNs, NINE_NS + 1_123_000_000n)
  const nested = alertOf({
    ts: CONNECTION.ts,
    proto: 'tcp',
    id: { orig_h: '10.0.0.1', orig_p: 1, resp_h: '10.0.0.2', resp_p: 2 },
  })
  assert.deepEqual(nested.flow.destination, { host: '10.0.0.2', port: 2 })
  const icmp = alertOf({ ...CONNECTION, proto: 'icmp', 'id.orig_p': 135, 'id.resp_p': 136 })
  assert.deepEqual([icmp.flow.protocol, icmp.flow.source.port], [58, undefined])
  assert.equal(alertOf({ ...CONNECTION, tunnel_parents: [] }).isTunnelled, false)
  assert.equal(alertOf({ ...CONNECTION, tunnel_parents: ['C1'] }).isTunnelled, true)
  const other = alertOf({ ...CONNECTION, proto: 'unknown_transport', ip_proto: 47 })
  assert.deepEqual([other.flow.protocol, other.flow.source.port], [47, undefined])
})

test('Zeek: notices with a connection, with addresses alone, and with neither', () => {
  const notice = {
    ts: 1_793_610_001,
    note: 'SSH::Password_Guessing',
    msg: '192.0.2.1 appears to be guessing',
  }
  const own = alertOf({ ...notice, ...CONNECTION, src: '2001:db8::1', dst: '2001:db8::2', p: 22 })
  assert.equal(own.flow.destination.port, 53)
  assert.equal(own.title, 'SSH::Password_Guessing: 192.0.2.1 appears to be guessing')
  assert.deepEqual(alertOf({ ...notice, src: '192.0.2.1', dst: '192.0.2.2', p: 22, proto: 'tcp' }).flow, {
    bits: 32,
    source: { host: '192.0.2.1', port: undefined },
    destination: { host: '192.0.2.2', port: 22 },
    protocol: 6,
  })
  assert.equal(alertOf({ ...notice, src: '192.0.2.1' }).flow.destination.host, undefined)
  assert.ok('about' in readAlertLine(JSON.stringify(notice), undefined))
})

test('a time without a zone needs one', () => {
  const local = { ...EVE, timestamp: '2026-11-02T10:00:01.000000' }
  assert.throws(() => alertOf(local), {
    message: /timestamp "2026-11-02T10:00:01\.000000" has no time zone; give it with --zone/,
  })
  assert.equal(alertOf(local, 'Europe/Berlin').firstNs, NINE_NS + 1_000_000_000n)
})

test('other lines are refused, without repeating bytes that could control a terminal', () => {
  for (const [line, said] of [
    ['\u001b[2J{', /^"\\u001b\[2J" is not understood; a line is JSON \(for Zeek, set LogAscii::use_json\)/],
    ['"text"', /^"text" is not understood; a line is JSON/],
    ['[]', /^"\[\]" is not understood; a line is JSON/],
    ['null', /^"null" is not understood; a line is JSON/],
    ['tcp 192.0.2.1:51234 -> 203.0.113.9:443', /^it has no time$/],
    ['{"src_ip":"10.0.0.1"', /^it is not a whole JSON object$/],
    ['{"src_ip":"10.0.0.1"}', /^it is neither an event of Suricata/],
    ['{"ts":1793610001,"src":"\u001b[2J"}', /^it is not a whole JSON object$/],
    ['{"ts":1793610001,"src":"\\u001b[2J"}', /^src "\\u001b\[2J" is no IPv4 or IPv6 address/],
    ['{"ts":1793610001,"src":"10.0.0.1","duration":-1}', /^duration must be a number of seconds, got "-1"/],
    ['{"ts":202611020901,"src":"10.0.0.1"}', /^ts "202611020901" has 12 digits/],
    ['{"event_type":"alert","src_ip":"10.0.0.1"}', /^timestamp is missing$/],
    ['{"ts":"now","src":"10.0.0.1"}', /^ts must be a date with a time, or seconds since 1970, got "now"/],
    ['{"ts":"1\\u009b2J\\u202e","src":"10.0.0.1"}', /^ts "1\\u009b2J\\u202e" /],
  ] as const)
    assert.throws(() => readAlertLine(line, undefined), { code: 'bad-parameter', message: said }, line)
})

test('a line of text is a conversation with its time', () => {
  const alert = readAlertLine('2026-11-02T09:00:01Z tcp 192.0.2.1:51234 -> 203.0.113.9:443', undefined)
  assert.deepEqual(alert, {
    flow: {
      bits: 32,
      source: { host: '192.0.2.1', port: 51_234 },
      destination: { host: '203.0.113.9', port: 443 },
      protocol: 6,
    },
    firstNs: NINE_NS + 1_000_000_000n,
    lastNs: NINE_NS + 1_000_000_000n,
    isTunnelled: false,
    title: 'a conversation',
  })
})
