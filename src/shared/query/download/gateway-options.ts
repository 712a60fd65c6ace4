/** Parameters of a download that only the gateway handles: none of them reaches a device. */
import {
  choiceType,
  INTEGER_MAX,
  integerType,
  numberType,
  patternType,
  SWITCH,
  TEXT,
  wordType,
} from '../parameter-types.ts'
import { badParameter, type ParameterRows, type ParameterValues } from '../query-parameters.ts'
import { type GivenParameters, readParameters } from '../read-parameters.ts'

const REQUEST_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export const GATEWAY_PARAMETERS = {
  /** partial: a merge continues without a device that has become unreadable. */
  onError: {
    name: 'OnError',
    says:
      'What happens if a device of a merge cannot be read: fail cuts the download, ' +
      'partial continues without the device and names it with its time range in the receipt and in Capfleet-Missing.',
    type: choiceType(['fail', 'partial']),
    default: 'fail',
  },
  /** A merge subtracts each device's clock offset from its timestamps. */
  align: {
    name: 'Align',
    says: "Subtracts each device's clock offset from its timestamps in a merge; rejected if the clock of a device is not known. Capfleet-Skew-Ns reports the offsets in any case.",
    type: SWITCH,
    default: false,
  },
  /** The SHA-256 of the body is added to the receipt and the trailers. */
  digest: {
    name: 'Digest',
    says: 'Adds the SHA-256 of the body as sent to the receipt and as the trailer Capfleet-Sha256.',
    type: wordType('sha256'),
    default: false,
    leavesBody: true,
  },
  /** Turns the download into an export. */
  queueJob: {
    name: 'Queue',
    says: 'Runs the download as an export, with one file in the first target: the answer is 202, with the path of the export in Location.',
    type: wordType('job'),
    default: false,
  },
  /** Id of the request that this one continues. */
  resumeId: {
    name: 'Resume',
    says:
      'Continues the download with this Capfleet-Request-Id. It must be of the same user and uncompressed, ' +
      'and the request must have the same path and query, or the same path with only Resume and Offset.',
    type: patternType(REQUEST_ID, 'must be the Capfleet-Request-Id of the download'),
    leavesBody: true,
  },
  /** Bytes of that request's body that the client has. */
  offsetBytes: {
    name: 'Offset',
    says: "The size of the client's file of the download that Resume names; the answer is the rest of that file.",
    type: integerType(0n, INTEGER_MAX, 'bytes'),
    defaultSays: 'a separate file, starting at the first packet that did not arrive completely',
    leavesBody: true,
  },
} as const satisfies ParameterRows

/** Authorizes a download; removed before any later step sees it. */
export const LINK_PARAMETERS = {
  ticket: {
    name: 'Ticket',
    says: 'Allows the download once without credentials: part of a link returned by POST /v1/tickets.',
    type: TEXT,
    leavesBody: true,
  },
} as const satisfies ParameterRows

/** /v1/requests */
export const RECEIPT_PARAMETERS = {
  limit: {
    name: 'Limit',
    says: 'Maximum number of receipts to list.',
    type: numberType(1, 1_000, 'receipts'),
    default: 50,
  },
} as const satisfies ParameterRows

/** /v1/events */
export const EVENTS_PARAMETERS = {
  lastEventId: {
    name: 'LastEventID',
    says:
      'The id of the last event that the client received; 0 requests all events that the gateway keeps: the newest of each device, for about an hour. ' +
      'The header Last-Event-ID takes precedence.',
    type: patternType(/^(0|[0-9a-f]{1,32}-\d{1,15})$/, 'must be the id of an event, or 0'),
    defaultSays: 'only new events',
  },
} as const satisfies ParameterRows

/** Selects devices at the root. */
export const FLEET_PARAMETERS = {
  devices: {
    name: 'Device',
    says: 'The devices: names, globs (nyc*, lon?) and sites (site=eu), separated by commas. The header Capfleet-Device is an alternative.',
    // An unset variable of a script must not mean all devices.
    type: { ...TEXT, readsEmpty: true },
    defaultSays: 'all devices; a call that changes something needs it',
    example: '*',
  },
} as const satisfies ParameterRows

export type GatewayOptions = ParameterValues<typeof GATEWAY_PARAMETERS>

/** Fails with bad-parameter. */
export function parseGatewayOptions(given: GivenParameters): GatewayOptions {
  const options = readParameters(GATEWAY_PARAMETERS, given)
  if (options.offsetBytes !== undefined && options.resumeId === undefined) {
    throw badParameter('Offset', 'needs Resume=<request id>; add it, or remove Offset')
  }
  return options
}
