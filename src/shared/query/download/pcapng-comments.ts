/** What a pcapng file says about the query that it answers. */
import { type } from 'node:os'
import { productVersion } from '../../base/product-version.ts'
import { type BlockOption, filterOption, PcapngOption, textOption } from '../../pcap/pcapng-blocks.ts'
import { visible } from '../query-parameters.ts'
import type { DownloadQuery } from './download-query.ts'
import { formatDownloadQuery } from './format-download-query.ts'

const COMMENT_LENGTH_MAX = 8_192
/** A filter that is longer is only in the section's comment: an interface each would repeat it. */
const FILTER_BYTES_MAX = 1_024

/** What was asked for, without what leaves the packets as they are. The reader may know all of `query`. */
export function queryComment(query: DownloadQuery, { isForced }: { readonly isForced: boolean }): string {
  const shown = {
    ...query,
    follow: false,
    afterBytes: undefined,
    compression: 'none',
    format: 'pcap',
  } as const
  const text = visible(decodeURIComponent(formatDownloadQuery(shown).replaceAll('&', ' ')))
  const filter = isForced ? ", with the filter of the caller's account" : ''
  const cut = text.length > COMMENT_LENGTH_MAX ? `${text.slice(0, COMMENT_LENGTH_MAX)}...` : text
  return `capfleet ${query.kind}: ${cut}${filter}`
}

/** The filter as an option of an interface, if it is short. */
export function filterOptions(filterBpf: string | undefined): readonly BlockOption[] {
  const isShort = filterBpf !== undefined && Buffer.byteLength(filterBpf) <= FILTER_BYTES_MAX
  return isShort ? [filterOption(filterBpf)] : []
}

/** Programs have the same length in every version, so that a file can be continued after an upgrade. */
const PROGRAM_LENGTH = 32

/** The operating system, without its release, and the program: a file has the same length at every machine. */
export function softwareOptions(): readonly BlockOption[] {
  return [
    textOption(PcapngOption.sectionOs, type()),
    textOption(PcapngOption.sectionProgram, `capfleet ${productVersion()}`.padEnd(PROGRAM_LENGTH)),
  ]
}
