import type { TimeSourceAliases } from '../../../shared/query/time-source.ts'
import type { CallLimits } from '../../fleet/questions/call-limits.ts'
import type { FleetView } from '../../fleet/visible-fleet.ts'
import type { DownloadParts } from '../../serve/serve-download.ts'

/** The parts needed to read a request, whatever its answer. */
export interface RequestParts {
  /** What the caller may see of the fleet. */
  readonly fleet: FleetView
  readonly callLimits: CallLimits
  /** The parts of a download. Their fleet is the whole one, not only what the caller may see. */
  readonly downloads: Pick<DownloadParts, 'fleet'>
  readonly limits: GatewayLimits
  /** Aborts at the start of a shutdown, with the error draining as its reason. */
  readonly draining: AbortSignal
}

export interface GatewayLimits {
  readonly waitS: number
  readonly waitMaxS: number
  readonly devicesMax: number
  readonly streamsPerDevice: number
  readonly probeTimeoutMs: number
  readonly controlTimeoutMs: number
  /** Whether the non-streaming paths below /api/v1/system/ answer without credentials. */
  readonly anonymousSystem: boolean
  /** Whether /metrics answers without credentials. */
  readonly anonymousMetrics: boolean
  readonly listEntriesMax: number
  /** IANA name, for local times without TSZone. */
  readonly timeZone: string
  readonly tsModeAliases: TimeSourceAliases
  /** Whether the page offers the tour of the demo. */
  readonly demoTour: boolean
}
