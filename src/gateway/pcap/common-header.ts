import { CapfleetError } from '../../shared/base/error.ts'
import { listText } from '../../shared/base/list-text.ts'
import type { PcapHeader } from '../../shared/pcap/pcap-header.ts'
import type { PcapInput } from './pcap-input.ts'

/** A named stream whose file header is known. */
interface HeadedInput {
  readonly name: string
  readonly header: PcapHeader
}

/**
 * The header of one PCAP that can hold the packets of all inputs: their link type, the finest resolution and the
 * largest snaplen. Throws mixed-link-type (with the names) if the link types differ.
 */
export function commonHeader(inputs: readonly HeadedInput[]): PcapHeader {
  const first = inputs[0]?.header
  if (first === undefined) throw new TypeError('commonHeader needs at least one input')
  if (inputs.some(({ header }) => header.linkType !== first.linkType)) throw mixedLinkTypes(inputs)
  return {
    linkType: first.linkType,
    snaplen: Math.max(...inputs.map(({ header }) => header.snaplen)),
    nanoseconds: inputs.some(({ header }) => header.nanoseconds),
  }
}

/**
 * The header of the merge of `inputs`, as in commonHeader(). Inputs without packets are ignored: a device without
 * captures cannot know a link type. Waits for each input's first packet only if the link types differ.
 */
export async function agreedHeader(inputs: readonly PcapInput[]): Promise<PcapHeader> {
  const [first, ...others] = inputs
  if (first === undefined || others.every(({ header }) => header.linkType === first.header.linkType)) {
    return commonHeader(inputs)
  }
  await Promise.all(inputs.map((input) => input.fill()))
  const withPackets = inputs.filter((input) => input.hasRecord)
  return commonHeader(withPackets.length > 0 ? withPackets : [first])
}

function mixedLinkTypes(inputs: readonly HeadedInput[]): CapfleetError {
  const list = listText(
    [...Map.groupBy(inputs, ({ header }) => describeLinkType(header.linkType))].map(
      ([linkType, some]) => `${linkType} of ${listText(some.map(({ name }) => name))}`,
    ),
    '; ',
  )
  return new CapfleetError(
    'mixed-link-type',
    `One PCAP cannot contain several link types (${list}); ask for Format=pcapng, or choose devices of one link type with Device`,
    {
      param: 'Device',
      members: { linkTypes: Object.fromEntries(inputs.map((i) => [i.name, i.header.linkType])) },
    },
  )
}

/** The type, and the FCS bits above it if there are any. */
function describeLinkType(word: number): string {
  const type = word & 0xffff
  return word === type ? String(type) : `${type} (0x${word.toString(16)})`
}
