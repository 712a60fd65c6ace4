import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSelected, selectDevices } from '../../../../src/gateway/fleet/select-devices.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { ownProcessorMs } from '../../../support/processes/processor-time.ts'

const FLEET = [
  { name: 'nyc1', site: 'us' },
  { name: 'lon1', site: 'eu' },
  { name: 'lon2', site: 'eu' },
  { name: 'lab', site: undefined },
]

for (const [selection, names] of [
  [undefined, ['nyc1', 'lon1', 'lon2', 'lab']],
  ['lon2,nyc1,lon2', ['nyc1', 'lon2']],
  ['lon*', ['lon1', 'lon2']],
  ['*1', ['nyc1', 'lon1']],
  ['l?n?', ['lon1', 'lon2']],
  ['*', ['nyc1', 'lon1', 'lon2', 'lab']],
  ['site=eu', ['lon1', 'lon2']],
  ['site=eu, lab', ['lon1', 'lon2', 'lab']],
  ['site=*', ['nyc1', 'lon1', 'lon2']],
] as const) {
  test(`Device=${selection} chooses ${names.join(' ')}, in the order of the fleet`, () => {
    assert.deepEqual(
      selectDevices(FLEET, selection).map((device) => device.name),
      names,
    )
  })
}

for (const [selection, near] of [
  ['lon3', ['lon1', 'lon2']],
  ['nyc1,lonn1', ['lon1']],
  ['site=ue', ['site=eu']],
  ['zzzzzz*', []],
  ['l.n1', ['lon1']],
] as const) {
  test(`Device=${selection} is unknown, with the nearest names`, () => {
    assert.throws(
      () => selectDevices(FLEET, selection),
      (error) => {
        assert.ok(error instanceof CapfleetError)
        assert.equal(error.code, 'unknown-device')
        const candidates = error.details.members?.candidates
        assert.ok(Array.isArray(candidates))
        for (const name of near) assert.ok(candidates.includes(name))
        return true
      },
    )
  })
}

for (const selection of ['', ' ', ',', ' , ,']) {
  test(`Device="${selection}" is refused: an unset variable must not mean all devices`, () => {
    assert.throws(() => selectDevices(FLEET, selection), {
      code: 'bad-parameter',
      message: /^Device is empty/,
    })
  })
}

test('a hostile glob costs no time', () => {
  const before = ownProcessorMs()
  const fleet = [{ name: 'a'.repeat(60), site: undefined }]
  assert.throws(() => selectDevices(fleet, `${'*a'.repeat(3_000)}b`))
  assert.ok(ownProcessorMs() - before < 2_000)
})

test('a selection that is longer than necessary is rejected before anything is compared', () => {
  const untouched = {
    get name(): string {
      throw new Error('a device was looked at')
    },
    site: undefined,
  }
  for (const [selection, what] of [
    [Array(65).fill('x').join(','), /Device has more than 64 words/],
    [','.repeat(3_000), /Device has more than 64 words/],
    [`${'*'.repeat(4_096)}x`, /Device has 4097 bytes, but at most 4096/],
    [`${'\u00e9'.repeat(2_049)}`, /Device has 4098 bytes/],
  ] as const)
    assert.throws(() => selectDevices([untouched], selection), { code: 'bad-parameter', message: what })
  const longest = ['nyc1', ...Array(63).fill('lon1')].join(',')
  assert.equal(selectDevices(FLEET, longest).length, 2)
})

test('the selection of bounds is compared with a device once, however often it is asked', () => {
  let reads = 0
  const device = {
    site: undefined,
    get name(): string {
      reads += 1
      return 'nyc1'
    },
  }
  const selection = 'lon?,nyc*,*-never-asked-before'
  for (let turn = 0; turn < 100; turn += 1) assert.ok(isSelected(device, selection))
  assert.ok(reads <= 3, String(reads))
  assert.equal(isSelected({ name: 'par1', site: undefined }, selection), false)
})
