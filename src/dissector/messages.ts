// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
/** What the page and the frame of the dissector say to each other, by postMessage. */

/** A row of the packet list. */
export interface PacketRow {
  /** From 1, in the order of the file. */
  readonly number: number
  /** As text, in the order of Started.columns. */
  readonly columns: readonly string[]
}

export interface PacketRows {
  readonly rows: readonly PacketRow[]
  /** How many packets pass the filter. */
  readonly matched: number
}

/** A field of the protocol tree. */
export interface TreeField {
  readonly label: string
  /** Display filter that selects packets with this value; empty if there is none. */
  readonly filter: string
  /** Index in PacketDetails.sources of the bytes that it was read from. */
  readonly source: number
  readonly start: number
  /** 0: not read from particular bytes. */
  readonly length: number
  /** Number of the packet that it refers to. */
  readonly packet: number | undefined
  readonly fields: readonly TreeField[]
}

/** Bytes that fields were read from: the packet, and what was reassembled or decoded from it. */
export interface ByteSource {
  readonly name: string
  readonly bytes: Uint8Array
}

export interface PacketDetails {
  readonly sources: readonly ByteSource[]
  readonly fields: readonly TreeField[]
  /** Protocols whose stream can be followed, such as "TCP". */
  readonly streams: readonly FollowableStream[]
}

export interface FollowableStream {
  readonly protocol: string
  /** Display filter that selects the packets of the stream. */
  readonly filter: string
}

export interface FollowedStream {
  /** Address and port. */
  readonly client: string
  readonly server: string
  readonly pieces: readonly StreamPiece[]
}

export interface StreamPiece {
  readonly isFromServer: boolean
  readonly packet: number
  readonly bytes: Uint8Array
}

export interface Started {
  /** Version of Wireshark. */
  readonly version: string
  readonly columns: readonly string[]
}

/** Kind of order -> what it takes, and its answer. */
export interface Orders {
  /** The first one. */
  start: {
    readonly takes: { readonly wasm: ArrayBuffer; readonly data: ArrayBuffer }
    readonly answer: Started
  }
  /**
   * Replaces the packets by those of a capture file. The answer is their number. `isOfSeveral`: several devices may have
   * seen the same packets, so the conversations of each interface are its own.
   */
  open: {
    readonly takes: { readonly file: Uint8Array; readonly isOfSeveral: boolean }
    readonly answer: number
  }
  /** An empty filter selects all packets. */
  rows: {
    readonly takes: { readonly filter: string; readonly skip: number; readonly count: number }
    readonly answer: PacketRows
  }
  packet: { readonly takes: { readonly number: number }; readonly answer: PacketDetails }
  follow: { readonly takes: FollowableStream; readonly answer: FollowedStream }
}

export type OrderKind = keyof Orders

/** From the page to the frame. The frame executes orders one after another. */
export type Order<K extends OrderKind = OrderKind> = {
  readonly [Kind in K]: { readonly id: number; readonly kind: Kind } & Orders[Kind]['takes']
}[K]

/** What the frame sends to the page for each order. */
export type Reply =
  | { readonly id: number; readonly answer: Orders[OrderKind]['answer'] }
  /** Wireshark's message about a display filter. */
  | { readonly id: number; readonly mistake: string }
  /** The dissector has failed and executes no further order. */
  | { readonly id: number; readonly failure: string }
