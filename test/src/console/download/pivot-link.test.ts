import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatPageState, parsePageState, withInstants } from '../../../../src/console/base/page-url.ts'
import { PIVOT_NAMES, pivotedState, withPivot } from '../../../../src/console/download/pivot-link.ts'
import { TIME_FORMS } from '../../../../src/shared/query/time/time-forms.ts'

const LINK =
  '#/pivot?src=192.0.2.1&dst=203.0.113.9&proto=TCP&sport=51234&dport=443&at=2026-11-02T09:00:01.5Z&before=10s&after=1m'
/** 2026-11-02T09:00:01.5Z */
const AT_NS = 1_793_610_001_500_000_000n
const SECOND_NS = 1_000_000_000n

const opened = (hash: string, zone = 'UTC') => withPivot(parsePageState(hash), zone)
const mistake = (hash: string) => {
  const state = parsePageState(hash)
  assert.equal(withPivot(state, 'UTC'), state, 'it stays as it is')
  try {
    pivotedState(state.values, 'UTC')
  } catch (error) {
    return (error as Error).message
  }
  return assert.fail(hash)
}

test('a link opens the timeline with range, filter and devices, and the lanes show the range', () => {
  const { view, values } = opened(`${LINK}&Device=lon*&Compression=zstd`)
  assert.equal(view, 'timeline')
  const { FilterBPF = '', 'view-from': from = '', 'view-to': to = '', ...others } = values
  assert.deepEqual(others, {
    Device: 'lon*',
    Compression: 'zstd',
    TSBegin: String(AT_NS - 10n * SECOND_NS),
    TSEnd: String(AT_NS + 60n * SECOND_NS),
  })
  const one =
    'tcp and ((src host 192.0.2.1 and src port 51234 and dst host 203.0.113.9 and dst port 443) or ' +
    '(src host 203.0.113.9 and src port 443 and dst host 192.0.2.1 and dst port 51234))'
  assert.equal(FilterBPF, `(${one}) or (vlan and ((${one}) or (vlan and (${one}))))`)
  assert.ok(BigInt(from) < BigInt(others.TSBegin ?? 0) && BigInt(to) > BigInt(others.TSEnd ?? 0))
  assert.deepEqual(withInstants(opened(LINK), 'UTC'), opened(LINK), 'and is settled')
})

test('what a program leaves empty counts as missing, and the margins are those of capfleet get', () => {
  const { values } = opened('#/pivot?src=192.0.2.1&dst=&proto=&sport=&dport=&at=1793610001&before=&after=')
  assert.match(
    values.FilterBPF ?? '',
    /^\(ip and \(\(src host 192\.0\.2\.1\) or \(dst host 192\.0\.2\.1\)\)\) or/,
  )
  const [at, second] = [1_793_610_001n * SECOND_NS, SECOND_NS]
  assert.deepEqual([values.TSBegin, values.TSEnd], [String(at - 30n * second), String(at + 300n * second)])
})

test('the time may have any form that the API accepts; without a zone it is in that of the page', () => {
  for (const [form, { examples }] of Object.entries(TIME_FORMS))
    for (const at of examples) {
      const { view } = opened(`#/pivot?src=192.0.2.1&at=${encodeURIComponent(at)}`)
      assert.equal(view, form === 'afterBegin' ? 'pivot' : 'timeline', at)
    }
  for (const [at, zone] of [
    ['2026-11-02T09:00:01.500000+0000', 'UTC'],
    ['2026-11-02T10:00:01.5+01:00', 'UTC'],
    ['2026-11-02 10:00:01.5', 'Europe/Berlin'],
    ['1793610001.5', 'UTC'],
    ['1793610001500', 'Europe/Berlin'],
  ] as const)
    assert.equal(opened(`#/pivot?src=192.0.2.1&before=0s&at=${at}`, zone).values.TSBegin, String(AT_NS), at)
})

test('FilterBPFDecap of the link makes the filter for the innermost packet', () => {
  const { values } = opened(`${LINK}&FilterBPFDecap=1`)
  assert.equal(values.FilterBPFDecap, 'true')
  assert.doesNotMatch(values.FilterBPF ?? '', /vlan/)
})

test('a link with a mistake stays, and the mistake has its name', () => {
  for (const [hash, said] of [
    ['#/pivot', /^src and dst are missing/],
    ['#/pivot?src=192.0.2.1', /^at is missing; give the time of the alert/],
    ['#/pivot?src=192.0.2.300&at=now', /^src "192\.0\.2\.300" is no IPv4 or IPv6 address/],
    ['#/pivot?src=192.0.2.1&at=yesterday%20noon', /^at "yesterday noon"/],
    ['#/pivot?src=192.0.2.1&at=now&proto=https', /^proto "https" is not a known protocol/],
    ['#/pivot?src=192.0.2.1&at=now&sport=x', /^sport must be a port/],
    ['#/pivot?src=192.0.2.1&at=now&after=5min', /^after must be a number with a unit/],
    ['#/pivot?src=192.0.2.1&at=now&FilterBPF=udp', /^FilterBPF is computed from the alert/],
    ['#/pivot?src=192.0.2.1&at=now&TSBegin=now', /^TSBegin is computed from the alert/],
    ['#/pivot?src=192.0.2.1&at=now&port=80', /^port is unknown; a link from an alert has src, dst/],
  ] as const)
    assert.match(mistake(hash), said)
})

test('other views are left alone', () => {
  const state = parsePageState('#/timeline?src=1&at=2')
  assert.equal(withPivot(state, 'UTC'), state)
  assert.equal(formatPageState(parsePageState('#/pivot?src=1')), '#/pivot?src=1')
  assert.equal(PIVOT_NAMES.length, 8)
})
