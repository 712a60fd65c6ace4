import { commonHeader } from './common-header.ts'
import type { PcapHeader } from './pcap-header.ts'
import type { PcapInput } from './pcap-input.ts'

/**
 * The header of the merge of `inputs`, as commonHeader() has it. An input without packets has no
 * say in it: a device without captures cannot know a link type. Only when the link types differ
 * does this wait for each input's first packet.
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
