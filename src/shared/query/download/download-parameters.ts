/**
 * The parameter rows of a download: each is parsed into the field of DownloadQuery that it is listed under, and
 * written from it for a device. The time range is parsed by query-range.ts.
 */
import { PCAP_HEADER_BYTES } from '../../pcap/pcap-sizes.ts'
import { addressListType } from '../filter/address-list.ts'
import { type FrameCondition, formatFrameFilter, parseFrameFilter } from '../filter/frame-filter.ts'
import {
  CAPTURE_NAME_TYPE,
  choiceType,
  INTEGER_MAX,
  integerType,
  numberType,
  SWITCH,
  TRUE_FALSE,
} from '../parameter-types.ts'
import {
  badParameter,
  type ParameterRows,
  type ParameterType,
  quote,
  type ReadContext,
} from '../query-parameters.ts'
import { TIME_UNIT_WORDS, timeUnitOf } from '../time/query-time.ts'
import { TIME_SOURCES, type TimeSource, timeSourceOf } from '../time-source.ts'
import { COMPRESSIONS, DEDUP_KEYS, FILE_FORMATS, STRIP_KINDS, type StripKind } from './query-values.ts'

/** Fits a jumbo frame including what switches append to it. */
const SLICE_MAX_BYTES = 12_288
/** Longer than any network delays a packet; limits what must be remembered. */
const DEDUP_MAX_NS = 10_000_000_000n
/** Ten minutes: anyone willing to wait longer can ask again. */
const WAIT_MAX_S = 600
/** The limit of the program that compiles it. */
const BPF_MAX_BYTES = 16_384
const REGEX_MAX_BYTES = 1_024
const PORT_MAX = 255n

/** In the order in which they are written. */
export const DOWNLOAD_PARAMETERS = {
  /** Present for single and splittime. A full name, or a base name that means its newest capture. */
  captureName: {
    name: 'StreamName',
    says: 'The capture: its full name, or a base name, which means the newest capture of that name.',
    type: CAPTURE_NAME_TYPE,
    kinds: ['single', 'splittime'],
    required: true,
  },
  filterBpf: {
    name: 'FilterBPF',
    says:
      'Keeps the packets that match this tcpdump expression. As in tcpdump, "port 53" does not find packets with a VLAN tag: ' +
      'these need "vlan and port 53", or FilterBPFDecap.',
    type: bpfType(),
    example: 'tcp port 443',
  },
  /** Whether filterBpf applies to the innermost packet of a tunnel. */
  filterDecap: {
    name: 'FilterBPFDecap',
    says:
      'Applies FilterBPF to the innermost packet of a tunnel, without VLAN tags and MPLS labels, instead of the packet as captured: ' +
      '"port 53" then also finds tagged and tunnelled packets.',
    type: TRUE_FALSE,
    default: false,
  },
  /** A canonical list of addresses and networks, of which a packet must bear one. */
  filterAddresses: {
    name: 'FilterAddresses',
    says:
      'Keeps the packets that have an address of this list as source or destination: IPv4 and IPv6 addresses and networks, at most 10,000, ' +
      'separated by commas, spaces or lines; # begins a comment. ::ffff:10.1.2.3 means 10.1.2.3. Only the outermost addresses count, also after one or two VLAN tags, ' +
      'and in ARP and RARP. Long lists go into the body of a POST request.',
    type: addressListType(),
    example: '10.1.2.3,10.2.0.0/16,2001:db8::/32',
  },
  /** FilterFrame and FilterPort: all must match; empty = every packet. */
  frameFilter: {
    name: 'FilterFrame',
    says:
      'Keeps packets by port of the capture hardware, or by the trailer that a switch appended: conditions "field == value,value" or "!=", ' +
      'joined by "and"; fields are capture.port, a7130.device, a7130.srcdevice, a7130.srcport and c3550.srcport.',
    type: frameFilterType(),
    default: [],
    example: 'capture.port==0,1',
  },
  /** Becomes one condition of frameFilter. */
  filterPort: {
    name: 'FilterPort',
    says: 'Keeps the packets of this capture port, as FilterFrame=capture.port==<port> does.',
    type: integerType(0n, PORT_MAX),
  },
  filterRegex: {
    name: 'FilterRE',
    says:
      'Keeps the packets whose bytes match this regular expression: Hyperscan syntax, without back-references; ' +
      '"/text/i" with the flags i, s and m is accepted.',
    type: regexType(),
    example: 'GET /',
  },
  /** Whether to continue with packets of the range that are recorded after the request arrived. Only in NIC time. */
  follow: {
    name: 'Follow',
    says:
      'Continues with packets of the range as they are captured, until the range ends or the capture stops. ' +
      'Only for one device, and only with timestamps of the capture hardware.',
    type: SWITCH,
    default: false,
  },
  timeSource: {
    name: 'TSMode',
    says:
      "Which timestamps to use: the capture hardware's (nic), or those that a switch has written into the packets. " +
      'For a time range it may instead be the unit of TSBegin and TSEnd, for compatibility with old scripts.',
    type: timeSourceType(),
    default: 'nic',
  },
  tsMaxNs: {
    name: 'TSMax',
    says: 'Ends the download when this much time has passed since its first packet.',
    type: integerType(1n, INTEGER_MAX, 'nanoseconds'),
    defaultSays: 'no limit',
  },
  /** Largest body before compression, including what is not packets; it ends with a whole packet. */
  maxBytes: {
    name: 'MaxBytes',
    says: 'Ends the download at the last whole packet that keeps the body within this size, before compression and including everything else in the file.',
    type: integerType(BigInt(PCAP_HEADER_BYTES), INTEGER_MAX, 'bytes'),
    defaultSays: 'no limit',
  },
  maxPackets: {
    name: 'MaxPackets',
    says: 'Ends the download after this many packets.',
    type: integerType(1n, INTEGER_MAX, 'packets'),
    defaultSays: 'no limit',
  },
  /**
   * The body starts at this byte of the uncompressed body; undefined = the first. A caller who continues an earlier
   * download in this way must ensure that the store has not changed: packets that were removed since, or arrived late,
   * shift everything that follows.
   */
  afterBytes: {
    name: 'After',
    says: 'Skips this many bytes of the uncompressed body, to continue an interrupted download; not with Follow.',
    type: integerType(0n, INTEGER_MAX, 'bytes'),
    defaultSays: 'the whole body',
    deviceOnly: true,
  },
  /** In the order of STRIP_KINDS, each once; empty = whole packets. */
  strip: {
    name: 'Strip',
    says:
      'Removes headers from the packets: vlan (802.1Q, QinQ, VN-Tag), mpls, tunnels (everything around the innermost packet of PPPoE, IP in IP, GRE, ' +
      'VXLAN, Geneve, GTP-U and CAPWAP), or all; several are separated by commas. Filters see the packets as captured. ' +
      'What cannot be removed stays; Slice and Dedup apply to what is left.',
    type: stripType(),
    default: [],
    example: 'vlan,mpls',
  },
  sliceBytes: {
    name: 'Slice',
    says: 'Truncates each packet to this many bytes.',
    type: numberType(1, SLICE_MAX_BYTES, 'bytes'),
    defaultSays: 'whole packets',
  },
  /** Packets that equal one kept at most this long before are dropped. */
  dedupNs: {
    name: 'Dedup',
    says:
      'Drops packets that are copies of one that was kept at most this long before, from any port and any device; Capfleet-Duplicates counts them. ' +
      'Repeated packets of a sender are copies too: use the shortest time that finds the copies of your network.',
    type: integerType(1n, DEDUP_MAX_NS, 'nanoseconds'),
    defaultSays: 'all packets are kept',
  },
  dedupBy: {
    name: 'DedupBy',
    says:
      'What copies have in common: payload, every byte after the Ethernet header and its VLAN tags; ip, for copies from different networks, ' +
      'the outermost IP packet without TTL, hop limit and header checksum. Needs Dedup.',
    type: choiceType(DEDUP_KEYS),
    default: 'payload',
  },
  timeResolution: {
    name: 'TSResolution',
    says: 'Whether the timestamps of the PCAP are nanoseconds or microseconds. In pcapng they count nanoseconds, and usec makes the last three digits zero.',
    type: choiceType(['nsec', 'usec']),
    default: 'nsec',
  },
  format: {
    name: 'Format',
    says:
      'The format of the file: pcap; or pcapng, which says of each packet which device and capture port it is from, and may contain several link types. ' +
      'Its last block has a comment that begins with "capfleet end:"; a file without it is cut.',
    type: choiceType(FILE_FORMATS),
    default: 'pcap',
  },
  compression: {
    name: 'Compression',
    says:
      'How the body is compressed: gzip with fast, best or a level from 1 to 9; zstd with zstd, zstd_fast or zstd_ultra. ' +
      'Wireshark 4.0 reports zstd files with several frames as damaged: unpack them with zstd -d, or use gzip.',
    type: choiceType(COMPRESSIONS),
    default: 'none',
  },
  /** How long to wait for a download slot; undefined = the program's default. */
  waitS: {
    name: 'Wait',
    says: 'How long the request waits if no stream of the device is free. A gateway limits it to downloads.waitMaxS.',
    type: numberType(0, WAIT_MAX_S, 'seconds'),
    defaultSays: '0 at a device, downloads.waitS (25) at a gateway',
    leavesBody: true,
  },
} as const satisfies ParameterRows

/** An empty filter means none, and so does one of white space. */
function bpfType(): ParameterType<string> {
  return {
    schema: { type: 'string', maxLength: BPF_MAX_BYTES },
    whenTooLong: 'shorten it; FilterAddresses takes lists of addresses',
    read: (text, name) => {
      if (text.trim() === '') return undefined
      checkFilterText(name, text, { maxBytes: BPF_MAX_BYTES, forbidden: CONTROL_CHARACTER })
      return text
    },
    write: (text) => text,
  }
}

/**
 * Not trimmed, so that positions in errors match what was typed. White space is a pattern too: only the empty text
 * means none.
 */
function regexType(): ParameterType<string> {
  return {
    schema: { type: 'string', maxLength: REGEX_MAX_BYTES },
    read: (text, name) => {
      checkFilterText(name, text, { maxBytes: REGEX_MAX_BYTES, forbidden: NUL_CHARACTER })
      return text
    },
    write: (text) => text,
  }
}

/** A NUL would end the expression early inside the compiler; line ends and tabs are harmless. */
const CONTROL_CHARACTER = /[^\P{Cc}\t\r\n]/u
const NUL_CHARACTER = /\0/

interface FilterTextRule {
  readonly maxBytes: number
  readonly forbidden: RegExp
}

function checkFilterText(name: string, text: string, { maxBytes, forbidden }: FilterTextRule): void {
  if (Buffer.byteLength(text) > maxBytes) {
    throw badParameter(name, `is longer than ${maxBytes} bytes; shorten the expression`)
  }
  const position = text.search(forbidden)
  if (position < 0) return
  throw badParameter(name, `contains a control character at character ${position}; remove it`, position)
}

/** A list of words; "all" includes the others. */
function stripType(): ParameterType<readonly StripKind[]> {
  const words = STRIP_KINDS.join(', ')
  return {
    schema: { type: 'string', pattern: `^(${STRIP_KINDS.join('|')})(,(${STRIP_KINDS.join('|')}))*$` },
    read: (text, name) => {
      const given = text.split(',')
      const unknown = given.find((word) => !STRIP_KINDS.some((kind) => kind === word))
      if (unknown !== undefined)
        throw badParameter(name, `must be a list of ${words}, separated by commas, got ${quote(text)}`)
      return given.includes('all') ? ['all'] : STRIP_KINDS.filter((kind) => given.includes(kind))
    },
    write: (kinds) => kinds.join(','),
  }
}

function frameFilterType(): ParameterType<readonly FrameCondition[]> {
  return { schema: { type: 'string' }, read: parseFrameFilter, write: formatFrameFilter }
}

function timeSourceType(): ParameterType<TimeSource> {
  return {
    schema: { type: 'string', enum: TIME_SOURCES },
    read: readTimeSource,
    write: (source) => source,
  }
}

/**
 * The unit of a time range is not a clock, and what only the device knows is not interpreted here: both keep the
 * default.
 */
function readTimeSource(word: string, name: string, context: ReadContext): TimeSource | undefined {
  const { kind, at, timeSourceAliases: aliases = {} } = context
  const source = timeSourceOf(word, aliases)
  if (source !== undefined) return source
  const hasUnits = kind === 'timerange'
  if (hasUnits && timeUnitOf(word) !== undefined) return undefined
  // The device decides whether it knows the word.
  if (at === 'gateway') return undefined
  const words = [...TIME_SOURCES, ...Object.keys(aliases)].join(', ')
  const units = hasUnits ? ` (or, as in old scripts, a unit of the range: ${TIME_UNIT_WORDS.join(', ')})` : ''
  throw badParameter(name, `must be one of ${words}${units}, got ${quote(word)}`)
}
