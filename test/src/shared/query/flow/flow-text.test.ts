import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFlowText } from '../../../../../src/shared/query/flow/flow-text.ts'

/** 2026-11-02T09:01:27Z */
const AT_NS = 1_793_610_087_000_000_000n

function shown(line: string, zone?: string): string {
  const { flow, atNs, title } = readFlowText(line, zone)
  const end = ({ host = '*', port }: (typeof flow)['source']) => `${host}#${port ?? ''}`
  return `${flow.protocol ?? '*'} ${end(flow.source)} ${end(flow.destination)} ${atNs === undefined ? '-' : atNs - AT_NS} ${title}`.trim()
}

const WHOLE = '6 192.0.2.1#51234 203.0.113.9#443'

test('a conversation is read however its five parts are set apart', () => {
  for (const line of [
    'tcp 192.0.2.1:51234 -> 203.0.113.9:443',
    '192.0.2.1:51234->203.0.113.9:443,tcp',
    '192.0.2.1:51234 → 203.0.113.9:443 TCP',
    '192.0.2.1 51234 203.0.113.9 443 tcp',
    '192.0.2.1,203.0.113.9,51234,443,TCP',
    '{TCP} 192.0.2.1:51234 -> 203.0.113.9:443',
    'src=192.0.2.1 sport=51234 dst=203.0.113.9 dport=443 proto=tcp',
    'src_ip: 192.0.2.1, src_port: 51234, dest_ip: 203.0.113.9, dest_port: 443, proto: TCP',
    '("192.0.2.1", 51234, "203.0.113.9", 443, "tcp")',
    '192.0.2.1\t51234\t203.0.113.9\t443\ttcp',
  ])
    assert.equal(shown(line), `${WHOLE} -`, line)
  assert.equal(shown('[2001:db8::1]:51234 -> [2001:db8::2]:53 udp'), '17 2001:db8::1#51234 2001:db8::2#53 -')
  assert.equal(shown('2001:DB8:0::1 -> 2001:db8::2 icmp'), '58 2001:db8::1# 2001:db8::2# -')
  assert.equal(shown('192.0.2.1 -> 203.0.113.9:443'), '* 192.0.2.1# 203.0.113.9#443 -')
  assert.equal(shown('IP 192.0.2.1.51234 > 203.0.113.9.443: Flags [S], seq 1, win 64240'), `${WHOLE} -`)
  assert.equal(shown('IP6 fe80::1.5353 > ff02::fb.5353: UDP, length 40'), '17 fe80::1#5353 ff02::fb#5353 -')
  assert.equal(shown('192.0.2.1 203.0.113.9 443'), '* 192.0.2.1# 203.0.113.9#443 -')
  assert.equal(shown('udp 192.0.2.1 53'), '17 192.0.2.1#53 *# -')
  assert.equal(shown('tcp 2001:db8:: 80'), '6 2001:db8::#80 *# -')
  assert.equal(shown('192.0.2.1'), '* 192.0.2.1# *# -')
})

test('names of the parts count, whatever their order', () => {
  for (const line of [
    'src_ip=192.0.2.1 dest_ip=203.0.113.9 dest_port=443 src_port=51234 proto=6',
    'dest_ip=203.0.113.9 src_ip=192.0.2.1 src_port=51234 dest_port=443 proto=TCP',
    'dport=443 dst=203.0.113.9 sport=51234 src=192.0.2.1 protocol: tcp',
    'src host 192.0.2.1 and src port 51234 and dst host 203.0.113.9 and dst port 443 and tcp',
    'spt=51234 dpt=443 src=192.0.2.1 dst=203.0.113.9 proto=TCP',
  ])
    assert.equal(shown(line), `${WHOLE} -`, line)
  for (const [line, expected] of [
    ['src_ip=192.0.2.1 dst_ip=203.0.113.9 proto=17', '17 192.0.2.1# 203.0.113.9# -'],
    ['src_ip=192.0.2.1 proto=6 dst_ip=203.0.113.9 dst_port=443', '6 192.0.2.1# 203.0.113.9#443 -'],
    ['src_ip=192.0.2.1 dst_ip=203.0.113.9 src_port=51234', '* 192.0.2.1#51234 203.0.113.9# -'],
    ['dst=203.0.113.9 src=192.0.2.1 dport=443', '* 192.0.2.1# 203.0.113.9#443 -'],
    ['src=192.0.2.1 dst_port=443 dst=203.0.113.9', '* 192.0.2.1# 203.0.113.9#443 -'],
    ['src host 192.0.2.1 and dst port 53', '* 192.0.2.1# *#53 -'],
    ['src host 192.0.2.1 and dst host 203.0.113.9 and src port 53', '* 192.0.2.1#53 203.0.113.9# -'],
  ] as const)
    assert.equal(shown(line), expected, line)
})

test('its time is recognised, wherever it is', () => {
  const flow = 'tcp 192.0.2.1:51234 -> 203.0.113.9:443'
  for (const time of [
    '2026-11-02T09:01:27Z',
    '2026-11-02 09:01:27Z',
    '2026-11-02T10:01:27+0100',
    '2026-11-02T10:01:27.000+01:00',
    '1793610087.000000',
  ])
    for (const line of [`${time} ${flow}`, `${flow} ${time}`, `${flow} at ${time}`, `${time},${flow}`])
      assert.equal(shown(line), `${WHOLE} 0`, line)
  for (const time of ['1793610087', '1793610087000', '1793610087000000', '1793610087000000000'])
    for (const line of [
      `${time} ${flow}`,
      `${flow} at ${time}`,
      `ts=${time},${flow}`,
      `time: ${time} ${flow}`,
    ])
      assert.equal(shown(line), `${WHOLE} 0`, line)
  assert.equal(shown('2026-11-02 09:01:27Z,192.0.2.1,51234,203.0.113.9,443,tcp'), `${WHOLE} 0`)
  assert.equal(shown('2026-11-02 09:01:27,192.0.2.1,51234,203.0.113.9,443,tcp', 'UTC'), `${WHOLE} 0`)
  assert.equal(shown(`2026-11-02 09:01:27,250 ${flow}`, 'UTC'), `${WHOLE} 250000000`)
  assert.equal(shown(`2026-11-02 10:01:27.5 ${flow}`, 'Europe/Berlin'), `${WHOLE} 500000000`)
  assert.throws(() => readFlowText(`2026-11-02 10:01:27 ${flow}`, undefined), /has no time zone/)
})

test('a line of fast.log has the time of the sensor, and a message that is not read', () => {
  const line =
    '11/02/2026-10:01:27.250000  [**] [1:2100498:7] GPL ATTACK_RESPONSE id check 10.9.9.9 returned root [**] ' +
    '[Classification: Potentially Bad Traffic] [Priority: 2] {TCP} 192.0.2.1:51234 -> 203.0.113.9:443'
  assert.equal(
    shown(line, 'Europe/Berlin'),
    `${WHOLE} 250000000 [1:2100498:7] GPL ATTACK_RESPONSE id check 10.9.9.9 returned root`,
  )
  const six = line
    .replace('192.0.2.1:', 'fe80::1:')
    .replace('203.0.113.9:', 'ff02::fb:')
    .replace('TCP', 'UDP')
  assert.match(shown(six, 'Europe/Berlin'), /^17 fe80::1#51234 ff02::fb#443 /)
  const dropped = line.replace('[**]', '[Drop] [**]')
  assert.match(shown(dropped, 'Europe/Berlin'), /^6 192\.0\.2\.1#51234 /)
  assert.throws(() => readFlowText(line, undefined), /"2026-11-02T10:01:27.250000" has no time zone/)
})

test('what would have to be guessed is refused', () => {
  for (const [line, said] of [
    ['tcp 443', /not clear what "443" is/],
    ['', /it has no address/],
    ['192.0.2.1 192.0.2.2 192.0.2.3', /more than two addresses/],
    ['192.0.2.1 51234 443', /not clear what "443" is/],
    ['192.0.2.1:1 203.0.113.9:2 443', /not clear what "443" is/],
    ['192.0.2.1 203.0.113.9 1 2 6', /not clear what "2 6" is/],
    ['192.0.2.1 example.org', /"example\.org" is not understood/],
    ['tcp 192.0.2.1:51234 203.0.113.9:443 1234567890', /"1234567890" is not understood/],
    ['192.0.2.1\t203.0.113.9\tTCP\t74', /not clear what "74" is/],
    ['203.0.113.9:443 192.0.2.1 TCP 60', /not clear what "60" is/],
    ['2026-11-02 09:01:27,17,192.0.2.1,51234', /not clear what "17" is/],
    ['RDP 192.0.2.1:51234 -> 203.0.113.9:3389', /"RDP" is not understood/],
    ['gre 192.0.2.1:51234 -> 203.0.113.9:3389', /the protocol "gre" has no ports/],
    ['tcp fe80::1:5353 -> ff02::fb:5353', /"fe80::1:5353" may end with a port; write \[address\]:port/],
    ['09:01:27 192.0.2.1:1 203.0.113.9:2', /the time "09:01:27" has no date/],
    ['192.0.2.1 -> 203.0.113.9 [dport: 443]', /is not understood/],
    ['192.0.2.1:1 <- 203.0.113.9:2', /an arrow must point from the source/],
    ['src=192.0.2.1 src=203.0.113.9', /two addresses of the source/],
    ['tcp udp 192.0.2.1', /"udp" is not understood/],
    ['192.0.2.1 -> 2001:db8::1', /must both be IPv4 or both be IPv6/],
    ['192.0.2.300 tcp', /"192\.0\.2\.300" is no IPv4 or IPv6 address/],
    ['192.0.2.1:99999 tcp', /must be a port from 0 to 65535/],
    ['192.0.2.0/24 tcp', /"192\.0\.2\.0\/24" is not understood/],
    ['2026-11-02T09:01:27Z 2026-11-02T09:01:28Z 192.0.2.1', /is not understood/],
  ] as const)
    assert.throws(() => readFlowText(line, 'UTC'), said, line)
})
