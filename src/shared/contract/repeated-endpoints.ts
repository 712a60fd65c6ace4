/** How the gateway repeats the endpoints of a device: below /devices/{device}, and over the fleet at the root. */
import type { ErrorCode } from '../base/error.ts'
import { COUNT_PARAMETERS } from '../query/download/count-query.ts'
import { FLEET_PARAMETERS } from '../query/download/gateway-options.ts'
import { DOWNLOAD_TABLES } from '../query/download/parse-download-query.ts'
import { DOWNLOAD_ANSWER, type DownloadEndpoint, downloadRows } from './device-api.ts'
import { type Answer, type Endpoint, json } from './endpoint.ts'
import { EXPORT_ORDERED } from './export-api.ts'
import { FLEET_REPLIES } from './gateway-answers.ts'
import {
  CAPFLEET_DEVICE,
  DOWNLOAD_HEADERS,
  DOWNLOAD_TRAILERS,
  GATEWAY_DOWNLOAD_HEADERS,
  GATEWAY_DOWNLOAD_TRAILERS,
} from './headers.ts'
import { SEEN_WAIT } from './seen-parameters.ts'

/** Errors between the gateway and a device. */
export const DEVICE_ERRORS: readonly ErrorCode[] = [
  'device-unreachable',
  'device-protocol',
  'device-rejected',
  'device-timeout',
  'draining',
]

/** Errors in the selection of devices, or because it cannot be resolved yet. */
export const CHOICE_ERRORS: readonly ErrorCode[] = ['unknown-device', 'discovery-pending']

/** Errors before a download has its streams, or has become an export (Queue=job). */
const LEASE_ERRORS: readonly ErrorCode[] = [
  'audit-unavailable',
  'unknown-request',
  'not-implemented',
  'queue-timeout',
  'download-cancelled',
  'scheduler-unavailable',
  'exports-off',
  'user-quota',
  'bad-ticket',
  'idempotency-conflict',
  'cross-site',
]

const GATEWAY_DOWNLOAD_ANSWER: Answer = {
  ...DOWNLOAD_ANSWER,
  headers: [...DOWNLOAD_HEADERS, ...GATEWAY_DOWNLOAD_HEADERS],
  trailers: [...DOWNLOAD_TRAILERS, ...GATEWAY_DOWNLOAD_TRAILERS],
}

/** What a change may meet before it is passed on. */
function changeErrors({ changes }: Endpoint): readonly ErrorCode[] {
  return changes === undefined ? [] : ['audit-unavailable']
}

/** A call that is forwarded to a device. */
export function belowDevice(endpoint: Endpoint): Endpoint {
  return {
    ...endpoint,
    path: `/devices/:device${endpoint.path}`,
    // The gateway itself sets what identifies the caller.
    requestHeaders: (endpoint.requestHeaders ?? []).filter(({ name }) => name !== 'Capfleet-Caller'),
    parameters: endpoint.parameters ?? [],
    errors: [...endpoint.errors, ...CHOICE_ERRORS, ...DEVICE_ERRORS, ...changeErrors(endpoint)],
  }
}

/** A download from one device, which differs from the device's own only in the host. */
export function downloadBelowDevice(endpoint: DownloadEndpoint): Endpoint {
  const below = belowDevice(endpoint)
  return {
    ...below,
    parameters: downloadRows(endpoint.path, endpoint.context.kind, 'gateway'),
    context: { ...endpoint.context, at: 'gateway' },
    answers: [GATEWAY_DOWNLOAD_ANSWER, EXPORT_ORDERED],
    errors: [...below.errors, ...LEASE_ERRORS],
  }
}

/** A download at the root, from whichever devices hold the packets. */
export function downloadOfFleet(endpoint: DownloadEndpoint, says: string): Endpoint {
  return {
    ...atRoot(endpoint),
    says,
    parameters: downloadRows(endpoint.path, endpoint.context.kind, 'fleet'),
    context: { ...endpoint.context, at: 'fleet' },
    answers: [GATEWAY_DOWNLOAD_ANSWER, EXPORT_ORDERED],
    errors: [
      ...endpoint.errors,
      ...CHOICE_ERRORS,
      'no-device',
      'ambiguous-capture',
      ...DEVICE_ERRORS,
      ...LEASE_ERRORS,
    ],
  }
}

/** Errors before devices begin to answer in lines. What reads packets takes streams, as a download does. */
export const LINES_ERRORS: readonly ErrorCode[] = [
  'out-of-bounds',
  'stream-quota',
  'byte-quota',
  'audit-unavailable',
  'scheduler-unavailable',
]

/** A search for addresses at one device, whose answer differs from the device's own only in the host. */
export function searchBelowDevice(endpoint: Endpoint): Endpoint {
  const below = belowDevice(endpoint)
  return {
    ...below,
    filtered: 'verified',
    parameters: [...(below.parameters ?? []), SEEN_WAIT],
    errors: [...below.errors, ...LINES_ERRORS, 'queue-timeout', 'download-cancelled', 'seen-unsupported'],
  }
}

/** A count of what one device would deliver, whose answer differs from the device's own only in the host. */
export function countBelowDevice(endpoint: Endpoint): Endpoint {
  const below = belowDevice(endpoint)
  return {
    ...below,
    parameters: [...DOWNLOAD_TABLES.gateway, COUNT_PARAMETERS],
    context: { at: 'gateway' },
    errors: [...below.errors, ...LINES_ERRORS, 'queue-timeout', 'download-cancelled', 'count-unsupported'],
  }
}

/** A call at the root that goes to several devices, whose answers are returned side by side. */
export function askedOfAll(endpoint: Endpoint): Endpoint {
  return {
    ...atRoot(endpoint),
    says: `For each selected device: ${endpoint.says}`,
    answers: [
      json(FLEET_REPLIES, 'All devices succeeded.'),
      { ...json(FLEET_REPLIES, 'At least one device failed; each entry has its status.'), status: 207 },
    ],
  }
}

/** A call at the root whose answer is that of the one device named by Device=. */
export function passedToOne(endpoint: Endpoint): Endpoint {
  return {
    ...atRoot(endpoint),
    says: `For the one device that Device= names: ${endpoint.says}`,
  }
}

export function atRoot(endpoint: Endpoint): Endpoint {
  return {
    ...endpoint,
    parameters: [FLEET_PARAMETERS, ...(endpoint.parameters ?? [])],
    requestHeaders: [
      CAPFLEET_DEVICE,
      ...(endpoint.requestHeaders ?? []).filter(({ name }) => name !== 'Capfleet-Caller'),
    ],
    errors: [
      ...endpoint.errors,
      ...CHOICE_ERRORS,
      'no-device',
      'ambiguous-capture',
      ...DEVICE_ERRORS,
      ...changeErrors(endpoint),
    ],
  }
}

/** A path that only the device knows, and that the configuration declares to be read-only. */
export function readablePath(path: string): Endpoint {
  return belowDevice({
    method: 'GET',
    path,
    scope: 'device:read',
    filtered: 'refused',
    others: 'own',
    group: 'Other',
    says: 'A path of devices that is listed in control.readablePaths.',
    answers: [{ says: "The device's answer.", bodies: { '*/*': 'bytes' } }],
    errors: [],
  })
}

/** Any other path of a device: it might change something there. */
export const OTHER_DEVICE_PATH: Endpoint = {
  ...readablePath('/{*path}'),
  scope: 'capture:control',
  filtered: 'refused',
  others: 'own',
  says: 'Any other path of the device. It might change something there, so cross-site requests are rejected.',
  errors: [...DEVICE_ERRORS, ...CHOICE_ERRORS, 'not-found', 'cross-site', 'audit-unavailable'],
}
