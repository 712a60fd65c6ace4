/**
 * The requests by which a third-party device proves that it applies the filters of a download: the download itself, limited
 * to a moment, with one filter at a time replaced by a contradiction. All other parameters stay, because a device may apply a
 * filter only without them. The other filters are replaced by ones that every packet passes, as in the control request.
 */
import {
  type FrameField,
  formatFrameFilter,
  parseFrameFilter,
  rareValue,
} from '../../shared/query/frame-filter.ts'

/** One for FilterBPF, and one for each field of FilterFrame, because a device may support only some fields. */
export interface FilterQuestion {
  readonly name: FilterName
  /** Equal for all downloads to which the answer applies. */
  readonly key: string
  /** A filter that no packet passes and every device can compile. */
  readonly contradiction: string
}

export type FilterName = 'FilterBPF' | 'FilterFrame'

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
/** Every packet has a capture port, and hardly any device has one of this number; the control request verifies that packets pass. */
const PASSES_ALL_FRAMES = { field: 'capture.port', op: '!=', values: [rareValue('capture.port')] } as const

type Pair = readonly [name: string, value: string]

export class FilterQuestions {
  readonly pathname: string
  readonly questions: readonly FilterQuestion[]
  readonly #pairs: readonly Pair[]
  /** Replacement of each filter that is not being tested; undefined: it is omitted. */
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
    // If it is the only filter, the control request omits it: any device accepts that.
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

  /** Whether a device that applies the filter searches a whole capture before it answers that no packet passes. */
  get isOfWholeCapture(): boolean {
    return this.pathname.endsWith('/single')
  }

  /** All packets of the download, without filters, with their hardware times or with the times of the download's TSMode. */
  everything({ isTimedByHardware }: { readonly isTimedByHardware: boolean }): string {
    return this.#target(
      this.#pairs.filter(([name]) => RANGE_NAMES.has(name) || (!isTimedByHardware && name === 'TSMode')),
    )
  }

  get hasTimeSource(): boolean {
    return this.#pairs.some(([name]) => name === 'TSMode')
  }

  /** All packets of the moment that begins at `fromNs` (of a whole capture: all packets). With a question, none may come. */
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
