import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GROUPS } from '../../../src/console/download/parameter-groups.ts'
import { inPageWords, PARAMETER_LABELS } from '../../../src/console/parameter-labels.ts'

test('each field of the builder has a label for people, and each label is used once', () => {
  const names = [...GROUPS.values()].flat().map(({ name }) => name)
  assert.deepEqual(
    names.filter((name) => PARAMETER_LABELS[name] === undefined),
    [],
  )
  const labels = Object.values(PARAMETER_LABELS)
  assert.deepEqual(labels, [...new Set(labels)])
})

test('messages and descriptions of the API name its parameters as the page does', () => {
  assert.deepEqual(
    [
      'TSEnd is missing; add TSEnd, such as TSEnd=now',
      'FilterBPF "FilterX" does not compile; FilterAddresses takes lists of addresses',
      'ask for Format=pcapng, or choose a port with FilterPort',
      'the time zone of Cron; TSBegin=-1d misses an hour',
    ].map(inPageWords),
    [
      '“End” is missing; add “End”, such as “End” now',
      '“Filter” "FilterX" does not compile; “Addresses” takes lists of addresses',
      'ask for “File format” pcapng, or choose a port with “Capture port”',
      'the time zone of “When”; “Begin” -1d misses an hour',
    ],
  )
})

test('ordinary words and unknown names stay as they are', () => {
  const text = 'Device lon1 does not answer. Wait for Follow, Stop or XDate; Align stays.'
  assert.equal(inPageWords(text), text)
})
