/** Schemas of a device's answers about its machine. */
import { z } from 'zod'
import { CLOCK_DISTRUSTS } from '../base/shared-time.ts'
import { decimal, each, exact, integer, named, nanoseconds, numbered, unavailable } from './schema-parts.ts'

const text = z.string()
const boolean = z.boolean()
const number = z.number()

/** Fixed by the API. */
const PORTS = 8
const READERS = 8
const DISKS = ['os0', ...numbered(8, (disk) => `ssd${disk}`), 'par0']

export const TIME_CURRENT = named('TimeCurrent', { time_current: nanoseconds })

/** Readiness of an appliance or a gateway. */
export const READINESS = named('Readiness', {
  ready: boolean,
  draining: boolean,
  insecure: boolean.describe(
    'Whether passwords cross the network unencrypted: without TLS, the program listens beyond its own machine',
  ),
  devicesKnown: boolean
    .optional()
    .describe('Gateways only: whether every discovery has reported its devices'),
  schedulerReachable: boolean.optional().describe('Gateways only: whether Redis answers'),
  clockDistrust: z
    .enum(CLOCK_DISTRUSTS)
    .nullable()
    .optional()
    .describe(
      'Gateways only: why nothing is removed because of its age at present; null if the clocks agree',
    ),
})

export const VERSION = named('Version', {
  version: text,
  device: text.describe('The model'),
  build: text.describe('When it was built'),
})

export const IO_STATISTICS = named('IoStatistics', {
  timestamp: nanoseconds,
  ioqueue_active: decimal,
  unavailable,
})

const PACKET_SIZES = [
  'RUNT',
  '64',
  '65_127',
  '128_255',
  '256_511',
  '512_1023',
  '1024_1518',
  '1024_2047',
  '2048_4095',
  '4096_8191',
  '8192_9216',
  'OVER',
]

const portCounters = named(
  'PortCounters',
  exact(['Pkt', 'Byte', ...PACKET_SIZES.map((size) => `Pkt_${size}`)]),
)

export const PORT_STATISTICS = named('PortStatistics', {
  ...each(
    numbered(PORTS, (port) => `cap${port}`),
    portCounters,
  ),
  port_config: text,
  accounting: z
    .record(text, z.object(exact(['Seen', 'Stored', 'Filtered', 'DropRing', 'DropDisk', 'Pending'])))
    .describe('What happened to the packets of the running capture, by port: Seen is the sum of the others'),
  unavailable,
})

/** The members common to all groups of the system status. */
function group(members: Record<string, z.ZodType>) {
  return z.object({
    module: z.literal('system'),
    subsystem: text,
    timestamp: integer.describe('Epoch seconds'),
    ver: text,
    ...members,
    unavailable,
  })
}

const TRAFFIC = [
  'ReadPkt',
  'ReadByte',
  'ReadTotalPkt',
  'ReadTotalByte',
  'WritePkt',
  'WriteByte',
  'WriteTotalPkt',
  'WriteTotalByte',
]
const RATES = ['ReadGbps', 'ReadMpps', 'WriteGbps', 'WriteMpps']

function readerMembers(prefix: string) {
  const named = (names: readonly string[]) => names.map((name) => `${prefix}_${name}`)
  return {
    ...each(named(['Enable']), boolean),
    ...each(named(['Mode', 'CmdLine', 'StreamName', 'FilterBPF']), text),
    ...exact(named([...TRAFFIC, 'TSPCAP', 'PendingByte', 'PktDiscard', 'PktDiscardTotal'])),
    ...each(named(['PktSlice', 'CPUMain', 'IOPriority', 'ChunkID']), integer),
    ...each(named([...RATES, 'CPUIdle', 'CPUFetch', 'CPUProcess', 'CPUSend']), number),
  }
}

export const SYSTEM_STATUS = named('SystemStatus', {
  timestamp: integer.describe('Epoch seconds'),
  ver: text,
  temperature: group(
    each(
      ['CPU0', 'CPU1', 'PCH', 'SYS', 'PER', 'NIC', 'AirIn', 'AirOut', 'Transceiver0', 'Transceiver1'].map(
        (place) => `Temperature_${place}`,
      ),
      number.describe('Degrees Celsius'),
    ),
  ),
  fan: group(
    each(
      numbered(8, (fan) => `Fan_SYS${fan}`),
      number.describe('Revolutions per minute'),
    ),
  ),
  disk: group({
    ...each(
      ['System', 'Store0', 'Store1', 'Remote0', 'Remote1'].map((place) => `FreeGB_${place}`),
      number,
    ),
    ...each(
      DISKS.map((disk) => `DiskPresent_${disk}`),
      boolean,
    ),
    ...each(
      DISKS.flatMap((disk) => [`DiskTemperature_${disk}`, `DiskSMART_${disk}`]),
      integer,
    ),
  }),
  link: group(each([...numbered(PORTS, (port) => `cap${port}_link`), 'man0_link', 'man10_link'], boolean)),
  io: group(each(['DiskRdGbps', 'DiskWrGbps'], number)),
  capture: group({
    ...each(['CaptureEnb'], boolean),
    ...exact([
      'CapturePkt',
      'CaptureByte',
      'CaptureDrop',
      'CaptureDropRing',
      'CaptureDropDisk',
      'CapturePending',
      'CaptureFCSError',
      'StoredPkt',
      'StoredByte',
      ...numbered(PORTS, (port) => `CapturePort${port}_Byte`),
      ...numbered(PORTS, (port) => `CapturePort${port}_Pkt`),
    ]),
    ...each(['StoredCaptureCnt'], integer),
    ...each(['CaptureRateGbps', 'CaptureRateMpps'], number),
    ...each(['CaptureName', 'CaptureState', 'CaptureMessage'], text),
  }),
  power: group({ PSU0_Status: boolean, PSU1_Status: boolean, PSU_PowerWatt: integer }),
  other: group({
    ...each(['UptimeHour', 'WritebackPct', 'WritebackDropTotalG', 'WritebackDropG', 'CPULoad'], number),
    ...each(
      ['MemFree', 'MemErrorECC', 'MemCached', 'MemMapped', 'MemBuffer', 'MemDirty', 'WritebackB'],
      integer,
    ),
    ...each(['PageInByte', 'FDCnt', 'CacheSize'], integer),
    ...exact(['StoreSize']),
    ...each(['SerialNo', 'PortConfig', 'Version'], text),
  }),
  cat: group({
    ...Object.assign({}, ...numbered(READERS, (reader) => `cat_${reader}`).map(readerMembers)),
    cat_EnableCnt: integer.describe('The number of running downloads'),
    ...exact(TRAFFIC.map((name) => `cat_${name}`)),
    ...each(
      RATES.map((name) => `cat_${name}`),
      number,
    ),
  }),
  ptp: group({
    ...exact(['TimeFPGA', 'TimeSYS']),
    ...each(['GMSync', 'SysSync', 'iSysSync', 'NTPSync'], boolean),
    ...each(['GMMaster', 'NTPMaster'], text),
    ...each(
      [
        'GMOffset',
        'SysOffset',
        'iSysOffset',
        'NTPOffset',
        'PPSPeriod',
        'Clk156Period',
        'Clk250Period',
        'Clk322Period',
      ],
      number,
    ),
    ...each(
      [
        'GMUpTime',
        'SysUptime',
        'iSysUptime',
        'PPSUptime',
        'NTPUptime',
        'PPSOffset',
        'PPSdPhase',
        'PPSdZero',
        'PPSCnt',
      ],
      integer,
    ),
    ...each(['Clk156Offset', 'Clk250Offset', 'Clk322Offset'], integer),
  }),
})

const disk = (id: string) => ({
  [`disk_${id}_valid`]: boolean,
  [`disk_${id}_serial`]: text,
  [`disk_${id}_desc`]: text,
  [`disk_${id}_smart`]: integer.describe('Number of problems found; 0: healthy'),
  [`disk_${id}_temp`]: number,
})

const port = (id: string) => ({
  [`${id}_link`]: boolean,
  [`${id}_link_uptime`]: text,
  [`${id}_link_uptime_s`]: number,
  [`${id}_speed`]: integer.describe('Mbit/s'),
})

const clock = (id: string) => ({
  [`clock_${id}_sync`]: boolean,
  [`clock_${id}_offset_mean`]: number,
  [`clock_${id}_offset_stddev`]: number,
  [`clock_${id}_uptime`]: integer,
})

export const STATS_SUMMARY = named('StatsSummary', {
  uptime: text,
  uptime_s: integer,
  hostname: text,
  ...exact(['packets_received', 'packets_dropped', 'packets_errors', 'packets_captured']),
  packets_oldest: text,
  packets_oldest_ts: nanoseconds.describe('The oldest packet that can be downloaded; 0: nothing is stored'),
  capture_days: number,
  ...exact(['bytes_captured', 'bytes_pending', 'bytes_disk', 'bytes_overflow']),
  smart_errors: integer,
  raid_errors: integer,
  raid_status: text,
  stream_errors: integer,
  ...exact(['chunk_errors']),
  ecc_errors: integer,
  ...Object.assign({}, ...DISKS.map(disk)),
  ...Object.assign({}, ...numbered(PORTS, (index) => `cap${index}`).map(port)),
  ...Object.assign({}, ...['gm', 'sys', 'isys', 'pps', 'ntp'].map(clock)),
  unavailable,
})
