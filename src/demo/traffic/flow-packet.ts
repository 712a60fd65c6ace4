import type { Endpoint } from './packet-bytes.ts'

/** One packet of a flow, as the client's capture point sees it. */
export interface FlowPacket {
  /** Time since the flow began. */
  readonly offsetNs: bigint
  readonly fromClient: boolean
  /** The whole Ethernet frame. */
  readonly bytes: Buffer
}

/** The two sides of a flow and the link on which it is seen. */
export interface FlowPath {
  readonly client: Endpoint
  readonly server: Endpoint
  readonly vlan?: number | undefined
  /** Time from the capture point to the server and back. */
  readonly roundTripNs: bigint
}
