/** The parameters of a search for addresses, at a device and over a fleet. */

import { DOWNLOAD_PARAMETERS } from '../query/download/download-parameters.ts'
import { addressQuestionsType } from '../query/filter/address-list.ts'
import { INTEGER_MAX, integerType, SWITCH } from '../query/parameter-types.ts'
import type { ParameterRows } from '../query/query-parameters.ts'
import { ACTIVITY_RANGE } from './device-parameters.ts'

export const SEEN_RANGE = ACTIVITY_RANGE

export const SEEN_PARAMETERS = {
  /** A canonical list of questions. */
  addresses: {
    name: 'Address',
    says:
      'The addresses and networks to look for, at most 10,000, separated by commas, spaces or lines; # begins a comment. ' +
      'The parameter may be repeated. Each entry is answered separately. Only the outermost addresses of a packet count, also after one or two VLAN tags, and in ARP and RARP. ' +
      'Long lists go into the body of a POST request, as a form or as a plain text (text/plain).',
    type: addressQuestionsType(),
    required: true,
    example: '203.0.113.9',
  },
  verify: {
    name: 'Verify',
    says: 'Counts the packets of each address by reading the times in which it may have been seen. Takes a stream, like a download.',
    type: SWITCH,
    default: false,
  },
  verifyBytesMax: {
    name: 'VerifyBytesMax',
    says: 'Reads about this many bytes of packets for Verify at most. What is left is reported as unverified.',
    type: integerType(1n, INTEGER_MAX, 'bytes'),
    default: 10_737_418_240n,
  },
  filterBpf: {
    ...DOWNLOAD_PARAMETERS.filterBpf,
    says: 'With Verify=1, counts only packets that match this tcpdump expression.',
  },
} as const satisfies ParameterRows

/** At a gateway. */
export const SEEN_WAIT = {
  waitS: {
    ...DOWNLOAD_PARAMETERS.waitS,
    says: 'With Verify=1: how long to wait for a free stream of a device. Each device is waited for separately.',
  },
} as const satisfies ParameterRows
