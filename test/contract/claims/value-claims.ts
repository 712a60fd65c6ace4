/** Sections 4.4.4 to 4.4.6 of the reference: values of FilterFrame, TSMode and Compression. */
import assert from 'node:assert/strict'
import type { ReferenceCondition, ReferenceQuery } from '../../support/reference/reference-download.ts'
import { type Claim, packets, row } from '../claim.ts'
import { packetsOf } from '../contract-captures.ts'
import { IN_RANGE, RANGE, SINGLE, SPLIT } from '../contract-queries.ts'

/** `text` as FilterFrame selects the packets that the conditions describe. */
function frame(text: string, ...conditions: readonly ReferenceCondition[]) {
  return {
    get: `${SINGLE}&FilterFrame=${encodeURIComponent(text)}`,
    pcap: packets('alpha', { conditions }),
  }
}

const is = (field: ReferenceCondition['field'], ...values: number[]): ReferenceCondition => ({
  field,
  op: '==',
  values,
})
const isNot = (field: ReferenceCondition['field'], ...values: number[]): ReferenceCondition => ({
  field,
  op: '!=',
  values,
})

/** The mode on single and on a range; some packets have a time of this source and some do not. */
function mode(id: string, source: Exclude<ReferenceQuery['mode'], 'nic'>, claim: string): Claim {
  return row(
    id,
    claim,
    {
      get: `${SINGLE}&TSMode=${source}`,
      pcap: packets('alpha', { mode: source }),
      see: () => {
        const stamped = packetsOf('alpha').filter(({ times }) => times[source] !== undefined).length
        assert.ok(stamped > 10 && stamped < packetsOf('alpha').length, `${stamped} packets have such a time`)
      },
    },
    { get: `${RANGE}&TSMode=${source}`, pcap: packets('alpha', { ...IN_RANGE, mode: source }) },
    { get: `${SPLIT}&TSMode=${source}`, pcap: packets('alpha', { ...IN_RANGE, mode: source }) },
  )
}

function compression(id: string, value: string, packed: 'gzip' | 'zstd', claim: string): Claim {
  return row(
    id,
    claim,
    { get: `${SINGLE}&Compression=${value}`, pcap: packets('alpha'), packed },
    { get: `${RANGE}&Compression=${value}`, pcap: packets('alpha', IN_RANGE), packed },
  )
}

export const VALUE_CLAIMS: readonly Claim[] = [
  row(
    '4.4.4-1',
    'FilterFrame is one condition or several joined by "and".',
    frame('capture.port==1', is('capture.port', 1)),
    frame('capture.port!=0 and a7130.device==1', isNot('capture.port', 0), is('a7130.device', 1)),
  ),
  row(
    '4.4.4-2',
    'A condition is a field, an operator and a list of values.',
    frame('capture.port == 0,2', is('capture.port', 0, 2)),
  ),
  row(
    '4.4.4-3',
    'The operator is == or !=.',
    frame('capture.port==2', is('capture.port', 2)),
    frame('capture.port!=2', isNot('capture.port', 2)),
  ),
  row('4.4.4-4', 'A single = means equality too.', frame('capture.port=2', is('capture.port', 2))),
  row(
    '4.4.4-5',
    'The values are integers separated by commas.',
    frame('a7130.srcport==1,3', is('a7130.srcport', 1, 3)),
    {
      get: `${SINGLE}&FilterFrame=a7130.srcport==one`,
      problem: ['bad-frame-filter', 'FilterFrame'],
    },
  ),
  row(
    '4.4.4-6',
    '!= leaves out what has one of the listed values.',
    frame('a7130.srcport!=1,3', isNot('a7130.srcport', 1, 3)),
  ),
  row(
    '4.4.4-7',
    'capture.port is the port of the capture hardware.',
    frame('capture.port==0', is('capture.port', 0)),
  ),
  row(
    '4.4.4-8',
    'a7130.device is the device id in the trailer of a 7130.',
    frame('a7130.device==2', is('a7130.device', 2)),
  ),
  row(
    '4.4.4-9',
    'a7130.srcdevice is the source device id: !=0 keeps packets with a valid one, ==0 those with none.',
    frame('a7130.srcdevice!=0', isNot('a7130.srcdevice', 0)),
    frame('a7130.srcdevice==0', is('a7130.srcdevice', 0)),
  ),
  row(
    '4.4.4-10',
    'a7130.srcport is the ingress port in the trailer of a 7130.',
    frame('a7130.srcport==4', is('a7130.srcport', 4)),
  ),
  row(
    '4.4.4-11',
    'c3550.srcport is the ingress port in the trailer of a 3550.',
    frame('c3550.srcport==3', is('c3550.srcport', 3)),
  ),

  row(
    '4.4.5-1',
    'nic is the time of the capture hardware and the default.',
    { get: `${SINGLE}&TSMode=nic`, pcap: packets('alpha') },
    { get: SINGLE, pcap: packets('alpha') },
  ),
  mode('4.4.5-2', 'vendorA7130', 'vendorA7130 is the time in the footer of a 7130.'),
  mode(
    '4.4.5-3',
    'vendorA7150_overwrite',
    'vendorA7150_overwrite is the time that a 7150 writes over the frame check sequence.',
  ),
  mode('4.4.5-4', 'vendorA7150_insert', 'vendorA7150_insert is the 32-bit value that a 7150 inserts.'),
  mode(
    '4.4.5-5',
    'vendorA7280_eth64',
    'vendorA7280_eth64 is the 64-bit time in the Ethernet header of a 7280.',
  ),
  mode(
    '4.4.5-6',
    'vendorA7280_mac48',
    'vendorA7280_mac48 is the 48-bit time in the source address of a 7280.',
  ),
  mode('4.4.5-7', 'vendorB_erspan3', 'vendorB_erspan3 is the time in the header of ERSPAN version 3.'),
  mode('4.4.5-8', 'vendorB3550', 'vendorB3550 is the time in the footer of a 3550.'),

  row(
    '4.4.6-1',
    'none means no compression and is the default.',
    { get: `${SINGLE}&Compression=none`, pcap: packets('alpha') },
    { get: SINGLE, pcap: packets('alpha') },
  ),
  compression('4.4.6-2', 'fast', 'gzip', 'fast is the fastest gzip.'),
  compression('4.4.6-3', 'best', 'gzip', 'best is gzip of the smallest size.'),
  row(
    '4.4.6-4',
    '1 to 9 are levels of gzip, 9 the best.',
    ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((level) => ({
      get: `${SINGLE}&Compression=${level}`,
      pcap: packets('alpha'),
      packed: 'gzip' as const,
    })),
  ),
  row(
    '4.4.6-5',
    'The bodies become smaller from fast over 6 to best, and from zstd_fast over zstd to zstd_ultra.',
    {
      act: async (at) => {
        for (const words of [
          ['fast', '6', 'best'],
          ['1', '9'],
          ['zstd_fast', 'zstd', 'zstd_ultra'],
        ]) {
          const sizes: number[] = []
          for (const word of words) sizes.push((await at.ask(`${SINGLE}&Compression=${word}`)).body.length)
          assert.deepEqual(
            sizes,
            sizes.toSorted((a, b) => b - a),
            words.join(' '),
          )
          assert.ok((sizes[0] ?? 0) > (sizes.at(-1) ?? 0), `${words.join(' ')}: ${sizes.join(' ')}`)
        }
      },
    },
  ),
  compression('4.4.6-6', 'zstd', 'zstd', 'zstd is zstd as it is usually set.'),
  compression('4.4.6-7', 'zstd_fast', 'zstd', 'zstd_fast is the fast setting of zstd.'),
  compression('4.4.6-8', 'zstd_ultra', 'zstd', 'zstd_ultra is the strongest setting of zstd.'),
  row(
    '4.4.6-9',
    'The zstd values are taken by single and by timerange.',
    { get: `${RANGE}&Compression=zstd`, pcap: packets('alpha', IN_RANGE), packed: 'zstd' },
    { get: `${SINGLE}&Compression=zstd_ultra`, pcap: packets('alpha'), packed: 'zstd' },
  ),
]
