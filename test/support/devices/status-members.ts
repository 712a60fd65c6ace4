/** The members of the system payloads with their types, as a table for tests. */
export type MemberType = 'string' | 'integer' | 'number' | 'boolean'
export type Members = Readonly<Record<string, MemberType>>

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
const all = (names: readonly string[], type: MemberType): Members =>
  Object.fromEntries(names.map((name) => [name, type]))
const DISKS = ['os0', ...range(8).map((disk) => `ssd${disk}`), 'par0']

export const VERSION_MEMBERS = all(['version', 'device', 'build'], 'string')
export const IO_STATS_MEMBERS = all(['timestamp', 'ioqueue_active'], 'string')
export const PORT_COUNTERS = all(
  [
    'Pkt',
    'Byte',
    'Pkt_RUNT',
    'Pkt_64',
    'Pkt_65_127',
    'Pkt_128_255',
    'Pkt_256_511',
    'Pkt_512_1023',
    'Pkt_1024_1518',
    'Pkt_1024_2047',
    'Pkt_2048_4095',
    'Pkt_4096_8191',
    'Pkt_8192_9216',
    'Pkt_OVER',
  ],
  'integer',
)

/** Every group has these. */
export const GROUP_MEMBERS: Members = {
  module: 'string',
  subsystem: 'string',
  timestamp: 'integer',
  ver: 'string',
}

const words = (text: string): string[] => text.trim().split(/\s+/)

const CAT_READER: Members = {
  Enable: 'boolean',
  Mode: 'string',
  ...all(
    words(`CPUMain TSPCAP ReadPkt ReadByte ReadTotalPkt ReadTotalByte WritePkt WriteByte WriteTotalPkt
      WriteTotalByte PendingByte PktDiscard PktDiscardTotal PktSlice IOPriority ChunkID`),
    'integer',
  ),
  ...all(words('ReadGbps ReadMpps WriteGbps WriteMpps CPUIdle CPUFetch CPUProcess CPUSend'), 'number'),
  ...all(words('CmdLine StreamName FilterBPF'), 'string'),
}

export const CAT_SUFFIXES = CAT_READER

export const STATUS_MEMBERS: Readonly<Record<string, Members>> = {
  temperature: all(
    words('CPU0 CPU1 PCH SYS PER NIC AirIn AirOut Transceiver0 Transceiver1').map(
      (name) => `Temperature_${name}`,
    ),
    'number',
  ),
  fan: all(
    range(8).map((fan) => `Fan_SYS${fan}`),
    'number',
  ),
  disk: {
    ...all(
      words('System Store0 Store1 Remote0 Remote1').map((name) => `FreeGB_${name}`),
      'number',
    ),
    ...all(
      DISKS.map((disk) => `DiskPresent_${disk}`),
      'boolean',
    ),
    ...all(
      DISKS.flatMap((disk) => [`DiskTemperature_${disk}`, `DiskSMART_${disk}`]),
      'integer',
    ),
  },
  link: all([...range(8).map((port) => `cap${port}_link`), 'man0_link', 'man10_link'], 'boolean'),
  io: all(['DiskRdGbps', 'DiskWrGbps'], 'number'),
  capture: {
    CaptureEnb: 'boolean',
    ...all(words('CapturePkt CaptureByte CaptureDrop CaptureFCSError'), 'integer'),
    ...all(words('CaptureRateGbps CaptureRateMpps'), 'number'),
    CaptureName: 'string',
    ...all(
      range(8).flatMap((port) => [`CapturePort${port}_Byte`, `CapturePort${port}_Pkt`]),
      'integer',
    ),
  },
  power: { PSU0_Status: 'boolean', PSU1_Status: 'boolean', PSU_PowerWatt: 'integer' },
  other: {
    UptimeHour: 'number',
    ...all(
      words(`MemFree MemErrorECC MemCached MemMapped MemBuffer MemDirty PageInByte FDCnt WritebackB
        CacheSize StoreSize`),
      'integer',
    ),
    ...all(words('WritebackPct WritebackDropTotalG WritebackDropG CPULoad'), 'number'),
    ...all(words('SerialNo PortConfig Version'), 'string'),
  },
  cat: {
    ...Object.fromEntries(
      range(8).flatMap((slot) =>
        Object.entries(CAT_READER).map(([suffix, type]) => [`cat_${slot}_${suffix}`, type] as const),
      ),
    ),
    ...all(
      words(`cat_EnableCnt cat_ReadPkt cat_ReadByte cat_ReadTotalPkt cat_ReadTotalByte cat_WritePkt
        cat_WriteByte cat_WriteTotalPkt cat_WriteTotalByte`),
      'integer',
    ),
    ...all(words('cat_ReadGbps cat_ReadMpps cat_WriteGbps cat_WriteMpps'), 'number'),
  },
  ptp: {
    ...all(words('TimeFPGA TimeSYS'), 'integer'),
    ...all(
      words('GMOffset SysOffset iSysOffset NTPOffset PPSPeriod Clk156Period Clk250Period Clk322Period'),
      'number',
    ),
    ...all(words('GMSync SysSync iSysSync NTPSync'), 'boolean'),
    ...all(words('GMMaster NTPMaster'), 'string'),
    ...all(
      words(`GMUpTime SysUptime iSysUptime PPSUptime NTPUptime PPSOffset PPSdPhase PPSdZero PPSCnt
        Clk156Offset Clk250Offset Clk322Offset`),
      'integer',
    ),
  },
}

/** Names of the members that are missing or have another type. */
export function wrongMembers(payload: Readonly<Record<string, unknown>>, members: Members): string[] {
  return Object.entries(members)
    .filter(([name, type]) => !isOfType(payload[name], type))
    .map(([name, type]) => `${name} must be a ${type}, is ${JSON.stringify(payload[name])}`)
}

function isOfType(value: unknown, type: MemberType): boolean {
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}
