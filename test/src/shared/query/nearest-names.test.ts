import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearestNames } from '../../../../src/shared/query/nearest-names.ts'
import { ownProcessorMs } from '../../../support/processes/processor-time.ts'

test('gives the nearest names, best first', () => {
  assert.deepEqual(nearestNames('nyc2', ['london1', 'nyc1', 'nyc12', 'tokyo1']), ['nyc1', 'nyc12'])
})

test('ignores case and finds a part of a name', () => {
  assert.deepEqual(nearestNames('TSBEGIN', ['TSEnd', 'TSBegin'])[0], 'TSBegin')
  assert.deepEqual(nearestNames('trading', ['weekly_trading_20261120_0900']), [
    'weekly_trading_20261120_0900',
  ])
})

test('gives each name once', () => {
  assert.deepEqual(nearestNames('demo_0901', ['demo_0900', 'demo_0900', 'demo_0902']), [
    'demo_0900',
    'demo_0902',
  ])
})

test('gives nothing when nothing is near', () => {
  assert.deepEqual(nearestNames('zzzzzz', ['alpha', 'beta']), [])
  assert.deepEqual(nearestNames('', ['alpha']), [])
  assert.deepEqual(nearestNames('x', ['GB', 'NZ']), [], 'a letter is near to nothing')
})

test('stays quick for 10,000 names and a long text', () => {
  const names = Array.from({ length: 10_000 }, (_, index) => `capture_${index}_20261120_0900`)
  const before = ownProcessorMs()
  nearestNames('captura_77777_20261120_0900'.repeat(400), names)
  nearestNames('captura_77777_20261120_0900', names)
  assert.ok(ownProcessorMs() - before < 2_000)
})
