/** Attacks by a user who may download: questions that cost more to answer than to ask. */
import {
  type Attack,
  type AttackScene,
  type Attacks,
  askOverAndOver,
  BOTH,
  get,
  getAsUser,
  isOver,
  pause,
} from './attack.ts'

/** One less than a device has: that others wait when all are taken is stated, and no fault. */
const HEAVY_STREAMS = 3
/** More than one line of an answer's head may have at many clients, and less than a request's may. */
const LONG_PARAMETER_BYTES = 17_000
const VENDOR_CLOCKS = [
  'vendorA7130',
  'vendorA7150_overwrite',
  'vendorA7150_insert',
  'vendorA7280_eth64',
  'vendorA7280_mac48',
  'vendorB_erspan3',
  'vendorB3550',
] as const

export const queryAttacks: Attacks = {
  'many-parameters': asking(8, ({ stand }) => {
    const many = Array.from({ length: 6_000 }, (_, n) => `p${n}=1`).join('&')
    return () => `${stand.devicePath}/api/v1/pcap/estimate?${stand.shortRange}&${many}`
  }),
  'a-long-parameter': asking(2, ({ stand }) => {
    const long = 'x'.repeat(LONG_PARAMETER_BYTES)
    return (n) => `${stand.devicePath}/api/v1/system/version?${long}${n}=1`
  }),
  'thirty-thousand-device-words': {
    ...asking(8, () => {
      const words = Array.from({ length: 30_000 }, () => '*').join(',')
      return () => `/stream/list?Device=${words}`
    }),
    targets: ['gateway'],
  },

  'slow-packet-filters': asking(40, (scene) => (n) => filtered(scene, 'FilterBPF', hosts(n, 300))),
  'slow-packet-filters-behind-tunnels': asking(
    40,
    (scene) => (n) => filtered(scene, 'FilterBPFDecap=true&FilterBPF', hosts(n, 300)),
  ),
  'estimates-with-slow-packet-filters': asking(
    40,
    (scene) => (n) =>
      `${scene.stand.devicePath}/api/v1/pcap/estimate?${scene.stand.shortRange}&FilterBPF=${hosts(n, 300)}`,
  ),
  'slow-patterns': asking(
    40,
    (scene) => (n) => filtered(scene, 'FilterRE', encodeURIComponent(slowPattern(n))),
  ),

  'vendor-times': asking(HEAVY_STREAMS, (scene) => (n) => {
    const clock = VENDOR_CLOCKS[n % VENDOR_CLOCKS.length]
    return `${scene.stand.devicePath}/api/v1/pcap/timerange?${scene.stand.wholeRange}&TSMode=${clock}&Wait=0`
  }),
  'strongest-compression': asking(
    HEAVY_STREAMS,
    ({ stand }) =>
      () =>
        `${stand.devicePath}/api/v1/pcap/timerange?${stand.wholeRange}&Compression=zstd_ultra&Wait=0`,
  ),
  'merges-with-the-strongest-compression': {
    ...asking(
      HEAVY_STREAMS,
      ({ stand }) =>
        () =>
          `/api/v1/pcap/timerange?Device=d0,d1&${stand.wholeRange}&Compression=zstd_ultra&Wait=0`,
    ),
    targets: ['gateway'],
  },

  'many-estimates': asking(
    32,
    ({ stand }) =>
      (n) =>
        `${stand.devicePath}/api/v1/pcap/estimate?${stand.wholeRange}&FilterPort=${n % 8}`,
  ),
  'many-estimates-of-the-fleet': {
    ...asking(
      32,
      ({ stand }) =>
        () =>
          `/v1/estimate?Device=d0,d1&${stand.wholeRange}`,
    ),
    targets: ['gateway'],
  },
  'many-lists': asking(
    32,
    ({ stand }) =>
      () =>
        `${stand.devicePath}/stream/list`,
  ),
  'many-lists-of-the-fleet': { ...asking(32, () => () => '/stream/list'), targets: ['gateway'] },
  'many-splits': asking(
    16,
    ({ stand }) =>
      () =>
        `${stand.devicePath}/stream/stime?StreamName=traffic&StreamView=split_1sec`,
  ),
  'many-system-reports': asking(
    32,
    ({ stand }) =>
      () =>
        `${stand.devicePath}/api/v1/system/status`,
  ),
  'many-metrics': { targets: BOTH, run: (scene) => askOverAndOver(scene, 32, () => get('/metrics')) },
  'pages-of-the-list': { targets: BOTH, run: turnPages },
}

/** So many connections that ask as the user who attacks. */
function asking(connections: number, pathsOf: (scene: AttackScene) => (n: number) => string): Attack {
  return {
    targets: BOTH,
    run: (scene) => {
      const path = pathsOf(scene)
      return askOverAndOver(scene, connections, (n) => getAsUser(scene.stand, path(n)))
    },
  }
}

function filtered({ stand }: AttackScene, parameter: string, value: string): string {
  return `${stand.devicePath}/api/v1/pcap/timerange?${stand.shortRange}&${parameter}=${value}&Wait=5`
}

/** Never the same twice: an answer that is remembered costs nothing. */
let asked = 0

/** libpcap takes seconds for it. */
function hosts(n: number, count: number): string {
  asked += 1
  const one = (i: number): string => `host+10.${(n + asked) & 255}.${i >> 8}.${i & 255}`
  return Array.from({ length: count }, (_, i) => one(i)).join('+or+')
}

/** Hyperscan takes more than a second for it. */
function slowPattern(n: number): string {
  asked += 1
  const words = Array.from({ length: 200 }, (_, i) => ((i + n + asked) * 7919).toString(16)).join('|')
  return `(?i)((${words.slice(0, 900)}){2,90}x)+`
}

/** Page after page of one capture each, to the end of the list if it has one, and again. */
async function turnPages(scene: AttackScene): Promise<void> {
  const { stand } = scene
  const lane = async (): Promise<void> => {
    while (!isOver(scene)) {
      const connection = await scene.wire.connect()
      for (let after = ''; connection !== undefined && !isOver(scene); ) {
        const path = `${stand.devicePath}/stream/list?Limit=1${after}`
        const answer = await connection.ask(getAsUser(stand, path), true)
        if (answer === undefined) break
        const name = /"StreamName":"([^"]+)"/.exec(answer.body)?.[1]
        after = name === undefined ? '' : `&After=${name}`
      }
      await pause(scene, 20)
    }
  }
  await Promise.all(Array.from({ length: 8 }, lane))
}
