/**
 * What the gateway answers: the API of a device below /devices/{device} and, over the fleet, at the root; and what it
 * tells of itself.
 */
import type { ErrorCode } from '../base/error.ts'
import { AUDIT_PARAMETERS } from '../query/audit-parameters.ts'
import { EVENTS_PARAMETERS, FLEET_PARAMETERS, RECEIPT_PARAMETERS } from '../query/gateway-options.ts'
import { DOWNLOAD_TABLES } from '../query/parse-download-query.ts'
import { FLEET_ACTIVITY } from './activity-answers.ts'
import { AUDIT_PAGE } from './audit-answers.ts'
import { FLEET_CAPTURE_LIST, FLEET_SPLIT_LIST } from './capture-answers.ts'
import { DEVICE_API, DOWNLOAD_ANSWER, type DownloadEndpoint, downloadRows } from './device-api.ts'
import { ACTIVITY_PARAMETERS, ACTIVITY_RANGE } from './device-parameters.ts'
import { type Answer, type Endpoint, json } from './endpoint.ts'
import { EXPORT_ORDERED } from './export-api.ts'
import {
  DEVICE_REPORT,
  DEVICE_REPORTS,
  FLEET_ESTIMATE,
  FLEET_REPLIES,
  QUEUE,
  QUEUE_PLACE,
  RECEIPT,
  RECEIPTS,
  USERS,
} from './gateway-answers.ts'
import {
  CAPFLEET_DEVICE,
  CAPFLEET_UNREACHABLE,
  DOWNLOAD_HEADERS,
  DOWNLOAD_TRAILERS,
  GATEWAY_DOWNLOAD_HEADERS,
  GATEWAY_DOWNLOAD_TRAILERS,
  LAST_EVENT_ID,
} from './headers.ts'

/** What may go wrong between the gateway and a device. */
const DEVICE_ERRORS: readonly ErrorCode[] = [
  'device-unreachable',
  'device-protocol',
  'device-rejected',
  'device-timeout',
  'draining',
]

/** What may be wrong with the choice of devices, or cannot be said of it yet. */
const CHOICE_ERRORS: readonly ErrorCode[] = ['unknown-device', 'discovery-pending']

/** What may go wrong before a download has its streams, or is an export (Queue=job). */
const LEASE_ERRORS: readonly ErrorCode[] = [
  'audit-unavailable',
  'unknown-request',
  'not-implemented',
  'queue-timeout',
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
function changeErrors({ isChange }: Endpoint): readonly ErrorCode[] {
  return isChange === true ? ['audit-unavailable'] : []
}

/** A call that is passed on to a device. */
export function belowDevice(endpoint: Endpoint): Endpoint {
  return {
    ...endpoint,
    path: `/devices/:device${endpoint.path}`,
    // What the gateway says of the caller, it says itself.
    requestHeaders: (endpoint.requestHeaders ?? []).filter(({ name }) => name !== 'Capfleet-Caller'),
    parameters: endpoint.parameters ?? [],
    errors: [...endpoint.errors, ...CHOICE_ERRORS, ...DEVICE_ERRORS, ...changeErrors(endpoint)],
  }
}

/** A download of one device, for which nothing but the host differs. */
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

/** A download at the root: of whatever devices hold the packets. */
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

/** A call at the root that goes to several devices, whose answers come side by side. */
export function askedOfAll(endpoint: Endpoint): Endpoint {
  return {
    ...atRoot(endpoint),
    says: `Of each chosen device: ${endpoint.says}`,
    answers: [
      json(FLEET_REPLIES, 'All devices answered well.'),
      { ...json(FLEET_REPLIES, 'The status of the devices differs.'), status: 207 },
    ],
  }
}

/** A call at the root whose answer is that of the one device that Device= names. */
export function passedToOne(endpoint: Endpoint): Endpoint {
  return {
    ...atRoot(endpoint),
    says: `Of the one device that Device= names: ${endpoint.says}`,
  }
}

function atRoot(endpoint: Endpoint): Endpoint {
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

const { captures, sizeSplits, timeSplits } = DEVICE_API

const FLEET_SPLITS = json(
  FLEET_SPLIT_LIST,
  'The answer of the one device that holds the capture, with links that lead to it.',
)

export const GATEWAY_API = {
  // Lists over the fleet.
  captures: {
    ...atRoot(captures),
    filtered: 'uncounted',
    others: 'nothing',
    says: 'The captures of the chosen devices, newest first.',
    answers: [
      {
        says: 'The captures, each with its device.',
        bodies: {
          'application/json': FLEET_CAPTURE_LIST,
          'text/csv': 'text',
        },
        headers: [CAPFLEET_UNREACHABLE],
      },
    ],
  },
  sizeSplits: { ...atRoot(sizeSplits), answers: [FLEET_SPLITS] },
  timeSplits: { ...atRoot(timeSplits), answers: [FLEET_SPLITS] },
  estimate: {
    method: 'GET',
    path: '/v1/estimate',
    scope: 'capture:download',
    filtered: 'uncounted',
    others: 'nothing',
    group: 'Downloads',
    says:
      'What a download with this query would deliver, from the chosen devices or from the holder of StreamName. ' +
      'Takes no stream.',
    parameters: DOWNLOAD_TABLES.fleet,
    context: { at: 'fleet' },
    requestHeaders: [CAPFLEET_DEVICE],
    answers: [
      {
        ...json(FLEET_ESTIMATE, 'The sum, and what each device told.'),
        headers: [CAPFLEET_UNREACHABLE],
      },
    ],
    errors: [
      ...DEVICE_API.estimate.errors,
      ...CHOICE_ERRORS,
      'no-device',
      'ambiguous-capture',
      ...DEVICE_ERRORS,
    ],
  },

  activity: {
    method: 'GET',
    path: '/v1/activity',
    scope: 'device:read',
    filtered: 'refused',
    others: 'nothing',
    group: 'Lists',
    says: 'What the chosen devices recorded in each part of a time range, side by side. No packet is read.',
    parameters: [FLEET_PARAMETERS, ACTIVITY_RANGE, ACTIVITY_PARAMETERS],
    requestHeaders: [CAPFLEET_DEVICE],
    answers: [
      {
        ...json(FLEET_ACTIVITY, 'The parts of the range, of each device.'),
        headers: [CAPFLEET_UNREACHABLE],
      },
    ],
    errors: ['bad-timezone', 'ambiguous-timezone', ...CHOICE_ERRORS, 'out-of-bounds'],
  },

  // The gateway about its devices and itself.
  devices: {
    method: 'GET',
    path: '/v1/devices',
    scope: 'device:read',
    filtered: 'uncounted',
    others: 'nothing',
    group: 'Gateway',
    says: 'The devices, as their last probe found them; nobody is asked.',
    parameters: [{}],
    answers: [json(DEVICE_REPORTS, 'The devices.')],
    errors: [],
  },
  device: {
    method: 'GET',
    path: '/v1/devices/:device',
    scope: 'device:read',
    filtered: 'uncounted',
    others: 'nothing',
    group: 'Gateway',
    says: 'One device, as its last probe found it.',
    parameters: [{}],
    answers: [json(DEVICE_REPORT, 'The device.')],
    errors: CHOICE_ERRORS,
  },
  events: {
    method: 'GET',
    path: '/v1/events',
    scope: 'device:read',
    filtered: 'refused',
    others: 'emptied',
    group: 'Gateway',
    says:
      'What happens on the chosen devices, also on those that join the fleet later, as they tell it and as the gateway sees them: ' +
      'server-sent events, until the client leaves. However many clients there are, each device is listened to once.',
    parameters: [FLEET_PARAMETERS, EVENTS_PARAMETERS],
    requestHeaders: [CAPFLEET_DEVICE, LAST_EVENT_ID],
    answers: [
      {
        says:
          'First "fleet": how many devices there are, which are down, and whose own events cannot be heard (silent). ' +
          'Then "happened": device, source (device, gateway), kind, atNs, number (the device\'s own, or null) and what was told, with an id. ' +
          '"gap": so many events (missed, null: unknown) are not there, because the client was too slow or came back too late, ' +
          'or because the device lost them.',
        bodies: { 'text/event-stream': 'text' },
      },
    ],
    errors: ['event-streams-exhausted', 'draining', 'unknown-device'],
  },
  queue: {
    method: 'GET',
    path: '/v1/queue',
    scope: 'queue:read',
    filtered: 'nothing',
    others: 'named',
    group: 'Gateway',
    says: 'Who holds streams and who waits for them, over all gateways, the oldest requests first.',
    parameters: [{}],
    answers: [json(QUEUE, 'The requests.')],
    errors: ['scheduler-unavailable'],
  },
  queuePlace: {
    method: 'GET',
    path: '/v1/queue/:id',
    scope: 'queue:read',
    filtered: 'nothing',
    others: 'named',
    group: 'Gateway',
    says: 'One request while it waits or streams.',
    parameters: [{}],
    answers: [json(QUEUE_PLACE, 'The request.')],
    errors: ['unknown-request', 'scheduler-unavailable'],
  },
  receipt: {
    method: 'GET',
    path: '/v1/requests/:id',
    scope: 'capture:download',
    filtered: 'passing',
    others: 'own',
    group: 'Gateway',
    says: 'What became of a download, for 24 hours: for its user, and for whoever has the scope audit:read.',
    parameters: [{}],
    answers: [json(RECEIPT, 'The receipt.')],
    errors: ['unknown-request', 'scheduler-unavailable'],
  },
  receipts: {
    method: 'GET',
    path: '/v1/requests',
    scope: 'capture:download',
    filtered: 'passing',
    others: 'nothing',
    group: 'Gateway',
    says: 'What became of the downloads of the caller, for 24 hours, the newest first.',
    parameters: [RECEIPT_PARAMETERS],
    answers: [json(RECEIPTS, 'The receipts.')],
    errors: ['scheduler-unavailable'],
  },
  users: {
    method: 'GET',
    path: '/v1/users',
    scope: 'admin',
    filtered: 'nothing',
    others: 'said',
    isRecordedRead: true,
    group: 'Gateway',
    says: 'The users of the users file with their roles and bounds; those of identity providers are not known.',
    parameters: [{}],
    answers: [json(USERS, 'The users.')],
    errors: [],
  },
  audit: {
    method: 'GET',
    path: '/v1/audit',
    scope: 'audit:read',
    filtered: 'refused',
    others: 'own',
    isRecordedRead: true,
    group: 'Gateway',
    says:
      'Who did what, the newest lines first: those of all gateways and workers that share the folder of the audit. ' +
      'A page may have fewer lines than Limit, or none, although there are more: `next` tells.',
    parameters: [AUDIT_PARAMETERS],
    answers: [json(AUDIT_PAGE, 'A page of the audit.')],
    errors: [],
  },
} as const satisfies Record<string, Endpoint>

/** A path that only the device knows, and that the configuration says is for reading. */
export function readablePath(path: string): Endpoint {
  return belowDevice({
    method: 'GET',
    path,
    scope: 'device:read',
    filtered: 'refused',
    others: 'own',
    group: 'Other',
    says: 'A path of devices that control.readablePaths names.',
    answers: [{ says: 'What the device answers.', bodies: { '*/*': 'bytes' } }],
    errors: [],
  })
}

/** Any other path of a device: it might change something there. */
export const OTHER_DEVICE_PATH: Endpoint = {
  ...readablePath('/{*path}'),
  scope: 'capture:control',
  filtered: 'refused',
  others: 'own',
  says: 'Any other path of the device: it might change something there, so that pages of other sites are refused.',
  errors: [...DEVICE_ERRORS, ...CHOICE_ERRORS, 'not-found', 'cross-site', 'audit-unavailable'],
}
