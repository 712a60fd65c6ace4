import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  changed,
  formatPageState,
  parsePageState,
  typedEnd,
  VIEWS,
  withInstants,
} from '../../../../src/console/base/page-url.ts'

test('the state of the page is read from the address as it was written', () => {
  const values = fc.dictionary(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }))
  fc.assert(
    fc.property(fc.constantFrom(...VIEWS), values, (view, given) => {
      const state = { view, values: { ...given } }
      assert.deepEqual(parsePageState(formatPageState(state)), state)
    }),
  )
})

test('an unknown view is the fleet, and an empty value counts as missing', () => {
  assert.deepEqual(parsePageState('#/nowhere?a=1'), { view: 'fleet', values: { a: '1' } })
  assert.equal(
    formatPageState(changed(parsePageState('#/queue?a=1&b=2'), { a: undefined, b: '' })),
    '#/queue',
  )
})

test('a link with the earlier name of a view shows the view', () => {
  assert.deepEqual(parsePageState('#/live?live-device=lon1'), {
    view: 'events',
    values: { 'live-device': 'lon1' },
  })
})

test('the range of a link is in nanoseconds: local times are those of the zone, and integers are unchanged', () => {
  const ends = (hash: string) => {
    const { TSBegin, TSEnd } = withInstants(parsePageState(hash), 'Europe/Berlin').values
    return [TSBegin, TSEnd]
  }
  assert.deepEqual(ends('#/timeline?TSBegin=20261102_090100&TSEnd=2026-11-02T08:02:00Z'), [
    '1793606460000000000',
    '1793606520000000000',
  ])
  assert.deepEqual(ends('#/timeline?TSBegin=1793606460&TSEnd=now'), ['1793606460', 'now'])
  assert.deepEqual(ends('#/timeline?TSBegin=x'), ['x', undefined])
})

test('days of a link keep their names, and the zone in which they begin', () => {
  const rangeOf = (hash: string, zone = 'Europe/Berlin') => {
    const { TSBegin, TSEnd, TSZone } = withInstants(parsePageState(hash), zone).values
    return [TSBegin, TSEnd, TSZone]
  }
  const days = '#/timeline?TSBegin=yesterday&TSEnd=today'
  assert.deepEqual(rangeOf(days), ['yesterday', 'today', 'Europe/Berlin'])
  assert.deepEqual(rangeOf(`${days}&TSZone=Asia/Tokyo`), ['yesterday', 'today', 'Asia/Tokyo'])
  assert.deepEqual(rangeOf(`${days}&TSZone=Tokyo`), ['yesterday', 'today', 'Asia/Tokyo'])
  assert.deepEqual(rangeOf('#/timeline?TSBegin=20261102_090100&TSEnd=now&TSZone=Tokyo'), [
    '1793577660000000000',
    'now',
    undefined,
  ])
})

test('a range of a link in an unknown zone stays as it is, and does not become one of the zone of the page', () => {
  const rangeOf = (ends: string) => {
    const { TSBegin, TSEnd, TSZone } = withInstants(
      parsePageState(`#/timeline?${ends}&TSZone=Atlantis`),
      'Europe/Berlin',
    ).values
    return [TSBegin, TSEnd, TSZone]
  }
  assert.deepEqual(rangeOf('TSBegin=yesterday&TSEnd=today'), ['yesterday', 'today', 'Atlantis'])
  assert.deepEqual(rangeOf('TSBegin=20261102_090100&TSEnd=now'), ['20261102_090100', 'now', 'Atlantis'])
  assert.deepEqual(rangeOf('TSBegin=2026-11-02T08:01:00Z&TSEnd=20261102_090100'), [
    '1793606460000000000',
    '20261102_090100',
    'Atlantis',
  ])
  // These are the same in each zone.
  assert.deepEqual(rangeOf('TSBegin=2026-11-02T08:01:00Z&TSEnd=now'), [
    '1793606460000000000',
    'now',
    undefined,
  ])
  assert.deepEqual(rangeOf('TSBegin=-1h&TSEnd=1793606520000000000'), [
    '-1h',
    '1793606520000000000',
    undefined,
  ])
  assert.deepEqual(rangeOf('TSBegin=x&TSEnd=now'), ['x', 'now', undefined])
})

test('the zone of a word that is replaced is forgotten', () => {
  const tokyo = { TSBegin: 'yesterday', TSEnd: 'now', TSZone: 'Asia/Tokyo' }
  assert.deepEqual(typedEnd(tokyo, 'TSBegin', 'today', 'Europe/Berlin'), {
    TSBegin: 'today',
    TSZone: 'Europe/Berlin',
  })
  const unknown = { TSBegin: 'yesterday', TSEnd: 'today', TSZone: 'Atlantis' }
  assert.deepEqual(typedEnd(unknown, 'TSBegin', 'today', 'UTC'), { TSBegin: 'today', TSZone: 'Atlantis' })
  assert.deepEqual(typedEnd({ ...unknown, TSEnd: 'now' }, 'TSBegin', 'today', 'UTC'), {
    TSBegin: 'today',
    TSZone: 'UTC',
  })
})

test('a day that is typed is one of the zone of the page, also when that changes before the other end is typed', () => {
  const begun = typedEnd({}, 'TSBegin', ' yesterday ', 'Europe/Berlin')
  assert.deepEqual(begun, { TSBegin: 'yesterday', TSZone: 'Europe/Berlin' })
  const values = { TSBegin: 'yesterday', TSZone: 'Europe/Berlin' }
  assert.deepEqual(typedEnd(values, 'TSEnd', 'today', 'UTC'), { TSEnd: 'today', TSZone: 'Europe/Berlin' })
  assert.deepEqual(typedEnd(values, 'TSBegin', '-1h', 'UTC'), { TSBegin: '-1h', TSZone: undefined })
  assert.deepEqual(typedEnd(values, 'TSBegin', '', 'UTC'), { TSBegin: undefined, TSZone: undefined })
})
