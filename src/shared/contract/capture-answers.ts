/** Schemas of a device's answers about captures and changes to them. */
import { z } from 'zod'
import { decimal, exact, integer, named, nanoseconds } from './schema-parts.ts'

const text = z.string()
const boolean = z.boolean()

/** The phrase that playbooks match. */
const phrase = text.describe('"[<ctime>] <what was done> [<name>]", which scripts match on')

export const CAPTURE_STARTED = named('CaptureStarted', {
  Status: z.literal(true),
  Str: phrase,
  StreamName: text.describe('The full name'),
  StartTS: nanoseconds,
  State: text,
  Warning: text.optional().describe('The device has no capture port: the capture stays empty'),
})

export const CAPTURE_STOPPED = named('CaptureStopped', {
  Status: z.literal(true),
  Str: phrase,
  StreamName: text.describe('The full name'),
  State: z.literal('idle'),
  StopTS: nanoseconds,
  ...exact(['CapturePacket', 'CaptureByte', 'CaptureDrop']),
})

export const CAPTURE_STATUS = named('CaptureStatus', {
  Status: z.literal(true),
  GUIMode: z.literal('full'),
  StreamName: text,
  CaptureEnable: z.enum(['true', 'false']),
  CaptureTime: integer.describe('Seconds since the start'),
  ...exact(['CaptureByte', 'CapturePacket']),
  CaptureBps: z.number().describe('Bits per second stored in the last 5 s'),
  CapturePps: z.number().describe('Packets per second stored in the last 5 s'),
  CurrentTime: text,
  CaptureName: text,
  State: z.enum(['idle', 'starting', 'running', 'rolling', 'stopping', 'error']),
  Message: text.describe('Why the capture does not run as it should'),
  ClockHold: text.describe(
    'Why nothing is removed because of its age: clock-stepped or clock-unconfirmed; empty if the clock is trusted',
  ),
  Scheduled: boolean,
  ScheduleName: text,
  StartTS: nanoseconds,
  LastPacketTS: nanoseconds,
  FlushedTS: nanoseconds.describe('All packets before this time are on disk and can be downloaded'),
  ...exact([
    'CaptureDrop',
    'CaptureDropRing',
    'CaptureDropDisk',
    'CapturePending',
    'CaptureFiltered',
    'CaptureFCSError',
  ]),
  SlotsTotal: integer,
  SlotsUsed: integer,
})

export const CAPTURE_DELETED = named('CaptureDeleted', {
  Status: z.literal(true),
  Str: phrase,
  StreamName: text,
  BytesFreed: decimal,
})

export const CAPTURE_UPLOADED = named('CaptureUploaded', {
  StreamName: text,
  Packets: decimal,
  Bytes: decimal.describe('Bytes in the store'),
  StartTS: nanoseconds.describe('The time of the first packet'),
  EndTS: nanoseconds.describe('The time after the last packet'),
  OutOfTimeRange: decimal.describe(
    'Packets left out because a PCAP cannot represent their time (1970 to 2106-02-07)',
  ),
  Damages: z
    .array(
      z.object({
        Offset: decimal.describe('Where in the file, or in the decompressed data, the damage begins'),
        Compressed: boolean.describe('Whether Offset counts decompressed bytes'),
        Message: text,
      }),
    )
    .describe('Where the file is damaged; the packets before that are in the capture'),
  Notes: z.array(text).describe('Facts about the file from which nothing is missing'),
})

export const SCHEDULE = named('Schedule', {
  List: z.array(
    z.object({
      Name: text,
      Start: text,
      Stop: text,
      Days: z.array(text),
      Zone: text,
      State: z
        .enum(['', 'due', 'running', 'waiting', 'skipped'])
        .describe('Empty: not its time yet; due: its time has come, but no recorder reports its state'),
      NextStartTS: nanoseconds,
      NextStopTS: nanoseconds.describe('Epoch nanoseconds; 0: never stops'),
    }),
  ),
})

const captureItem = {
  id: text,
  Path: text,
  PCAP: text.describe('Link to the download'),
  Del: text.describe('Link that deletes it'),
  Link: text.describe('Link to its splits'),
  ...exact(['Date']),
  Size: integer,
  IsActive: boolean,
  Type: text,
  Desc: text,
  StreamName: text,
  StartTS: nanoseconds,
  EndTS: nanoseconds,
  PacketCnt: decimal,
  ByteCnt: decimal,
  State: z.enum(['active', 'closed', 'trimmed', 'damaged']),
  ValidPct: z.number().describe('Percentage of the capture that retention has not removed'),
}

export const CAPTURE_LIST = named('CaptureList', {
  Path: z.literal('/capture/'),
  StreamList: z.literal(true),
  List: z.array(named('Capture', captureItem)),
})

/** The same for several devices. */
export const FLEET_CAPTURE_LIST = named('FleetCaptureList', {
  Path: z.literal('/capture/'),
  StreamList: z.literal(true),
  List: z.array(named('FleetCapture', { ...captureItem, Device: text })),
  Unreachable: z
    .array(z.object({ Device: text, code: text, detail: text }))
    .describe(
      'Devices that did not answer, or whose answer was cut short: some or all of their captures are missing',
    ),
  Next: text.optional().describe('After= of the next page'),
})

const splits = {
  Path: text,
  SplitFile: z.literal(true),
  List: z.array(
    named('Split', {
      id: text,
      Path: text.describe('YYYYMMDD_HH:MM:SS.mmm.uuu.nnn'),
      PCAP: text.describe('Link to the download'),
      StartTS: nanoseconds,
      StopTS: nanoseconds,
      Size: integer,
      ByteCnt: decimal,
      ...exact(['PacketCnt', 'Date']),
      PacketCntExact: decimal,
      Type: text,
      ValidPct: z.number(),
      Desc: text,
    }),
  ),
  Next: nanoseconds.optional().describe('After= of the next page'),
}

export const SPLIT_LIST = named('SplitList', splits)

/** The same through the gateway. */
export const FLEET_SPLIT_LIST = named('FleetSplitList', { Device: text, ...splits })

export const ESTIMATE = named('Estimate', {
  Kind: z.enum(['single', 'timerange', 'splittime']),
  Packets: decimal,
  Bytes: decimal.describe('Bytes of the PCAP, before compression'),
  Exact: boolean.describe('true: the numbers are exact; false: they are upper bounds'),
  BeginNs: nanoseconds,
  EndNs: nanoseconds,
  Captures: z.array(text),
  LinkType: integer,
  Ignored: z.array(text),
})
