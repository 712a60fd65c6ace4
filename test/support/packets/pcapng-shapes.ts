/**
 * Small pcapng files of the shapes that the public generator of conformance files makes (hadrielk/pcapng-test-generator:
 * its tests 001 to 018, 100 to 102 and 200 to 202), and of further ones that its format allows. Each has both byte orders.
 */

/** The files by name; the same bytes each time. */
export function pcapngShapes(): ReadonlyMap<string, Buffer> {
  return new Map(
    Object.entries(SHAPES).flatMap(([name, shape]) =>
      ([true, false] as const).map((isBigEndian): [string, Buffer] => {
        const file = new ShapedFile(isBigEndian)
        shape(file)
        return [`${name}-${isBigEndian ? 'big' : 'little'}-endian`, file.bytes]
      }),
    ),
  )
}

const ETHERNET = 1
const NULL_LOOPBACK = 0
const RAW_IP = 101
const SECTION = 0x0a0d0d0a
const BLOCK = {
  interface: 1,
  obsolete: 2,
  simple: 3,
  names: 4,
  statistics: 5,
  enhanced: 6,
  secrets: 10,
} as const
const CUSTOM = { copied: 0xbad, notCopied: 0x40000bad } as const
/** The enterprise number that is for examples. */
const ENTERPRISE = 32_473
/** In microseconds, the resolution unless an interface says another. */
const TIME = 1_790_000_000_123_456n

const OPTION = {
  comment: 1,
  name: 2,
  description: 3,
  ipv4: 4,
  speed: 8,
  resolution: 9,
  timeZone: 10,
  filter: 11,
  system: 12,
  checkBytes: 13,
  offset: 14,
  customText: 2988,
  customBytes: 2989,
  customTextNotCopied: 19_372,
  unknown: 0x0123,
  unknownLocal: 0x8123,
} as const

type Option = readonly [code: number, value: Buffer | string]

interface InterfaceShape {
  readonly linkType?: number
  readonly snaplen?: number
  readonly options?: readonly Option[]
}

interface PacketShape {
  readonly at?: number
  readonly ticks?: bigint
  readonly bytes?: number
  readonly originalLength?: number
  readonly options?: readonly Option[]
}

class ShapedFile {
  readonly #parts: Buffer[] = []
  #isBigEndian: boolean
  #packets = 0

  constructor(isBigEndian: boolean) {
    this.#isBigEndian = isBigEndian
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#parts)
  }

  turnByteOrder(): this {
    this.#isBigEndian = !this.#isBigEndian
    return this
  }

  section(options: readonly Option[] = []): this {
    const versions = [this.number(16, 1n), this.number(16, 0n)]
    return this.block(
      SECTION,
      [this.#word(0x1a2b3c4d), ...versions, this.number(64, 2n ** 64n - 1n)],
      options,
    )
  }

  interface({ linkType = ETHERNET, snaplen = 0, options = [] }: InterfaceShape = {}): this {
    const fields = [this.number(16, BigInt(linkType)), this.number(16, 0n), this.#word(snaplen)]
    return this.block(BLOCK.interface, fields, options)
  }

  enhanced({ at = 0, ticks, bytes = 60, originalLength = bytes, options = [] }: PacketShape = {}): this {
    const fields = [this.#word(at), ...this.#time(ticks), this.#word(bytes), this.#word(originalLength)]
    return this.block(BLOCK.enhanced, [...fields, this.#packet(bytes)], options)
  }

  obsolete({ at = 0, ticks, bytes = 60, originalLength = bytes, options = [] }: PacketShape = {}): this {
    const drops = this.number(16, 7n)
    const lengths = [this.#word(bytes), this.#word(originalLength)]
    const fields = [this.number(16, BigInt(at)), drops, ...this.#time(ticks), ...lengths]
    return this.block(BLOCK.obsolete, [...fields, this.#packet(bytes)], options)
  }

  simple({ bytes = 60, originalLength = bytes }: PacketShape = {}): this {
    return this.block(BLOCK.simple, [this.#word(originalLength), this.#packet(bytes)])
  }

  statistics(at: number, options: readonly Option[] = [[OPTION.comment, 'a count']]): this {
    return this.block(BLOCK.statistics, [this.#word(at), ...this.#time(TIME)], options)
  }

  names(): this {
    const record = Buffer.concat([
      this.number(16, 1n),
      this.number(16, 10n),
      Buffer.from('\n\0\0\x01host1\0\0\0', 'latin1'),
    ])
    return this.block(BLOCK.names, [record, this.#word(0)], [[OPTION.comment, 'names']])
  }

  custom(type: number): this {
    return this.block(type, [this.#word(ENTERPRISE), Buffer.from('an example of a block')])
  }

  block(type: number, fields: readonly Buffer[], options: readonly Option[] = []): this {
    const ends = options.length === 0 ? [] : [this.#word(0)]
    const body = Buffer.concat([
      padded(Buffer.concat(fields)),
      ...options.map((one) => this.#option(one)),
      ...ends,
    ])
    const length = this.#word(12 + body.length)
    this.#parts.push(this.#word(type), length, body, length)
    return this
  }

  number(bits: 8 | 16 | 64, value: bigint): Buffer {
    const bytes = Buffer.alloc(bits / 8)
    for (let at = 0; at < bytes.length; at += 1)
      bytes[at] = Number(BigInt.asUintN(8, value >> BigInt(8 * at)))
    return this.#isBigEndian ? bytes.reverse() : bytes
  }

  #word(value: number): Buffer {
    const bytes = Buffer.alloc(4)
    if (this.#isBigEndian) bytes.writeUInt32BE(value)
    else bytes.writeUInt32LE(value)
    return bytes
  }

  /** Each packet is later than the one before, unless it has a time. */
  #time(ticks = TIME + BigInt(this.#packets) * 1_000n): Buffer[] {
    return [this.#word(Number(ticks >> 32n)), this.#word(Number(ticks & 0xffff_ffffn))]
  }

  #option([code, value]: Option): Buffer {
    const bytes = Buffer.from(value)
    const head = [this.number(16, BigInt(code)), this.number(16, BigInt(bytes.length))]
    return Buffer.concat([...head, padded(bytes)])
  }

  /** No two packets are equal. */
  #packet(bytes: number): Buffer {
    this.#packets += 1
    return Buffer.alloc(bytes, `packet ${this.#packets} `)
  }
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])
}

const resolution = (value: number): Option => [OPTION.resolution, Buffer.from([value])]

/** All options of an interface that may be, except for the resolution and the offset of times. */
const RICH: readonly Option[] = [
  [OPTION.unknownLocal, 'try this'],
  [OPTION.name, 'eth-0 of two'],
  [OPTION.comment, 'more\nlines\r\nthan one'],
  [OPTION.description, 'an interface'],
  [OPTION.ipv4, Buffer.from([10, 1, 2, 3, 255, 255, 255, 0])],
  [OPTION.ipv4, Buffer.from([10, 1, 2, 4, 255, 255, 255, 0])],
  [OPTION.speed, Buffer.alloc(8, 1)],
  [OPTION.timeZone, Buffer.alloc(4)],
  [OPTION.filter, Buffer.from('\0tcp port 23')],
  [OPTION.system, 'an operating system'],
  [OPTION.checkBytes, Buffer.from([4])],
  [OPTION.customText, Buffer.from('\0\0\x7e\xd9text', 'latin1')],
  [OPTION.customBytes, Buffer.from('\0\0\x7e\xd9bytes', 'latin1')],
  [OPTION.customTextNotCopied, Buffer.from('\0\0\x7e\xd9own text', 'latin1')],
  [OPTION.unknown, ''],
]

const SHAPES: Readonly<Record<string, (file: ShapedFile) => unknown>> = {
  plain: (file) => file.section().interface().enhanced().enhanced().enhanced(),
  'only-a-section': (file) => file.section(),
  'only-an-interface': (file) => file.section().interface(),
  'snaplens-differ': (file) =>
    file
      .section()
      .interface({ snaplen: 96 })
      .interface({ snaplen: 128 })
      .enhanced({ bytes: 96, originalLength: 300 })
      .enhanced({ at: 1, bytes: 128, originalLength: 300 })
      .enhanced(),
  'an-interface-between-packets': (file) =>
    file.section().interface().enhanced().interface().enhanced({ at: 1 }).enhanced().enhanced({ at: 1 }),
  'link-types-differ': (file) =>
    file
      .section()
      .interface()
      .interface({ linkType: NULL_LOOPBACK })
      .interface({ linkType: RAW_IP })
      .enhanced({ at: 2 })
      .enhanced({ at: 0 })
      .enhanced({ at: 1 }),
  'options-of-a-section': (file) =>
    file
      .section([
        [2, 'hardware'],
        [3, 'system'],
        [4, 'program'],
        [OPTION.comment, 'a comment'],
        [OPTION.comment, 'another'],
        [OPTION.unknown, 'odd'],
      ])
      .interface()
      .enhanced(),
  'options-of-interfaces': (file) =>
    file
      .section()
      .interface({ options: [...RICH, resolution(9), [OPTION.offset, Buffer.alloc(8)]] })
      .interface({ options: [[OPTION.offset, Buffer.alloc(8)], resolution(9), ...RICH.toReversed()] })
      .enhanced({ ticks: TIME * 1_000n })
      .enhanced({ at: 1, ticks: TIME * 1_000n + 7n }),
  'options-of-packets': (file) =>
    file
      .section()
      .interface()
      .enhanced({
        options: [
          [OPTION.comment, 'a packet'],
          [2, Buffer.from([0, 0, 0, 1])],
          [4, Buffer.alloc(8, 1)],
          [3, Buffer.from([2, 1, 2, 3, 4])],
          [OPTION.unknown, 'odd'],
        ],
      })
      .enhanced({ bytes: 61, options: [[OPTION.comment, '']] })
      .enhanced(),
  'simple-packets': (file) => file.section().interface().simple().simple({ bytes: 61 }).simple({ bytes: 62 }),
  'simple-and-other-packets': (file) => file.section().interface().simple().enhanced().simple().enhanced(),
  'simple-packets-of-a-snaplen': (file) =>
    file
      .section()
      .interface({ snaplen: 64 })
      .interface({ snaplen: 10 })
      .simple({ bytes: 64, originalLength: 300 })
      .simple({ bytes: 63 })
      .enhanced({ bytes: 64, originalLength: 300 })
      .enhanced({ bytes: 30, originalLength: 300 }),
  'statistics-without-packets': (file) => file.section().interface().statistics(0),
  'statistics-of-several': (file) =>
    file.section().interface().interface().statistics(0).statistics(1).interface().statistics(2),
  'statistics-between-packets': (file) =>
    file
      .section()
      .interface()
      .interface({ linkType: NULL_LOOPBACK })
      .enhanced()
      .statistics(0, [])
      .statistics(1, [[4, Buffer.alloc(8, 1)]])
      .enhanced({ at: 1 })
      .statistics(0)
      .simple(),
  'names-without-packets': (file) => file.section().interface().names(),
  'names-between-packets': (file) =>
    file.section().names().interface().names().simple().enhanced().names().names().enhanced(),
  'custom-blocks-without-packets': (file) =>
    file.section().custom(CUSTOM.copied).custom(CUSTOM.notCopied).custom(CUSTOM.copied),
  'custom-blocks-between-packets': (file) =>
    file
      .section()
      .custom(CUSTOM.notCopied)
      .interface()
      .custom(CUSTOM.copied)
      .simple()
      .enhanced()
      .custom(CUSTOM.copied)
      .enhanced(),
  'sections-without-packets': (file) =>
    file.section().interface().section().interface().section().interface(),
  'sections-with-packets': (file) =>
    file
      .section()
      .interface()
      .enhanced()
      .section()
      .interface({ linkType: RAW_IP, options: [resolution(9)] })
      .enhanced({ ticks: TIME * 1_000n + 1n })
      .interface()
      .statistics(1)
      .enhanced({ at: 1 })
      .section()
      .names()
      .interface()
      .simple(),
  'byte-orders-differ': (file) =>
    file
      .section()
      .interface()
      .interface({ linkType: NULL_LOOPBACK })
      .enhanced()
      .enhanced({ at: 1 })
      .turnByteOrder()
      .section()
      .names()
      .interface()
      .enhanced()
      .obsolete()
      .turnByteOrder()
      .section()
      .custom(CUSTOM.copied)
      .interface()
      .simple()
      .enhanced(),
  'obsolete-packets': (file) =>
    file
      .section()
      .interface()
      .interface({ options: [resolution(3)] })
      .obsolete()
      .obsolete({ at: 1, ticks: TIME / 1_000n })
      .obsolete({ bytes: 33, originalLength: 1_500, options: [[OPTION.comment, 'old']] })
      .enhanced(),
  'secrets-and-unknown-blocks': (file) =>
    file
      .section()
      .interface()
      .block(BLOCK.secrets, [Buffer.from('LSLT'), Buffer.alloc(4), Buffer.alloc(0)])
      .enhanced()
      .block(0x0000_0bee, [Buffer.alloc(100, 1)])
      .block(0x8000_0001, [])
      .enhanced(),
  // With more digits the result of Wireshark 4.0 overflows.
  'resolutions-of-ten': (file) =>
    [0, 3, 6, 7, 9, 10].reduce(
      (made, digits, at) =>
        made
          .interface({ options: [resolution(digits)] })
          .enhanced({ at, ticks: 17_900_000_001_234_567_891n / 10n ** BigInt(10 - digits) }),
      file.section(),
    ),
  'resolutions-of-two': (file) =>
    [0, 1, 10, 20, 30, 32].reduce(
      (made, bits, at) =>
        made
          .interface({ options: [resolution(0x80 + bits)] })
          .enhanced({ at, ticks: (1_790_000_000n << BigInt(bits)) + (1n << BigInt(bits)) / 3n }),
      file.section(),
    ),
  'offsets-of-times': (file) =>
    file
      .section()
      .interface({ options: [[OPTION.offset, file.number(64, 1_000n)]] })
      .interface({ options: [[OPTION.offset, file.number(64, -1_000n)], resolution(9)] })
      .enhanced()
      .enhanced({ at: 1, ticks: TIME * 1_000n })
      .enhanced({ ticks: 5n }),
  'empty-and-odd-packets': (file) =>
    [0, 1, 2, 3, 4, 5].reduce(
      (made, bytes) => made.enhanced({ bytes, originalLength: 100 }),
      file.section().interface(),
    ),
  'times-that-go-back': (file) =>
    file
      .section()
      .interface()
      .enhanced({ ticks: TIME + 5n })
      .enhanced({ ticks: TIME })
      .enhanced({ ticks: TIME + 5n })
      .enhanced({ ticks: TIME }),
}
