/** The one's complement sum of RFC 1071, as IPv4, ICMP, TCP and UDP use it. */
export class InternetChecksum {
  #sum = 0

  /** Adds bytes as 16-bit words; an odd last byte counts as if a zero followed. */
  add(bytes: Uint8Array, start = 0, end = bytes.byteLength): this {
    let sum = this.#sum
    let position = start
    for (; position + 1 < end; position += 2) {
      sum += ((bytes[position] ?? 0) << 8) | (bytes[position + 1] ?? 0)
    }
    if (position < end) sum += (bytes[position] ?? 0) << 8
    this.#sum = sum
    return this
  }

  addWord(word: number): this {
    this.#sum += word
    return this
  }

  /** The checksum field for everything added. A number holds the plain sum of 128 TiB exactly. */
  get value(): number {
    let sum = this.#sum
    while (sum > 0xffff) sum = (sum % 0x10000) + Math.floor(sum / 0x10000)
    return ~sum & 0xffff
  }
}
