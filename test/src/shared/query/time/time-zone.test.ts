import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import { resolveTimeZone } from '../../../../../src/shared/query/time/time-zone.ts'
import { ZONE_ALIASES } from '../../../../../src/shared/query/time/zone-aliases.ts'
import { skipWithout } from '../../../../support/set-up-tools.ts'

const clockOf = (zone: string): string =>
  [Date.UTC(2026, 0, 1), Date.UTC(2026, 6, 1)]
    .map((ms) => new Intl.DateTimeFormat('sv-SE', { timeZone: zone, timeZoneName: 'longOffset' }).format(ms))
    .join()
const resolve = (text: string): string => resolveTimeZone(text, 'TSZone')

for (const [spellings, zone] of [
  [['Asia/Singapore', 'Singapore', 'singapore', 'SINGAPORE', 'asia/singapore'], 'Asia/Singapore'],
  [['Kolkata', 'calcutta', 'Asia/Kolkata', 'Asia/Calcutta'], 'Asia/Kolkata'],
  [['Kyiv', 'kiev', 'Europe/Kyiv'], 'Europe/Kiev'],
  [['New_York', 'new_york', 'New York', 'America/New_York'], 'America/New_York'],
  [['Buenos_Aires', 'America/Argentina/Buenos_Aires', 'America/Buenos_Aires'], 'America/Buenos_Aires'],
  [['UTC', 'utc', 'Etc/UTC', 'Zulu', 'GMT'], 'UTC'],
  [['Louisville'], 'America/Louisville'],
] as const) {
  test(`${spellings.join(', ')} are the same zone`, () => {
    for (const spelling of spellings) assert.equal(clockOf(resolve(spelling)), clockOf(zone), spelling)
  })
}

for (const zone of [
  'Asia/Kolkata',
  'Asia/Ho_Chi_Minh',
  'Asia/Kathmandu',
  'Asia/Yangon',
  'Atlantic/Faroe',
  'America/Nuuk',
  'Europe/Kyiv',
  'Pacific/Kanton',
  'Australia/NSW',
  'Brazil/East',
  'Canada/Eastern',
  'US/Pacific',
  'PRC',
  'ROK',
  'NZ',
  'GB-Eire',
  'EST5EDT',
  'Etc/GMT+5',
]) {
  test(`${zone}, which Intl understands but does not list, is a zone`, () => {
    assert.equal(resolve(zone.toLowerCase()), zone)
  })
}

const DATABASE = '/usr/share/zoneinfo/tzdata.zi'

test('every zone of the machine’s own database that Intl understands is known', {
  skip: skipWithout(existsSync(DATABASE), `there is no ${DATABASE} (apt-get install tzdata)`),
}, () => {
  const names = readFileSync(DATABASE, 'utf8')
    .split('\n')
    // "Z <name> <its first rule>" and "L <target> <name>"
    .flatMap((line) => /^(?:Z|L \S+) (\S+)/.exec(line)?.[1] ?? [])
  assert.ok(names.length > 500)
  const known = new Set([...Intl.supportedValuesOf('timeZone'), ...ZONE_ALIASES])
  const isUnderstood = (timeZone: string): boolean => {
    try {
      return new Intl.DateTimeFormat('en', { timeZone }) !== undefined
    } catch {
      return false
    }
  }
  assert.deepEqual(
    names.filter((name) => isUnderstood(name) && !known.has(name)),
    [],
  )
})

test('every zone of the database is found by its full name and its last part', () => {
  for (const zone of [...Intl.supportedValuesOf('timeZone'), ...ZONE_ALIASES]) {
    assert.equal(resolve(zone), zone)
    assert.equal(resolve(zone.toUpperCase()), zone)
    const city = zone.slice(zone.lastIndexOf('/') + 1)
    try {
      assert.equal(clockOf(resolve(city)), clockOf(zone), city)
    } catch (error) {
      assert.ok(error instanceof CapfleetError && error.code === 'ambiguous-timezone', city)
    }
  }
})

for (const city of ['West', 'Central', 'eastern', 'Pacific']) {
  test(`${city} is ambiguous and the candidates are listed`, () => {
    assert.throws(
      () => resolve(city),
      (error) => {
        assert.ok(error instanceof CapfleetError)
        assert.equal(error.code, 'ambiguous-timezone')
        assert.equal(error.details.param, 'TSZone')
        const candidates = error.details.members?.candidates as string[]
        assert.ok(candidates.length >= 2)
        for (const candidate of candidates) assert.equal(resolve(candidate), candidate)
        return true
      },
    )
  })
}

test('an unknown zone names near ones', () => {
  assert.throws(
    () => resolve('Singapor'),
    (error) =>
      error instanceof CapfleetError &&
      error.code === 'bad-timezone' &&
      error.message.includes('Asia/Singapore'),
  )
})

for (const text of [
  '',
  '+05:00',
  'Mars/Olympus',
  '../../etc/passwd',
  'a'.repeat(10_000),
  'Asia/',
  '%00',
  '__proto__',
  'IST',
  'PST',
]) {
  test(`refuses ${JSON.stringify(text.slice(0, 30))}`, () => {
    assert.throws(
      () => resolve(text),
      (error) => error instanceof CapfleetError && error.code === 'bad-timezone',
    )
  })
}
