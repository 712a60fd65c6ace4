import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Command } from 'commander'
import { longFlag, QueryFlags } from '../../../../../src/client/command/common/query-flags.ts'
import { DOWNLOAD_TABLES } from '../../../../../src/shared/query/download/parse-download-query.ts'

const parsed = (...args: readonly string[]) => {
  const flags = new QueryFlags(DOWNLOAD_TABLES.export)
  const command = flags.addTo(new Command()).exitOverride()
  command.parse(args, { from: 'user' })
  return flags.query(command.opts())
}

test('the name of a flag is that of its parameter', () => {
  assert.deepEqual(
    ['TSBegin', 'FilterBPF', 'FilterBPFDecap', 'FilterRE', 'MaxPackets', 'Device', 'OnMissing'].map(longFlag),
    [
      '--ts-begin',
      '--filter-bpf',
      '--filter-bpf-decap',
      '--filter-re',
      '--max-packets',
      '--device',
      '--on-missing',
    ],
  )
})

test('values go to the gateway as they are, also ones that look like flags', () => {
  assert.deepEqual(parsed('--begin', '-15m', '--ts-end', 'now', '-d', 'lon*', '--bpf', 'tcp or udp'), [
    ['Device', 'lon*'],
    ['TSBegin', '-15m'],
    ['TSEnd', 'now'],
    ['FilterBPF', 'tcp or udp'],
  ])
})

test('sizes and lengths of time may have units, which the API does not take', () => {
  assert.deepEqual(parsed('--max-bytes', '10MiB', '--slice', '1kB', '--ts-max', '2h', '--dedup', '50ms'), [
    ['TSMax', '7200000000000'],
    ['MaxBytes', '10485760'],
    ['Slice', '1000'],
    ['Dedup', '50000000'],
  ])
  assert.deepEqual(parsed('--max-bytes', '24', '--ts-max', '5'), [
    ['TSMax', '5'],
    ['MaxBytes', '24'],
  ])
  assert.deepEqual(parsed('--max-bytes', '-1'), [['MaxBytes', '-1']])
  assert.throws(() => parsed('--max-bytes', 'big'), {
    message: '--max-bytes must be a number of bytes, or have a unit, such as 10KiB; got "big"',
  })
  assert.throws(() => parsed('--ts-max', '2d'), {
    message: '--ts-max must be a number of nanoseconds, or have a unit, such as 10ms; got "2d"',
  })
})

test('a switch says the word that the parameter takes', () => {
  assert.deepEqual(parsed('--align', '--filter-bpf-decap'), [
    ['FilterBPFDecap', 'true'],
    ['Align', '1'],
  ])
})

test('the help names flags, not parameters', () => {
  const command = new QueryFlags(DOWNLOAD_TABLES.fleet).addTo(new Command())
  const said = command.options.map(({ description }) => description).join('\n')
  assert.doesNotMatch(said, /\b(TS(Begin|End|Unit|Zone|Mode)|FilterBPF|FilterFrame|MaxBytes)\b/)
  assert.match(said, /The unit of --begin and --end/)
})
