import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filterAdvice } from '../../../../../src/shared/query/filter/filter-advice.ts'

test('display filters of Wireshark are translated', () => {
  for (const [typed, meant] of [
    ['ip.addr==1.2.3.4', 'host 1.2.3.4'],
    ['ip.addr == 10.0.0.0/8', 'net 10.0.0.0/8'],
    ['tcp.port eq 443', 'tcp port 443'],
    ['ip.src == 10.0.0.1 && tcp.dstport == 443', 'src host 10.0.0.1 and tcp dst port 443'],
    ['!(udp.port == 53) || ipv6.dst == 2001:db8::1', 'not (udp port 53) or dst host 2001:db8::1'],
    ['ip.src != 10.0.0.1', 'not src host 10.0.0.1'],
    ['tcp.port in {80, 443 8080}', '(tcp port 80 or tcp port 443 or tcp port 8080)'],
    ['vlan.id == 100', 'vlan 100'],
    ['eth.addr == 02:00:00:00:00:01', 'ether host 02:00:00:00:00:01'],
  ] as const)
    assert.equal(
      filterAdvice(typed),
      `it is a display filter of Wireshark; in the syntax of tcpdump: ${meant}`,
      typed,
    )
})

test('a display filter without a translation gets an example', () => {
  for (const typed of [
    'http.request.method == "GET"',
    'frame.len > 100',
    'tcp.flags.syn==1',
    'tcp.port in {80..90}',
    'eth.addr == 1',
    'udp.port==53 && vlan.id==100',
    'vlan.id==100 || udp.port==53',
  ])
    assert.match(
      filterAdvice(typed) ?? '',
      /^it is a display filter .* such as: host 10\.1\.2\.3 and tcp/,
      typed,
    )
})

test('quotation marks, commas, networks, equals signs and names of protocols are corrected', () => {
  for (const [typed, meant] of [
    ['"tcp port 443"', 'tcp port 443'],
    ['‘tcp port 443’', 'tcp port 443'],
    ['port 80,443', '(port 80 or port 443)'],
    ['host 10.0.0.1, 10.0.0.2 and udp', '(host 10.0.0.1 or host 10.0.0.2) and udp'],
    ['host 10.0.0.1, host 10.0.0.2', 'host 10.0.0.1 or host 10.0.0.2'],
    ['port http,https', '(port http or port https)'],
    ['src host 10.0.0.1, 10.0.0.2', '(src host 10.0.0.1 or src host 10.0.0.2)'],
    ['10.0.0.1:80', '(host 10.0.0.1 and port 80)'],
    ['src 10.0.0.1:80 and tcp', '(src host 10.0.0.1 and src port 80) and tcp'],
    ['dst host 10.0.0.1:80', '(dst host 10.0.0.1 and dst port 80)'],
    ['host 10.0.0.0/8', 'net 10.0.0.0/8'],
    ['port = 443', 'port 443'],
    ['http', 'tcp port 80'],
    ['dns or tls', 'port 53 or tcp port 443'],
  ] as const)
    assert.equal(filterAdvice(typed), `did you mean: ${meant}`, typed)
})

test('other filters get no advice', () => {
  for (const typed of [
    'tcp  prt 80',
    'not ( tcp prt 80 )',
    'tcp and port http',
    'src host www.example.org',
    'tcp port',
    'frame contains "x"',
    '',
    'ether[0] & 1 = 0',
    'x'.repeat(2_000),
  ])
    assert.equal(filterAdvice(typed), undefined, typed)
})
