/** What a download's parameters say to the gateway alone: none of it reaches a device. */
import {
  choiceType,
  INTEGER_MAX,
  integerType,
  numberType,
  patternType,
  SWITCH,
  TEXT,
  wordType,
} from './parameter-types.ts'
import { badParameter, type ParameterRows, type ParameterValues } from './query-parameters.ts'
import { type GivenParameters, readParameters } from './read-parameters.ts'

/** Longer than any network delays a packet; keeps what a merge must remember small. */
const DEDUP_MAX_NS = 10_000_000_000n
const REQUEST_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export const GATEWAY_PARAMETERS = {
  /** partial: a merge goes on without a device that cannot be read any more. */
  onError: {
    name: 'OnError',
    says:
      'What becomes of a merge when a device cannot be read: fail cuts the download, ' +
      'partial goes on without the device and names it with its time range in the receipt and in Capfleet-Missing.',
    type: choiceType(['fail', 'partial']),
    default: 'fail',
  },
  /** A merge drops a packet that another device had within so long before. */
  dedupNs: {
    name: 'Dedup',
    says: 'Drops packets of a merge that another device had within so long; Capfleet-Duplicates counts them.',
    type: integerType(1n, DEDUP_MAX_NS, 'nanoseconds'),
    defaultSays: 'all packets stay',
  },
  /** A merge subtracts each device's clock offset from its timestamps. */
  align: {
    name: 'Align',
    says: "Subtracts each device's clock offset from its timestamps in a merge; Capfleet-Skew-Ns names the offsets either way.",
    type: SWITCH,
    default: false,
  },
  /** The SHA-256 of the body goes into the receipt and the trailers. */
  digest: {
    name: 'Digest',
    says: 'Tells the SHA-256 of the body as sent, in the receipt and in the trailer Capfleet-Sha256.',
    type: wordType('sha256'),
    default: false,
    leavesBody: true,
  },
  /** Becomes an export. */
  queueJob: {
    name: 'Queue',
    says: 'Makes an export of the download, with one file in the first target: the answer is 202, and Location says where it is.',
    type: wordType('job'),
    default: false,
  },
  /** Id of the request that this one continues. */
  resumeId: {
    name: 'Resume',
    says:
      'Goes on with the download whose Capfleet-Request-Id this is: of the same user, uncompressed, ' +
      'with the same address or with Resume and Offset alone on its path.',
    type: patternType(REQUEST_ID, 'must be the Capfleet-Request-Id of the download'),
    leavesBody: true,
  },
  /** Bytes of that request's body that the client has. */
  offsetBytes: {
    name: 'Offset',
    says: 'The size of the file that the client has of the download which Resume names; the answer is the rest of it.',
    type: integerType(0n, INTEGER_MAX, 'bytes'),
    defaultSays: 'a file of its own, from the first packet that did not arrive whole',
    leavesBody: true,
  },
} as const satisfies ParameterRows

/** What lets a download in; nothing behind that sees it. */
export const LINK_PARAMETERS = {
  ticket: {
    name: 'Ticket',
    says: 'Lets the download in once, without credentials: the end of a link that POST /v1/tickets gave.',
    type: TEXT,
    leavesBody: true,
  },
} as const satisfies ParameterRows

/** /v1/requests */
export const RECEIPT_PARAMETERS = {
  limit: {
    name: 'Limit',
    says: 'Lists so many receipts at most.',
    type: numberType(1, 1_000, 'receipts'),
    default: 50,
  },
} as const satisfies ParameterRows

/** /v1/events */
export const EVENTS_PARAMETERS = {
  lastEventId: {
    name: 'LastEventID',
    says:
      'The id of the event that the client saw last; 0 for what the gateway keeps: the newest events of each device, of about an hour. ' +
      'The header Last-Event-ID counts before it.',
    type: patternType(/^(0|[0-9a-f]{1,32}-\d{1,15})$/, 'must be the id of an event, or 0'),
    defaultSays: 'what happens from now on',
  },
} as const satisfies ParameterRows

/** What chooses devices at the root. */
export const FLEET_PARAMETERS = {
  devices: {
    name: 'Device',
    says: 'The devices: names, globs (nyc*, lon?) and sites (site=eu) with commas between them. So does the header Capfleet-Device.',
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
    throw badParameter('Offset', 'goes with Resume=<request id>; add it, or leave Offset out')
  }
  return options
}
