import { MAX_CAPTURED_LENGTH, RECORD_HEADER_BYTES } from './pcap-header.ts'

/** Room for the largest record. */
export const OUTPUT_BYTES = RECORD_HEADER_BYTES + MAX_CAPTURED_LENGTH
/** What an input has at hand: small, so that those of several inputs stay in a core's cache. */
export const SLOT_BYTES = 65_536

/**
 * The memory of one merge in one piece: two outputs and a slot for each input. Within one piece a
 * record moves by copyWithin(), at half the cost of a copy between two.
 */
export class MergeArena {
  readonly bytes: Uint8Array
  #taken = 2 * OUTPUT_BYTES

  constructor(inputs: number) {
    this.bytes = new Uint8Array(2 * OUTPUT_BYTES + inputs * SLOT_BYTES)
  }

  /** For the next input; there are as many as were asked for. */
  takeSlot(): Buffer {
    const slot = Buffer.from(this.bytes.buffer, this.#taken, SLOT_BYTES)
    this.#taken += SLOT_BYTES
    return slot
  }
}
