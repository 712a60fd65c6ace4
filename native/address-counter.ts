/** Counts packets by address. */
import { type AddonName, loadAddon } from './load-addon.ts'

export interface AddressCount {
  readonly packets: bigint
  /** Original lengths. */
  readonly bytes: bigint
  /** Meaningless without packets. */
  readonly firstNs: bigint
  readonly lastNs: bigint
}

interface Exports {
  readonly AddressCounter: new (
    ranges: Uint8Array,
  ) => { add(bytes: Uint8Array): void; counts(): BigInt64Array }
}

/** Counts the packets of a PCAP by address. */
export class AddressCounter {
  readonly #native

  /** `addresses` as packQuestions() packs them: each range is a network, or one address. */
  constructor(addresses: Uint8Array, addon: AddonName) {
    const { AddressCounter: Native } = loadAddon<Exports>(addon)
    this.#native = new Native(addresses)
  }

  /** The next bytes of one uncompressed PCAP, little-endian, as downloads and merges return it. */
  add(bytes: Uint8Array): void {
    this.#native.add(bytes)
  }

  /** For each range; a packet with several addresses of a range counts once. */
  counts(): readonly AddressCount[] {
    const values = this.#native.counts()
    return Array.from({ length: values.length / 4 }, (_, index) => {
      const [packets = 0n, bytes = 0n, firstNs = 0n, lastNs = 0n] = values.subarray(index * 4)
      return { packets, bytes, firstNs, lastNs }
    })
  }
}
