/**
 * What a third-party device is asked to show that it heeds the filters of a download: the download itself, cut to a moment, with
 * one filter at a time replaced by a contradiction. All other parameters stay, because a device may heed a filter only without
 * them; the other filters are replaced by ones that every packet passes, and are in the control question too.
 */
import {
  type FrameField,
  formatFrameFilter,
  parseFrameFilter,
  rareValue,
} from '../../shared/query/frame-filter.ts'

/** One parameter for FilterBPF, one for each field of FilterFrame: a device may know some fields only. */
export interface FilterQuestion {
  readonly name: FilterName
  /** The same for all downloads that the answer holds for. */
  readonly key: string
  /** What no packet passes, and every device can compile. */
  readonly contradiction: string
}

export type FilterName = 'FilterBPF' | 'FilterFrame'

/** What chooses packets by name and time; the time of a packet is that of the device. */
const RANGE_NAMES: ReadonlySet<string> = new Set([
  'StreamName',
  'TSBegin',
  'TSEnd',
  'TSUnit',
  'TSZone',
  'Start',
  'Stop',
])
/** A rest of a body is no different from the body in what its filters are. */
const LEFT_OUT: ReadonlySet<string> = new Set(['After'])
/** Devices may cut times to milliseconds. */
const MOMENT_NS = 1_000_000n
/** A device that heeds a few conditions, but not all, heeds fewer than this. */
const CONDITIONS_MAX = 10

const PASSES_ALL_BPF = 'greater 0'
const PASSES_NONE_BPF = 'less 0'
/** Every packet has a capture port, and hardly a device has so many of them. The control question shows whether all packets pass. */
const PASSES_ALL_FRAMES = { field: 'capture.port', op: '!=', values: [rareValue('capture.port')] } as const

type Pair = readonly [name: string, value: string]

export class FilterQuestions {
  readonly pathname: string
  readonly questions: readonly FilterQuestion[]
  readonly #pairs: readonly Pair[]
  /** What takes the place of each filter that is not asked about; undefined: it is left out. */
  readonly #passesAll: Readonly<Record<FilterName, string | undefined>>

  constructor(target: string) {
    const { pathname, searchParams } = new URL(target, 'http://device')
    this.pathname = pathname
    this.#pairs = [...searchParams].filter(([name]) => !LEFT_OUT.has(name))
    const hasBpf = searchParams.has('FilterBPF')
    const frames = searchParams.get('FilterFrame')
    const conditions = frames === null ? [] : parseFrameFilter(frames)
    const first = Math.min(Math.max(conditions.length - 1, 0), CONDITIONS_MAX)
    const fields = new Set(conditions.map(({ field }) => field))
    if (frames !== null && fields.size === 0) fields.add('capture.port')
    // Where the filter is the only one, the control question may be a download without it: few devices refuse that.
    const isBpfAlone = frames === null && !searchParams.has('FilterBPFDecap')
    this.#passesAll = {
      FilterBPF: hasBpf && !isBpfAlone ? PASSES_ALL_BPF : undefined,
      FilterFrame: frames === null ? undefined : passesAllFrames(hasBpf ? Math.max(1, first) : first),
    }
    const names = [...new Set(this.#pairs.map(([name]) => name))].filter((name) => !RANGE_NAMES.has(name))
    const kind = `${pathname} ${names.toSorted().join()}`
    this.questions = [
      ...(hasBpf
        ? [{ name: 'FilterBPF', key: `${kind} FilterBPF`, contradiction: PASSES_NONE_BPF } as const]
        : []),
      ...[...fields].map((field) => ({
        name: 'FilterFrame' as const,
        key: `${kind} ${field} ${first}`,
        contradiction: frameContradiction(field, first),
      })),
    ]
  }

  /** Whether a device that heeds the filter looks through a whole capture before it answers that no packet passes. */
  get isOfWholeCapture(): boolean {
    return this.pathname.endsWith('/single')
  }

  /** All packets of the download, without filters; their times are those of the hardware, or as the download has them. */
  everything({ isTimedByHardware }: { readonly isTimedByHardware: boolean }): string {
    return this.#target(
      this.#pairs.filter(([name]) => RANGE_NAMES.has(name) || (!isTimedByHardware && name === 'TSMode')),
    )
  }

  get hasTimeSource(): boolean {
    return this.#pairs.some(([name]) => name === 'TSMode')
  }

  /** All packets of a moment that begins at `fromNs`; of a whole capture there is nothing less. With a question, no packet. */
  ofMoment(fromNs: bigint, question?: FilterQuestion): string {
    const others = this.#pairs.flatMap(([name, value]): Pair[] => {
      if (RANGE_NAMES.has(name)) return []
      if (name === question?.name) return [[name, question.contradiction]]
      if (name !== 'FilterBPF' && name !== 'FilterFrame') return [[name, value]]
      const text = this.#passesAll[name]
      return text === undefined ? [] : [[name, text]]
    })
    return this.#target([...this.#momentRange(fromNs), ...others])
  }

  #momentRange(fromNs: bigint): readonly Pair[] {
    const [from, to] = [String(fromNs), String(fromNs + MOMENT_NS)]
    const name = ['StreamName', this.#pairs.find(([one]) => one === 'StreamName')?.[1] ?? ''] as const
    if (this.isOfWholeCapture) return [name]
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
 * The conditions in front are as many as the filter has beside its last one: a device that heeds fewer than the filter has
 * does not come to the contradiction. One that heeds only the last condition of a field lets packets pass.
 */
function frameContradiction(field: FrameField, first: number): string {
  const values = [rareValue(field)]
  return formatFrameFilter([
    ...Array.from({ length: first }, () => PASSES_ALL_FRAMES),
    { field, op: '==', values },
    { field, op: '!=', values },
  ])
}
