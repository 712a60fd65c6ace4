/** Attacks by a user who may download, with requests that cost more to answer than to send. */
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
import { controlPath, type Stand, type Target } from './stand.ts'

/** One less than a device has: waiting when all are taken is documented behaviour, not a fault. */
const HEAVY_STREAMS = 3
const FLEET_ONLY: readonly Target[] = ['gateway']

/** As many as fit into the head of a request. */
const MANY_PARAMETERS = Array.from({ length: 6_000 }, (_, n) => `p${n}=1`).join('&')
/** A request may have this length, but many clients reject an answer with such a long line in its head. */
const LONG_PARAMETER = 'x'.repeat(17_000)
const MANY_DEVICE_WORDS = Array.from({ length: 30_000 }, () => '*').join(',')

/**
 * Used to cost half a second of processor time: many ends of a pattern, each followed by letters that might be flags.
 */
const SLASHES = encodeURIComponent(
  '/'.repeat(342) + String.fromCodePoint(...Array.from({ length: 340 }, (_, n) => 0x100 + n)),
)

/** Of addresses of the store's packets and others: most of them have to be looked for. */
const LONG_LIST = `Address=${Array.from({ length: 4_000 }, (_, n) => `10.${n & 3}.${n >> 8}.${n & 255}`).join(',')}`

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
  'many-parameters': asking(8, (stand) => `${estimate(stand)}&${MANY_PARAMETERS}`),
  'a-long-parameter': asking(2, (stand, n) => `${controlPath(stand)}?${LONG_PARAMETER}${n}=1`),
  'thirty-thousand-device-words': asking(8, () => `/stream/list?Device=${MANY_DEVICE_WORDS}`, FLEET_ONLY),

  'slow-packet-filters': asking(40, (stand) => `${someOf(stand)}&FilterBPF=${hosts()}`),
  'slow-packet-filters-behind-tunnels': asking(
    40,
    (stand) => `${someOf(stand)}&FilterBPFDecap=true&FilterBPF=${hosts()}`,
  ),
  'estimates-with-slow-packet-filters': asking(40, (stand) => `${estimate(stand)}&FilterBPF=${hosts()}`),
  'slow-patterns': asking(40, (stand) => `${someOf(stand)}&FilterRE=${encodeURIComponent(slowPattern())}`),

  'slashes-in-patterns': asking(8, (stand) => `${estimate(stand)}&FilterRE=${SLASHES}`),

  'vendor-times': asking(
    HEAVY_STREAMS,
    (stand, n) => `${wholeOf(stand)}&TSMode=${VENDOR_CLOCKS[n % VENDOR_CLOCKS.length]}`,
  ),
  'strongest-compression': asking(HEAVY_STREAMS, (stand) => `${wholeOf(stand)}&Compression=zstd_ultra`),
  'merges-with-the-strongest-compression': asking(
    HEAVY_STREAMS,
    ({ wholeRange }) => `/api/v1/pcap/timerange?Device=d0,d1&${wholeRange}&Compression=zstd_ultra&Wait=0`,
    FLEET_ONLY,
  ),

  'many-estimates': asking(32, (stand, n) => `${estimate(stand)}&FilterPort=${n % 8}`),
  'many-estimates-of-the-fleet': asking(
    32,
    ({ wholeRange }) => `/v1/estimate?Device=d0,d1&${wholeRange}`,
    FLEET_ONLY,
  ),
  'many-counts': asking(
    8,
    (stand, n) => `${stand.devicePath}/api/v1/pcap/count?${stand.wholeRange}&FilterBPF=port+${n % 1_000}`,
  ),
  'many-counts-of-the-fleet': asking(
    8,
    ({ wholeRange }, n) => `/v1/count?Device=d0,d1&${wholeRange}&FilterBPF=port+${n % 1_000}`,
    FLEET_ONLY,
  ),
  'many-searches': asking(32, (stand, n) => `${seen(stand)}&Address=10.0.${n & 255}.1`),
  'searches-for-long-lists': asking(8, (stand) => `${seen(stand)}&${LONG_LIST}`),
  'searches-that-count': asking(8, (stand) => `${seen(stand)}&Verify=1&Address=0.0.0.0/0`),
  'many-searches-of-the-fleet': asking(
    32,
    ({ wholeRange }) => `/v1/seen?Device=d0,d1&${wholeRange}&Address=0.0.0.0/0`,
    FLEET_ONLY,
  ),
  'many-lists': asking(32, ({ devicePath }) => `${devicePath}/stream/list`),
  'many-lists-of-the-fleet': asking(32, () => '/stream/list', FLEET_ONLY),
  'many-splits': asking(
    16,
    ({ devicePath }) => `${devicePath}/stream/stime?StreamName=traffic&StreamView=split_1sec`,
  ),
  'many-system-reports': asking(32, ({ devicePath }) => `${devicePath}/api/v1/system/status`),
  'many-metrics': { targets: BOTH, run: (scene) => askOverAndOver(scene, 32, () => get('/metrics')) },
  'pages-of-the-list': { targets: BOTH, run: turnPages },
}

/** This many connections send requests as the attacking user; `n` counts the requests of all. */
function asking(connections: number, path: (stand: Stand, n: number) => string, targets = BOTH): Attack {
  const run = (scene: AttackScene): Promise<void> =>
    askOverAndOver(scene, connections, (n) => getAsUser(scene.stand, path(scene.stand, n)))
  return { targets, run }
}

function seen({ devicePath, wholeRange }: Stand): string {
  return `${devicePath}/api/v1/seen?${wholeRange}`
}

function estimate({ devicePath, wholeRange }: Stand): string {
  return `${devicePath}/api/v1/pcap/estimate?${wholeRange}`
}

function someOf({ devicePath, shortRange }: Stand): string {
  return `${devicePath}/api/v1/pcap/timerange?${shortRange}&Wait=5`
}

function wholeOf({ devicePath, wholeRange }: Stand): string {
  return `${devicePath}/api/v1/pcap/timerange?${wholeRange}&Wait=0`
}

/** Filters are never the same twice, because a cached answer costs nothing. */
let asked = 0

const HOSTS = 300

/** A packet filter that takes libpcap seconds. */
function hosts(): string {
  const first = HOSTS * asked++
  const host = (i: number): string =>
    `host+10.${((first + i) >> 16) & 255}.${((first + i) >> 8) & 255}.${(first + i) & 255}`
  return Array.from({ length: HOSTS }, (_, i) => host(i)).join('+or+')
}

/** Hyperscan takes more than a second for it. */
function slowPattern(): string {
  asked += 1
  const words = Array.from({ length: 200 }, (_, i) => ((i + asked) * 7919).toString(16)).join('|')
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
