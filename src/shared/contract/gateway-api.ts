/**
 * What the gateway answers: the API of a device below /devices/{device} and, over the fleet, at the root; and
 * information about itself.
 */
import { COUNT_PARAMETERS } from '../query/download/count-query.ts'
import { EVENTS_PARAMETERS, FLEET_PARAMETERS, RECEIPT_PARAMETERS } from '../query/download/gateway-options.ts'
import { DOWNLOAD_TABLES } from '../query/download/parse-download-query.ts'
import { FLEET_ACTIVITY } from './activity-answers.ts'
import { AUDIT_PAGE } from './audit-answers.ts'
import { AUDIT_PARAMETERS } from './audit-parameters.ts'
import { FLEET_CAPTURE_LIST, FLEET_SPLIT_LIST } from './capture-answers.ts'
import { DEVICE_API } from './device-api.ts'
import { ACTIVITY_PARAMETERS, ACTIVITY_RANGE } from './device-parameters.ts'
import { type Endpoint, json } from './endpoint.ts'
import {
  DEVICE_REPORT,
  DEVICE_REPORTS,
  FLEET_ESTIMATE,
  QUEUE,
  QUEUE_PLACE,
  RECEIPT,
  RECEIPTS,
  USERS,
} from './gateway-answers.ts'
import { CAPFLEET_DEVICE, CAPFLEET_UNREACHABLE, LAST_EVENT_ID } from './headers.ts'
import { atRoot, CHOICE_ERRORS, DEVICE_ERRORS, LINES_ERRORS } from './repeated-endpoints.ts'
import { SEEN_WAIT } from './seen-parameters.ts'

const { captures, sizeSplits, timeSplits, seen } = DEVICE_API

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
    says: 'The captures of the selected devices, newest first.',
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
    takesForm: true,
    scope: 'capture:download',
    filtered: 'uncounted',
    others: 'nothing',
    group: 'Downloads',
    says:
      'What a download with this query would deliver, from the selected devices or from the device that holds StreamName. ' +
      'Takes no stream.',
    parameters: DOWNLOAD_TABLES.fleet,
    context: { at: 'fleet' },
    requestHeaders: [CAPFLEET_DEVICE],
    answers: [
      {
        ...json(FLEET_ESTIMATE, 'The sum, and the estimate of each device.'),
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

  count: {
    ...DEVICE_API.count,
    path: '/v1/count',
    says:
      'What a download with this query would deliver, from the selected devices or from the device that holds StreamName, counted by reading its packets, which are not sent. ' +
      'Each device is read as soon as it has a free stream. An answer without a last line with "end" is not whole.',
    parameters: [...DOWNLOAD_TABLES.fleet, COUNT_PARAMETERS],
    context: { at: 'fleet' },
    requestHeaders: [CAPFLEET_DEVICE],
    answers: [
      {
        says:
          'Lines of JSON: about one a second of each device with its progress, one when it has counted, or one with its error, and one with "end" at the end: ' +
          '`{"end":true,"packets":"1204","bytes":"140356","exact":true,"complete":true,"devices":2,"unanswered":[],"partial":[]}`.',
        bodies: { 'application/x-ndjson': 'text' },
      },
    ],
    errors: [
      ...DEVICE_API.count.errors,
      'no-device',
      'ambiguous-capture',
      ...CHOICE_ERRORS,
      ...DEVICE_ERRORS,
      ...LINES_ERRORS,
    ],
  },

  activity: {
    method: 'GET',
    path: '/v1/activity',
    scope: 'device:read',
    filtered: 'refused',
    others: 'nothing',
    group: 'Lists',
    says: 'What the selected devices recorded in each part of a time range, side by side. No packet is read.',
    parameters: [FLEET_PARAMETERS, ACTIVITY_RANGE, ACTIVITY_PARAMETERS],
    requestHeaders: [CAPFLEET_DEVICE],
    answers: [
      {
        ...json(FLEET_ACTIVITY, 'The parts of the range, for each device.'),
        headers: [CAPFLEET_UNREACHABLE],
      },
    ],
    errors: ['bad-timezone', 'ambiguous-timezone', ...CHOICE_ERRORS, 'out-of-bounds'],
  },

  seen: {
    ...seen,
    path: '/v1/seen',
    filtered: 'verified',
    says:
      'When and at which of the selected devices addresses and networks were seen. Without Verify no packet is read. With Verify each device is read as soon as ' +
      'it has a free stream. Without a last line with "end" the answer is not whole; that line says whether it is complete, and which devices did not answer.',
    parameters: [FLEET_PARAMETERS, ...(seen.parameters ?? []), SEEN_WAIT],
    requestHeaders: [CAPFLEET_DEVICE],
    answers: [
      {
        says:
          'Lines of JSON, as devices send them: one for each address that was seen or may have been at a device, one for each device that failed, with Verify ' +
          'also lines with the progress, and one with "end" at the end: `{"device":"fra1","address":"203.0.113.9","spans":[{"fromNs":"...","toNs":"..."}]}`.',
        bodies: { 'application/x-ndjson': 'text' },
      },
    ],
    errors: [
      'bad-bpf',
      'bad-timezone',
      'ambiguous-timezone',
      'compiler-busy',
      'draining',
      'no-device',
      ...CHOICE_ERRORS,
      ...LINES_ERRORS,
    ],
  },

  // The gateway's information about its devices and itself.
  devices: {
    method: 'GET',
    path: '/v1/devices',
    scope: 'device:read',
    filtered: 'uncounted',
    others: 'nothing',
    group: 'Gateway',
    says: 'The devices, as of their last probe; no device is contacted.',
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
    says: 'One device, as of its last probe.',
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
      'Events on the selected devices, including devices that join the fleet later, as the devices report them and as the gateway sees them: ' +
      'server-sent events, until the client disconnects. The gateway keeps one connection per device, however many clients there are.',
    parameters: [FLEET_PARAMETERS, EVENTS_PARAMETERS],
    requestHeaders: [CAPFLEET_DEVICE, LAST_EVENT_ID],
    answers: [
      {
        says:
          'First "fleet": the number of devices, which are down, and which deliver no events of their own (silent). ' +
          'Then "happened": device, source (device, gateway), kind, atNs, number (the device\'s own, or null) and the facts, with an id. ' +
          '"gap": events are missing (missed: how many, null: unknown), because the client was too slow or came back too late, ' +
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
    filtered: 'passing',
    others: 'named',
    group: 'Gateway',
    says: 'The requests that hold or wait for streams, across all gateways, oldest first.',
    parameters: [{}],
    answers: [json(QUEUE, 'The requests.')],
    errors: ['scheduler-unavailable'],
  },
  queuePlace: {
    method: 'GET',
    path: '/v1/queue/:id',
    scope: 'queue:read',
    filtered: 'passing',
    others: 'named',
    group: 'Gateway',
    says: 'One request, while it waits or streams. The id of a count or a search has all of its devices, that of a row of the queue one of them.',
    parameters: [{}],
    answers: [json(QUEUE_PLACE, 'The request.')],
    errors: ['unknown-request', 'scheduler-unavailable'],
  },
  cancel: {
    method: 'DELETE',
    path: '/v1/queue/:id',
    scope: 'capture:download',
    filtered: 'passing',
    others: 'nothing',
    changes: 'queue',
    group: 'Gateway',
    says:
      'Cancels a download, a count or a search, whether it waits or streams: for its user, and for callers with the scopes admin and audit:read. ' +
      'The id of a count or a search cancels it at all of its devices, that of a row of the queue (ID.N) at one of them. ' +
      'Its client gets 409 download-cancelled, or, after the first byte, a body that is cut; the receipt says who cancelled it.',
    parameters: [{}],
    answers: [
      {
        ...json(QUEUE_PLACE, 'The request as it was. The gateway that serves it ends it at once.'),
        status: 202,
      },
    ],
    errors: [
      'unknown-request',
      'part-of-export',
      'replica-lost',
      'scheduler-unavailable',
      'audit-unavailable',
      'cross-site',
    ],
  },
  receipt: {
    method: 'GET',
    path: '/v1/requests/:id',
    scope: 'capture:download',
    filtered: 'passing',
    others: 'own',
    group: 'Gateway',
    says: 'The outcome of a download, kept for 24 hours: for its user, and for callers with the scope audit:read.',
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
    says: "The outcome of the caller's downloads of the last 24 hours, newest first.",
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
    says: 'The users of the users file with their roles and bounds. Users of identity providers are not listed.',
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
      'The audit, newest lines first: those of all gateways and workers that share the audit folder. ' +
      'A page may have fewer lines than Limit, or none, although more follow: check `next`.',
    parameters: [AUDIT_PARAMETERS],
    answers: [json(AUDIT_PAGE, 'A page of the audit.')],
    errors: [],
  },
} as const satisfies Record<string, Endpoint>
