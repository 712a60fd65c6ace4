/**
 * The requests by which a third-party device proves that it applies the filters of a download: the download itself, limited
 * to a moment, with one filter at a time replaced by a contradiction. All other parameters stay, because a device may apply a
 * filter only without them. The other filters are replaced by ones that every packet passes, as in the control request.
 *
 * FilterBPFDecap needs packets in tunnels: a filter for tunnels must not find a packet any more when the device applies it to
 * what is inside of them. Where no packet is in a tunnel, FilterBPFDecap changes nothing.
 */
import {
  type FrameCondition,
  type FrameField,
  formatFrameFilter,
  parseFrameFilter,
  rareValue,
} from '../../../shared/query/filter/frame-filter.ts'

/**
 * One for FilterBPF, one for each field of FilterFrame and one for its operator `!=`, because a device may support only some
 * of them.
 */
export interface FilterQuestion {
  /** The parameter that it is about. */
  readonly name: FilterName | 'FilterBPFDecap'
  /** Equal for all downloads to which the answer applies. */
  readonly key: string
  /** The request for packets of the moment that begins at `fromNs`: no packet may come. */
  ofMoment(fromNs: bigint): string
}

export type FilterName = 'FilterBPF' | 'FilterFrame'

/** Questions about packets that the same request finds. */
export interface FilterInquiry {
  readonly questions: readonly FilterQuestion[]
  /** Whether a device may have to search all packets to find those of the request. */
  readonly isFoundBySearch: boolean
  /** Whether a device may have to search all packets to answer a question. */
  readonly isSearch: boolean
  /** The request for packets, with their hardware times or with the times of the download's TSMode. */
  everything(how: { readonly isTimedByHardware: boolean }): string
  /** The control request: packets of the moment that begins at `fromNs` (of a whole capture: all packets). */
  ofMoment(fromNs: bigint): string
}

/** Parameters that select packets by name and time, where the time of a packet is the device's. */
const RANGE_NAMES: ReadonlySet<string> = new Set([
  'StreamName',
  'TSBegin',
  'TSEnd',
  'TSUnit',
  'TSZone',
  'Start',
  'Stop',
])
/** The rest of a body has the filters of the whole body. */
const LEFT_OUT: ReadonlySet<string> = new Set(['After'])
/** Devices may truncate times to milliseconds. */
const MOMENT_NS = 1_000_000n
/** A device that applies some conditions, but not all, is assumed to apply fewer than this. */
const CONDITIONS_MAX = 10

const PASSES_ALL_BPF = 'greater 0'
const PASSES_NONE_BPF = 'less 0'
/** Packets in tunnels: IP in IP, GRE, VXLAN, Geneve and GTP-U. */
const TUNNELS_BPF = [
  ...[4, 41, 47].flatMap((protocol) => [`ip proto ${protocol}`, `ip6 proto ${protocol}`]),
  ...[4789, 6081, 2152].map((port) => `udp port ${port}`),
].join(' or ')
/** A device with more capture ports is rejected, as if it did not apply the operator. */
const ALL_PORTS = Array.from({ length: 64 }, (_, port) => port)
/** Every packet has a capture port, and hardly any device has one of this number; the control request verifies that packets pass. */
const PASSES_ALL_FRAMES = { field: 'capture.port', op: '!=', values: [rareValue('capture.port')] } as const

type Pair = readonly [name: string, value: string]

export class FilterQuestions {
  readonly pathname: string
  /** Whether the download has a TSMode. */
  readonly hasTimeSource: boolean
  readonly inquiries: readonly FilterInquiry[]
  readonly #pairs: readonly Pair[]
  /** Replacement of each filter that is not being tested; undefined: it is omitted. */
  readonly #passesAll: Readonly<Record<FilterName, string | undefined>>

  constructor(target: string) {
    const { pathname, searchParams } = new URL(target, 'http://device')
    this.pathname = pathname
    this.hasTimeSource = searchParams.has('TSMode')
    this.#pairs = [...searchParams].filter(([name]) => !LEFT_OUT.has(name))
    const hasBpf = searchParams.has('FilterBPF')
    const frames = searchParams.get('FilterFrame')
    const conditions = frames === null ? [] : parseFrameFilter(frames)
    const first = Math.min(Math.max(conditions.length - 1, 0), CONDITIONS_MAX)
    // If it is the only filter, the control request omits it: any device accepts that.
    const isBpfAlone = frames === null && !searchParams.has('FilterBPFDecap')
    this.#passesAll = {
      FilterBPF: hasBpf && !isBpfAlone ? PASSES_ALL_BPF : undefined,
      FilterFrame: frames === null ? undefined : passesAllFrames(hasBpf ? Math.max(1, first) : first),
    }
    const names = [...new Set(this.#pairs.map(([name]) => name))].filter((name) => !RANGE_NAMES.has(name))
    const kind = `${pathname} ${names.toSorted().join()}`
    const questions = [
      ...(hasBpf ? [this.#question(`${kind} FilterBPF`, 'FilterBPF', PASSES_NONE_BPF)] : []),
      ...(frames === null ? [] : this.#frameQuestions(kind, { conditions, first })),
    ]
    this.inquiries = [
      {
        questions,
        isFoundBySearch: false,
        isSearch: pathname.endsWith('/single'),
        everything: (how) => this.#everything(how),
        ofMoment: (fromNs) => this.#ofMoment(fromNs),
      },
      ...(hasBpf && searchParams.get('FilterBPFDecap') === 'true' ? [this.#tunnels(kind)] : []),
    ]
  }

  #question(key: string, name: FilterName, contradiction: string): FilterQuestion {
    return { name, key, ofMoment: (fromNs) => this.#ofMoment(fromNs, { [name]: contradiction }) }
  }

  #frameQuestions(
    kind: string,
    { conditions, first }: { readonly conditions: readonly FrameCondition[]; readonly first: number },
  ): readonly FilterQuestion[] {
    const fields = new Set(conditions.map(({ field }) => field))
    if (fields.size === 0) fields.add('capture.port')
    const ofField = (field: FrameField) =>
      this.#question(`${kind} ${field} ${first}`, 'FilterFrame', frameContradiction(field, first))
    const isExcluding = conditions.some(({ op }) => op === '!=')
    return [
      ...[...fields].map(ofField),
      ...(isExcluding ? [this.#question(`${kind} != ${first}`, 'FilterFrame', exclusionOfAll(first))] : []),
    ]
  }

  #tunnels(kind: string): FilterInquiry {
    const ofMoment = (fromNs: bigint, isDecap: boolean) =>
      this.#ofMoment(fromNs, { FilterBPF: TUNNELS_BPF, FilterBPFDecap: isDecap ? 'true' : undefined })
    return {
      questions: [
        {
          name: 'FilterBPFDecap',
          key: `${kind} FilterBPFDecap`,
          ofMoment: (fromNs) => ofMoment(fromNs, true),
        },
      ],
      isFoundBySearch: true,
      isSearch: true,
      everything: (how) => `${this.#everything(how)}&FilterBPF=${encodeURIComponent(TUNNELS_BPF)}`,
      ofMoment: (fromNs) => ofMoment(fromNs, false),
    }
  }

  /** All packets of the download, without filters. */
  #everything({ isTimedByHardware }: { readonly isTimedByHardware: boolean }): string {
    return this.#target(
      this.#pairs.filter(([name]) => RANGE_NAMES.has(name) || (!isTimedByHardware && name === 'TSMode')),
    )
  }

  /**
   * The download, limited to the moment, with filters that every packet passes, but for those that are given; undefined:
   * the parameter is omitted.
   */
  #ofMoment(fromNs: bigint, given: Readonly<Record<string, string | undefined>> = {}): string {
    const filters: Readonly<Record<string, string | undefined>> = { ...this.#passesAll, ...given }
    const others = this.#pairs.flatMap(([name, value]): Pair[] => {
      if (RANGE_NAMES.has(name)) return []
      if (!(name in filters)) return [[name, value]]
      const text = filters[name]
      return text === undefined ? [] : [[name, text]]
    })
    return this.#target([...this.#momentRange(fromNs), ...others])
  }

  #momentRange(fromNs: bigint): readonly Pair[] {
    const [from, to] = [String(fromNs), String(fromNs + MOMENT_NS)]
    const name = ['StreamName', this.#pairs.find(([one]) => one === 'StreamName')?.[1] ?? ''] as const
    if (this.pathname.endsWith('/single')) return [name]
    if (this.pathname.endsWith('/splittime')) return [name, ['Start', from], ['Stop', to]]
    return [
      ['TSBegin', from],
      ['TSEnd', to],
      ['TSUnit', 'nanos'],
    ]
  }

  #target(pairs: readonly Pair[]): string {
    return `${this.pathname}?${pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')}`
  }
}

function passesAllFrames(count: number): string | undefined {
  return count === 0 ? undefined : formatFrameFilter(Array.from({ length: count }, () => PASSES_ALL_FRAMES))
}

/**
 * It is preceded by as many conditions as the filter has besides its last one, so that a device that applies fewer conditions
 * than the filter has does not reach the contradiction. A device that applies only the last condition of a field lets packets
 * pass.
 */
function frameContradiction(field: FrameField, first: number): string {
  const values = [rareValue(field)]
  return formatFrameFilter([
    ...Array.from({ length: first }, () => PASSES_ALL_FRAMES),
    { field, op: '==', values },
    { field, op: '!=', values },
  ])
}

/**
 * All capture ports are excluded, because no other field has few values; a device is assumed to apply the operator to each
 * field that it knows. A device that applies fewer conditions than the filter has, or only the last one, lets packets pass.
 */
function exclusionOfAll(first: number): string {
  return formatFrameFilter([
    ...Array.from({ length: first }, () => PASSES_ALL_FRAMES),
    { ...PASSES_ALL_FRAMES, values: ALL_PORTS },
    PASSES_ALL_FRAMES,
  ])
}
