/** A download that is only counted: its packets are read and filtered as for a download, and not sent. */

import { INTEGER_MAX, integerType } from '../parameter-types.ts'
import { badParameter, type ParameterRows } from '../query-parameters.ts'
import type { DownloadQuery } from './download-query.ts'
import { parseDownloadQuery } from './parse-download-query.ts'

/** In addition to those of the download. */
export const COUNT_PARAMETERS = {
  countBytesMax: {
    name: 'CountBytesMax',
    says:
      'Reads about this many bytes of the packets of the range at most, starting with its first packet. The answer then says up to which time they were counted. ' +
      'It does not apply to callers with a filter, who must not learn how much is stored.',
    type: integerType(1n, INTEGER_MAX, 'bytes'),
    default: 10_737_418_240n,
  },
} as const satisfies ParameterRows

/** parseDownloadQuery for a count, which is of the bytes before compression. Also fails with bad-parameter for a download that cannot be counted. */
export const parseCountedQuery: typeof parseDownloadQuery = (kind, given, context) => {
  const { name } = COUNT_PARAMETERS.countBytesMax
  const query = parseDownloadQuery(kind, new Map([...given].filter(([other]) => other !== name)), context)
  refuseUncountable(query)
  return { ...query, compression: 'none' }
}

function refuseUncountable({ follow, afterBytes, format }: DownloadQuery): void {
  if (format !== 'pcap')
    throw badParameter('Format', 'must be pcap for a count, whose bytes are those of a PCAP; leave it out')
  if (follow) throw badParameter('Follow', 'has no end that could be counted; leave it out')
  if (afterBytes !== undefined)
    throw badParameter('After', 'does not apply to a count, which is of the whole download; leave it out')
}
