import { RECORD_HEADER_BYTES } from './pcap-header.ts'
import type { FrontRecord } from './record-gate.ts'
import { RecordHash } from './record-hash.ts'

/** Packets remembered at most: with more inside the window the oldest are forgotten, and pass again. */
const REMEMBERED = 65_536
/** Half of what is exact in a number. */
const FAR_UNITS = 2 ** 52
const ETHERNET = 1
const ETHERNET_BYTES = 14
const VLAN_TYPES = new Set([0x8100, 0x88a8, 0x9100])

/**
 * The packets that passed within a time. A packet is a duplicate of one of them when that came from
 * another input, has the same captured length, and the same 64-bit hash behind its link-layer
 * header (on Ethernet with the VLAN tags; other link types are compared whole).
 */
export class DuplicateWindow {
  readonly #windowUnits: number
  readonly #isEthernet: boolean
  readonly #hash = new RecordHash()
  /** A ring of packets in the order in which they passed, chained by hash from new to old. */
  readonly #keys = new Float64Array(REMEMBERED)
  readonly #lows = new Int32Array(REMEMBERED)
  readonly #highs = new Int32Array(REMEMBERED)
  readonly #lengths = new Int32Array(REMEMBERED)
  readonly #ranks = new Uint8Array(REMEMBERED)
  /** Number of the packet before in the same chain, and of the newest of each chain; 0 = none. */
  readonly #before = new Float64Array(REMEMBERED)
  readonly #newest = new Float64Array(REMEMBERED)
  /** Packets are numbered from 1 on. */
  #added = 0
  /** Remembered keys are higher by so much than those that come now. */
  #laterUnits = 0

  /** `windowUnits` is in the unit of the records' fractions. */
  constructor(windowUnits: number, linkType: number) {
    this.#windowUnits = windowUnits
    this.#isEthernet = (linkType & 0xffff) === ETHERNET
  }

  /** Hashes the record; add() means the same one. */
  hasSeen({ window, rank, key }: FrontRecord): boolean {
    const { view, front, frontEnd } = window
    this.#hash.reset()
    this.#hash.add(view, this.#payloadStart(view, front + RECORD_HEADER_BYTES, frontEnd), frontEnd)
    const oldest = Math.max(1, this.#added - REMEMBERED + 1)
    const { low, high } = this.#hash
    const rememberedKey = key + this.#laterUnits
    for (let number = this.#newest[slotOf(low)] ?? 0; number >= oldest; ) {
      const slot = number % REMEMBERED
      if (rememberedKey - (this.#keys[slot] ?? 0) > this.#windowUnits) return false
      const isEqual =
        this.#lows[slot] === low &&
        this.#highs[slot] === high &&
        this.#lengths[slot] === frontEnd - front &&
        this.#ranks[slot] !== rank
      if (isEqual) return true
      number = this.#before[slot] ?? 0
    }
    return false
  }

  /** The record that hasSeen() has looked at goes out. */
  add({ window, rank, key }: FrontRecord): void {
    this.#added++
    const slot = this.#added % REMEMBERED
    const chain = slotOf(this.#hash.low)
    this.#keys[slot] = key + this.#laterUnits
    this.#lows[slot] = this.#hash.low
    this.#highs[slot] = this.#hash.high
    this.#lengths[slot] = window.frontEnd - window.front
    this.#ranks[slot] = rank
    this.#before[slot] = this.#newest[chain] ?? 0
    this.#newest[chain] = this.#added
  }

  /** Keys are smaller by so much from now on. */
  rebase(units: number): void {
    this.#laterUnits += units
    if (this.#laterUnits < FAR_UNITS) return
    // Sums as large as this are not exact for long.
    for (const [slot, key] of this.#keys.entries()) this.#keys[slot] = key - this.#laterUnits
    this.#laterUnits = 0
  }

  #payloadStart(view: DataView, start: number, end: number): number {
    if (!this.#isEthernet) return start
    let payload = start + ETHERNET_BYTES
    while (payload <= end && VLAN_TYPES.has(view.getUint16(payload - 2))) payload += 4
    return Math.min(payload, end)
  }
}

function slotOf(low: number): number {
  return (low >>> 0) % REMEMBERED
}
