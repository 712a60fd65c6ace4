/** The headers and trailers of the API, beside those that HTTP itself explains. */
import type { HeaderRow } from './endpoint.ts'

export const CAPFLEET_DEVICE: HeaderRow = {
  name: 'Capfleet-Device',
  says: 'The devices, as Device= says them; not both.',
}

export const CAPFLEET_CALLER: HeaderRow = {
  name: 'Capfleet-Caller',
  says: 'How a gateway tells its callers apart: a label of 1 to 64 visible ASCII characters without meaning.',
}

export const CAPFLEET_FORCED_FILTER: HeaderRow = {
  name: 'Capfleet-Forced-Filter',
  says:
    '"true": a gateway has joined FilterBPF with a filter that its caller must not leave out. The device reads all blocks of ' +
    'the range, so that the duration does not reveal which addresses occur in packets that do not pass.',
}

export const LOCATION: HeaderRow = {
  name: 'Location',
  says: 'Where what was ordered is from now on: an export, a schedule, a token.',
}

export const LAST_EVENT_ID: HeaderRow = {
  name: 'Last-Event-ID',
  says: 'The id of the event that the client saw last; browsers send it when they come back.',
}

/** That any request may have. */
export const COMMON_REQUEST_HEADERS: readonly HeaderRow[] = [
  {
    name: 'traceparent',
    says: 'The trace that the request belongs to, as W3C Trace Context has it; else a new one begins. Devices are told.',
  },
  { name: 'tracestate', says: 'What tracing systems add to it; passed on to devices, 512 bytes at most.' },
]

/** Of all answers, errors too. */
export const COMMON_ANSWER_HEADERS: readonly HeaderRow[] = [
  {
    name: 'Capfleet-Request-Id',
    says: 'The number of the request: that of its receipt and of its lines in the log.',
  },
  {
    name: 'Server-Timing',
    says:
      'Milliseconds up to the head of the answer: total; of a download beside it queue, the wait for streams, and ' +
      'devices, until all of them have begun.',
  },
]

export const CAPFLEET_IGNORED: HeaderRow = {
  name: 'Capfleet-Ignored',
  says: 'Parameters of the request that the path does not have, percent-encoded; 1,024 bytes at most.',
}

export const CAPFLEET_UNREACHABLE: HeaderRow = {
  name: 'Capfleet-Unreachable',
  says: 'Devices that did not answer. A list of more than 10,000 captures may name further ones in `Unreachable`.',
}

export const CAPFLEET_LIST_PARAMETERS: HeaderRow = {
  name: 'Capfleet-List-Parameters',
  says:
    'The parameters by which the device can choose captures, separated by commas. A gateway asks a device that does not ' +
    'send this header for its whole list.',
}

/** Of the 200 of a download. */
export const DOWNLOAD_HEADERS: readonly HeaderRow[] = [
  {
    name: 'Content-Disposition',
    says:
      'The name of the file: the capture or the place, and the times in nanoseconds. `filename*` has it where other makers ' +
      'use more letters than `filename` can have.',
  },
  { name: 'Capfleet-TS-Unit', says: 'The unit in which TSBegin and TSEnd were read.' },
  {
    name: 'Capfleet-Order',
    says: '"time": packets come by time, so that a download may be continued by time.',
  },
  { name: 'Capfleet-After', says: 'How many bytes of the body were left out, as After= asked.' },
  {
    name: 'Capfleet-Aged-Out-Before',
    says: 'Packets of the range before this time (epoch nanoseconds) were removed by retention; from then on it is whole.',
  },
  {
    name: 'Capfleet-Damaged-Segments',
    says: 'Segments of the range of which packets are known to be lost; absent when there is none.',
  },
]

/** What the gateway adds to them. */
export const GATEWAY_DOWNLOAD_HEADERS: readonly HeaderRow[] = [
  { name: 'Capfleet-Devices', says: 'The devices that are read.' },
  {
    name: 'Capfleet-Missing',
    says: 'With OnError=partial: devices that are left out from the begin, each with its time range.',
  },
  { name: 'Capfleet-Time-Zone', says: 'The zone in which local times without TSZone were read.' },
  { name: 'Capfleet-Skew-Ns', says: 'The clock offset of each device with its bound: rome=120+-40000.' },
  {
    name: 'Capfleet-Queue-Position',
    says: 'The place in the queue when the request came; absent when it did not wait.',
  },
]

/** What stands behind the body of a download that was not cut. */
export const DOWNLOAD_TRAILERS: readonly HeaderRow[] = [
  {
    name: 'Capfleet-Complete',
    says: '1: every packet that was asked for; 0: devices are missing (OnError=partial), or damaged blocks, or it is not known (Capfleet-Status: unverified).',
  },
  { name: 'Capfleet-Packets', says: 'Packets of the body.' },
  { name: 'Capfleet-Bytes', says: 'Bytes of the body as it was sent.' },
  {
    name: 'Capfleet-Corrupt-Blocks',
    says: 'Blocks of packets that were left out, because they are damaged.',
  },
  {
    name: 'Capfleet-TS-Fallbacks',
    says: 'Packets without the time that TSMode asks for; they keep that of the capture hardware.',
  },
  {
    name: 'Capfleet-Late-Packets',
    says: 'Packets that came too late to be sorted: by the time of TSMode or, in a merge, of a device of another maker, which may send packets up to a second late.',
  },
  { name: 'Capfleet-Truncated', says: '1 when MaxBytes or MaxPackets left packets out.' },
  { name: 'Capfleet-Next-Ns', says: 'The timestamp of the first packet that a limit left out.' },
]

/** What the gateway adds to them. */
export const GATEWAY_DOWNLOAD_TRAILERS: readonly HeaderRow[] = [
  {
    name: 'Capfleet-Status',
    says: 'complete; truncated; partial: devices or damaged blocks are missing; unverified: a device of another maker ended its answer by closing the connection, as a cut one ends too.',
  },
  { name: 'Capfleet-Missing', says: 'Devices that are missing, each with its time range.' },
  { name: 'Capfleet-Duplicates', says: 'Packets that Dedup dropped.' },
  { name: 'Capfleet-Sha256', says: 'The hash of the body as sent, with Digest=sha256.' },
]
