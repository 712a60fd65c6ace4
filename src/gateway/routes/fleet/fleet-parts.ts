import type { LiveLimit } from '../../../shared/http/live-limit.ts'
import type { RunningUploads } from '../../../shared/http/running-uploads.ts'
import type { DeviceProxy } from '../../device/device-proxy.ts'
import type { FleetEvents } from '../../fleet/events/fleet-events.ts'
import type { DownloadParts } from '../../serve/serve-download.ts'
import type { RequestParts } from '../request/request-parts.ts'

/** The parts used by handlers of devices, captures and events. */
export interface FleetParts extends RequestParts {
  readonly downloads: Pick<DownloadParts, 'fleet' | 'leases' | 'clientIdleTimeoutMs'>
  /** Events of the whole fleet. The handler that opens a stream limits it to the devices of its caller. */
  readonly events: FleetEvents
  /** Clients that follow events. */
  readonly live: LiveLimit
  readonly proxy: DeviceProxy
  readonly uploads: RunningUploads
}
