/** Query strings as written by attackers, broken scripts or by accident. */
import type { SeededRandom } from '../seeded-random.ts'

const NAMES = [
  'StreamName',
  'StreamView',
  'TSBegin',
  'TSEnd',
  'TSUnit',
  'TSUint',
  'TSZone',
  'TSMax',
  'TSMode',
  'TSResolution',
  'Start',
  'Stop',
  'Slice',
  'FilterBPF',
  'FilterBPFDecap',
  'FilterFrame',
  'FilterRE',
  'FilterPort',
  'Compression',
  'MaxBytes',
  'MaxPackets',
  'Wait',
  'Strict',
  'Force',
  'Follow',
  'Limit',
  'After',
  'From',
  'To',
  'from',
  'to',
  'Format',
  'Header',
  'Until',
  'LastEventID',
  'Telemetry',
  'Count',
  'Interval',
  'rand',
  'Device',
  '__proto__',
  'constructor',
  'toString',
  '',
] as const

/** Values that are valid somewhere, nearly valid, or harmful. */
const VALUES = [
  '0',
  '1',
  '-1',
  '65536',
  '1790000000',
  '1790000000000000000',
  '1790000000500000000ULL',
  '18446744073709551616',
  '99999999999999999999999999',
  '1e9',
  '0x10',
  'NaN',
  'Infinity',
  'true',
  'false',
  'now',
  '-15m',
  '-999999999d',
  '20260921_141320',
  '20260230_000000',
  '2026-09-21T14:13:20Z',
  '9999-12-31T23:59:59.999999999+23:59',
  'sec',
  'nanos',
  'YYYYMMDD_HHMMSS',
  'Singapore',
  'West',
  'Etc/../../etc/passwd',
  'nic',
  'vendorA7130',
  'vendorA7150_insert',
  'vendorB_erspan3',
  'vendorB3550',
  'hostile',
  'hostile_20260921_1413',
  '../../../etc/passwd',
  '..%2f..%2f',
  'a%00b',
  '%',
  '%zz',
  '%ff%fe',
  '%F0%9F%92%A9',
  '%00',
  '%0d%0aSet-Cookie:%20x=1',
  'split_1sec',
  'split_10MB',
  'split_1TB',
  'zstd_fast',
  'zstd_ultra',
  '9',
  'tcp%20port%20443',
  'udp[0:4]%20%3D%200',
  'ether%20proto%200xffffffff',
  '((((((((((((((((((((tcp))))))))))))))))))))',
  'host%20example.com',
  'ip[4294967295]%20%3D%201',
  'ip6%20protochain%206',
  'tcp%20or%20'.repeat(50),
  'len%20%3E%3D%200%20and%20len%20%2F%200%20%3D%201',
  'capture.port==1',
  'a7130.srcport=1,2,3%20and%20c3550.srcport!=4',
  'capture.port==1%20and',
  'a7130.device==65536',
  '(a%2B)%2B$',
  '(a|b',
  '(?=x)',
  '(x)%5C1',
  '[a-z]{1000}{1000}',
  '.*'.repeat(20),
  '%5Cp{Greek}',
  "'%3B%20DROP%20TABLE%20captures%3B%20--",
  '$(reboot)',
  '`id`',
  'x'.repeat(5_000),
  '1,'.repeat(1_000),
  '[]',
  '{}',
  'null',
] as const

/** Values of a parameter's own kind: valid, or wrong in a way that only its parser detects. */
const OWN_VALUES: Readonly<Record<string, readonly string[]>> = {
  FilterBPF: [
    'tcp',
    'udp%20port%2053%20or%20greater%20100',
    'tcp%20prot%2080',
    '(tcp',
    'host%20example.com',
    'ip6%20protochain%206',
    'ip%5B4294967295%5D%20%3D%201',
    'ether%20proto%200xffffffff',
    'tcp%20or%20'.repeat(50),
    '(('.repeat(300),
  ],
  FilterBPFDecap: ['true', 'false', 'TRUE'],
  FilterFrame: [
    'capture.port==1',
    'capture.port=0,1%20and%20a7130.srcport!=3',
    'capture.port==',
    'c3550.srcport<4',
    '1,'.repeat(2_000),
  ],
  FilterRE: ['hostile', '%5B0-9%5D%7B3%7D$', '(a|b', '(x)%5C1', '(?=x)', '(a%2B)%2B$', '%5Cx00', '%FF'],
  FilterPort: ['0', '1', '255', '256'],
  TSMode: ['nic', 'vendorA7130', 'vendorA7150_insert', 'vendorB_erspan3', 'sec', 'vendorC'],
  TSZone: ['Singapore', 'West', 'UTC', 'Etc/../../etc/passwd', 'X'.repeat(300)],
  Compression: ['none', 'fast', '9', 'zstd', 'zstd_ultra', 'lzma'],
  Slice: ['1', '64', '12288', '0'],
  TSMax: ['1', '1000000', '9223372036854775807', '9223372036854775808'],
  MaxBytes: ['24', '5000', '9223372036854775807', '23'],
  MaxPackets: ['1', '10', '9223372036854775807'],
  After: ['0', '23', '24', '1000', '9223372036854775807', '9223372036854775808'],
  TSResolution: ['usec', 'nsec', 'psec'],
  StreamView: ['split_1sec', 'split_10MB', 'split_1TB', 'split_12hour'],
  Wait: ['0', '1'],
  Strict: ['0', '1'],
  Limit: ['1', '100000'],
}

/** A raw query string, without "?"; may contain anything that an HTTP request line can carry. */
export function hostileQuery(random: SeededRandom): string {
  if (random.next() < 0.05) return randomBytes(random)
  const pairs = Array.from({ length: Math.max(0, random.integer(-4, 5)) }, () => randomPair(random))
  return [...(random.next() < 0.8 ? wellMeant(random) : []), ...ownPairs(random), ...pairs]
    .sort(() => random.next() - 0.5)
    .join(random.next() < 0.9 ? '&' : '&&')
}

/** What a download needs, so that the rest is parsed. */
function wellMeant(random: SeededRandom): string[] {
  const name = random.pick(['hostile', 'hostile_20260921_1413', 'other', 'nosuch'])
  const begin = 1_790_000_000_000_000_000n + BigInt(random.integer(0, 1_000_000_000))
  const end = begin + BigInt(random.integer(-1, 500_000_000))
  return random.pick([
    [`StreamName=${name}`],
    [`StreamName=${name}`, `Start=${begin}`, `Stop=${end}`],
    [`TSBegin=${begin}`, `TSEnd=${end}`],
    [`from=${begin / 1_000_000n}`, `to=${end / 1_000_000n}`],
  ])
}

function ownPairs(random: SeededRandom): string[] {
  return Object.entries(OWN_VALUES)
    .filter(() => random.next() < 0.12)
    .map(([name, values]) => `${name}=${random.pick(values)}`)
}

function randomPair(random: SeededRandom): string {
  const name = random.pick(NAMES)
  const value = random.next() < 0.85 ? random.pick(VALUES) : randomBytes(random)
  if (random.next() < 0.05) return name
  return `${name}=${value}`
}

function randomBytes(random: SeededRandom): string {
  return Array.from({ length: random.integer(0, 40) }, () => randomCharacter(random)).join('')
}

/** No space and no control character: they end a request line. */
function randomCharacter(random: SeededRandom): string {
  const code = random.integer(0x21, 0xff)
  if (code > 0x7e || random.next() < 0.2) return `%${code.toString(16)}`
  return String.fromCharCode(code)
}
