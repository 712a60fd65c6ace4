/** The headers and trailers of the API, except those that HTTP itself defines. */
import type { HeaderRow } from './endpoint.ts'

export const CAPFLEET_DEVICE: HeaderRow = {
  name: 'Capfleet-Device',
  says: 'The devices, in the form of Device=. Give one of the two.',
}

export const CAPFLEET_CALLER: HeaderRow = {
  name: 'Capfleet-Caller',
  says: 'Distinguishes the callers of a gateway: an opaque label of 1 to 64 visible ASCII characters.',
}

export const CAPFLEET_FORCED_FILTER: HeaderRow = {
  name: 'Capfleet-Forced-Filter',
  says:
    '"true": a gateway has combined FilterBPF with a filter that its caller cannot leave out. The device reads all blocks of ' +
    'the range, so that the duration does not reveal which addresses occur in packets that do not pass, and says to the minute what was removed.',
}

export const LOCATION: HeaderRow = {
  name: 'Location',
  says: 'The path of the created export, schedule or token.',
}

export const LAST_EVENT_ID: HeaderRow = {
  name: 'Last-Event-ID',
  says: 'The id of the last event that the client received; browsers send it when they reconnect.',
}

/** Allowed in any request. */
export const COMMON_REQUEST_HEADERS: readonly HeaderRow[] = [
  {
    name: 'traceparent',
    says: 'The trace that the request belongs to (W3C Trace Context); without it, a new trace begins. It is passed on to devices.',
  },
  { name: 'tracestate', says: 'Data of tracing systems; passed on to devices, at most 512 bytes.' },
]

/** Sent with all answers, including errors. */
export const COMMON_ANSWER_HEADERS: readonly HeaderRow[] = [
  {
    name: 'Capfleet-Request-Id',
    says: 'The id of the request, which its receipt and its lines in the log also have.',
  },
  {
    name: 'Server-Timing',
    says:
      'Milliseconds until the head of the answer: total. For a download also queue, the wait for streams, and ' +
      'devices, the time until all devices have started to send.',
  },
]

export const CAPFLEET_IGNORED: HeaderRow = {
  name: 'Capfleet-Ignored',
  says: 'Parameters of the request that the path does not have, percent-encoded; at most 1,024 bytes.',
}

export const CAPFLEET_UNREACHABLE: HeaderRow = {
  name: 'Capfleet-Unreachable',
  says:
    'Devices that did not answer; at most 1,024 bytes, then "and 496 more". The body of JSON names all of them. ' +
    'A list of more than 10,000 captures may name more of them in `Unreachable`.',
}

export const CAPFLEET_LIST_PARAMETERS: HeaderRow = {
  name: 'Capfleet-List-Parameters',
  says:
    'The parameters by which the device can select captures, separated by commas. From a device that does not ' +
    'send this header, a gateway requests the whole list.',
}

/** Sent with the 200 of a download. */
export const DOWNLOAD_HEADERS: readonly HeaderRow[] = [
  {
    name: 'Content-Disposition',
    says:
      'The file name: the capture or the place, and the times in UTC, exact to the nanosecond: ' +
      '`lon1_20261102T090100Z-20261102T090200.500Z.pcap`. `filename*` has it if the name of a third-party device or ' +
      'capture has characters that `filename` cannot carry.',
  },
  { name: 'Capfleet-TS-Unit', says: 'The unit in which TSBegin and TSEnd were interpreted.' },
  {
    name: 'Capfleet-Order',
    says: '"time": packets are in the order of time, so a download can be continued by time.',
  },
  {
    name: 'Capfleet-After',
    says: 'The number of bytes of the body that were left out, as After= requested.',
  },
  {
    name: 'Capfleet-Aged-Out-Before',
    says: 'Packets of the range before this time (epoch nanoseconds) were removed by retention; the rest of the range is complete.',
  },
  {
    name: 'Capfleet-Damaged-Segments',
    says: 'Segments of the range with packets known to be lost; absent if there are none.',
  },
]

/** Added by the gateway. */
export const GATEWAY_DOWNLOAD_HEADERS: readonly HeaderRow[] = [
  { name: 'Capfleet-Devices', says: 'The devices that are read.' },
  {
    name: 'Capfleet-Missing',
    says: 'With OnError=partial: devices that are left out from the start, each with its time range.',
  },
  { name: 'Capfleet-Time-Zone', says: 'The time zone in which local times without TSZone were interpreted.' },
  {
    name: 'Capfleet-Skew-Ns',
    says: 'The clock offset of each device with its error bound: rome=120+-40000.',
  },
  {
    name: 'Capfleet-Queue-Position',
    says: 'The position in the queue when the request arrived; absent if it did not wait.',
  },
]

/** Trailers after the body of a download that was not cut. */
export const DOWNLOAD_TRAILERS: readonly HeaderRow[] = [
  {
    name: 'Capfleet-Complete',
    says: '1: all requested packets were sent; 0: devices (OnError=partial) or damaged blocks are missing, or it is not known (Capfleet-Status: unverified).',
  },
  { name: 'Capfleet-Packets', says: 'The number of packets in the body.' },
  { name: 'Capfleet-Bytes', says: 'The number of bytes of the body as sent.' },
  {
    name: 'Capfleet-Corrupt-Blocks',
    says: 'The number of blocks of packets that were left out because they are damaged.',
  },
  {
    name: 'Capfleet-TS-Fallbacks',
    says: 'The number of packets without the timestamp that TSMode asks for; they keep that of the capture hardware.',
  },
  {
    name: 'Capfleet-Late-Packets',
    says: 'The number of packets that came too late to be sorted: by the time of TSMode or, in a merge, from a third-party device, which may send packets up to a second late.',
  },
  { name: 'Capfleet-Duplicates', says: 'With Dedup: the number of packets that it dropped.' },
  { name: 'Capfleet-Truncated', says: '1 if MaxBytes or MaxPackets left packets out.' },
  { name: 'Capfleet-Next-Ns', says: 'The timestamp of the first packet that a limit left out.' },
]

/** Added by the gateway. */
export const GATEWAY_DOWNLOAD_TRAILERS: readonly HeaderRow[] = [
  {
    name: 'Capfleet-Status',
    says: 'complete; truncated; partial: devices or damaged blocks are missing; unverified: a third-party device ended its answer by closing the connection, which looks the same as a cut one, or a device that was asked again from a later time could not count the damaged blocks before that.',
  },
  { name: 'Capfleet-Missing', says: 'Devices that are missing, each with its time range.' },
  { name: 'Capfleet-Sha256', says: 'With Digest=sha256: the SHA-256 of the body as sent.' },
]
