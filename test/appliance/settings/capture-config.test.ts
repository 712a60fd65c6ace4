import assert from 'node:assert/strict'
import { test } from 'node:test'
import { captureConfigSchema } from '../../../appliance/settings/capture-config.ts'
import { parseConfig } from '../../../src/shared/base/config-file.ts'

const parse = (text: string) => parseConfig(text, 'appliance.yaml', captureConfigSchema)
const row = (start: string, stop: string, name = 'a', days = 'mon') =>
  `{ name: ${name}, start: "${start}", stop: "${stop}", days: [${days}], zone: UTC }`

test('a port needs its number and its interface; the rest has defaults', () => {
  assert.deepEqual(parse('ports: [{ port: 3, interface: eth1 }]').ports, [
    {
      port: 3,
      interface: 'eth1',
      threads: 1,
      ringBytes: 134_217_728,
      snaplen: 262_144,
      promiscuous: true,
      filter: '',
    },
  ])
})

test('a schedule may have rows that adjoin, rows over midnight and a day that ends at 24:00:00', () => {
  const rows = [
    row('08:00:00', '12:00:00', 'am'),
    row('12:00:00', '24:00:00', 'pm'),
    row('00:00:00', '08:00:00'),
  ]
  assert.equal(parse(`schedule: [${rows.join()}]`).schedule.length, 3)
  assert.equal(parse(`schedule: [${row('22:00:00', '06:00:00')}]`).schedule.length, 1)
})

for (const [text, problem] of [
  ['ports: [{ port: 8, interface: eth1 }]', /ports\[0\]\.port/],
  ['ports: [{ port: 0, interface: a/b }]', /ports\[0\]\.interface: must be the name of a network interface/],
  [
    'ports: [{ port: 0, interface: a-name-of-16-by }, { port: 0, interface: b }]',
    /ports\[1\].port: 0 is already used/,
  ],
  [
    'ports: [{ port: 0, interface: b }, { port: 1, interface: b }]',
    /ports\[1\]\.interface: b is already used/,
  ],
  ['ports: [{ port: 0, interface: b, ringbytes: 4 }]', /ringbytes: unknown key \(did you mean ringBytes\?\)/],
  ['roll: { at: "24:00:00" }', /roll\.at: must be a time of day/],
  ['roll: { everySeconds: 0 }', /roll\.everySeconds/],
  ['roll: { everyBytes: 5 }', /roll\.everyBytes/],
  ['syncIntervalMs: 1', /syncIntervalMs/],
  [
    'queueBytes: 3145728\nports: [{ port: 0, interface: a, threads: 4 }]',
    /queueBytes: must be at least 1 MiB for each of the 4 threads/,
  ],
  [`schedule: [${row('24:00:00', '01:00:00')}]`, /schedule\[0\]\.start: must be a time of day/],
  [`schedule: [${row('8:00', '9:00')}]`, /schedule\[0\]\.start/],
  [`schedule: [${row('08:00:00', '25:00:00')}]`, /schedule\[0\]\.stop: must be a time of day, up to/],
  [`schedule: [${row('08:00:00', '09:00:00', '../x')}]`, /schedule\[0\]\.name: must be 1 to 64 letters/],
  [`schedule: [${row('08:00:00', '09:00:00', 'a', '')}]`, /schedule\[0\]\.days/],
  [
    `schedule: [${row('08:00:00', '09:00:00')}, ${row('08:59:59', '10:00:00', 'b')}]`,
    /schedule\[1\]: runs at the same time as row 0 \(a\)/,
  ],
] as const) {
  test(`refuses ${text}, naming the setting`, () => {
    assert.throws(() => parse(text), { code: 'bad-config', message: problem })
  })
}
