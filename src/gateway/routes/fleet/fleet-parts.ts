import type { LiveLimit } from '../../../shared/http/live-limit.ts'
import type { DeviceProxy } from '../../device/device-proxy.ts'
import type { FleetEvents } from '../../fleet/events/fleet-events.ts'
import type { DownloadParts } from '../../serve/serve-download.ts'
import type { RequestParts } from '../request/request-parts.ts'

/** What answers of devices, captures and events take. */
export interface FleetParts extends RequestParts {
  readonly downloads: Pick<DownloadParts, 'fleet' | 'leases' | 'clientIdleTimeoutMs'>
  /** Of the whole fleet: whoever opens it says whose events its caller may hear. */
  readonly events: FleetEvents
  /** Clients that follow events. */
  readonly live: LiveLimit
  readonly proxy: DeviceProxy
}
