import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { basename, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { COMPILE_DEFAULTS, CompileQueue } from '../../../appliance/compile/compile-queue.ts'
import { FilterCompiler } from '../../../appliance/compile/filter-compiler.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { CAPTURE_FILES } from '../../support/packets/capture-files.ts'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const ETHERNET = 1
const IS_LONG = process.env.CAPFLEET_LONG === '1'
const request = { caller: { user: 'ann', id: 'ann' }, signal: new AbortController().signal }
/** On a busy machine, using up a filter's processor time takes far longer in real time. */
const PATIENT = { ...COMPILE_DEFAULTS, limitMs: 1_200_000 }
const BOMB = `host ${Array.from({ length: 1_000 }, (_, i) => `10.${i >> 8}.${i & 255}.1`).join(' or ')}`

const EXPRESSIONS: readonly string[] = [
  'ip',
  'ip6',
  'arp',
  'tcp',
  'udp',
  'icmp',
  'icmp6',
  'igmp',
  'sctp',
  'not ip',
  'not tcp and not udp',
  'vlan',
  'vlan and ip',
  'vlan and vlan',
  'vlan 100',
  'vlan and tcp',
  'mpls',
  'mpls and ip',
  'mpls 16',
  'pppoes',
  'pppoes and ip',
  'tcp port 80',
  'tcp port http',
  'udp port 53',
  'port 443',
  'portrange 1-1024',
  'src port 80',
  'dst port 80',
  'udp dst port 4789',
  'udp port 6081',
  'udp port 2152',
  'udp port 8472',
  'host 10.0.0.1',
  'src host 127.0.0.1',
  'net 10.0.0.0/8',
  'net 192.168.0.0/16',
  'dst net 172.16.0.0/12',
  'net 10',
  'ip6 host ::1',
  'ether host ff:ff:ff:ff:ff:ff',
  'ether broadcast',
  'ether multicast',
  'ether proto 0x0800',
  'ether proto 0x8100',
  'ether[0] & 1 = 0',
  'ip broadcast',
  'ip multicast',
  'less 100',
  'greater 100',
  'len > 60',
  'len <= 128',
  'len % 2 = 0',
  'ip[8] > 32',
  'ip[0] & 0xf != 5',
  'ip[6:2] & 0x1fff = 0',
  'ip proto 47',
  'proto gre',
  'ip proto 4',
  'ip protochain 6',
  'tcp[tcpflags] & tcp-syn != 0',
  'tcp[13] = 2',
  'tcp[tcpflags] & (tcp-syn|tcp-ack) = (tcp-syn|tcp-ack)',
  'udp[4:2] > 100',
  'ip[2:2] > 576',
  'ip and (tcp or udp) and not port 22',
  'gateway 10.0.0.1',
  'geneve',
  'geneve and ip',
  'ether[12:2] * 2 > 4096',
  'ip[2:2] / 4 > 30',
  '(ip[2:2] >> 3) & 7 = 1',
  'ip[10:2] ^ 0x5555 > 0x8000',
  'iso',
  'stp',
  'ipx',
  'ether src 00:00:00:00:00:01 or ether dst 00:00:00:00:00:02',
  'inbound',
  'host localhost',
  'tcp port 99999',
  'nonsense',
  'tcp and',
  'ip[',
  'link[0] = 0',
  'wlan type mgt',
  'len > 70000',
  'ip[60000] = 0',
  '1 = 1',
  '0 = 1',
]

function mergeByLinkType(folder: string): string[] {
  const pcaps = CAPTURE_FILES.filter((path) => path.endsWith('.pcap'))
  const byLinkType = Map.groupBy(pcaps, (path) => readPcap(toNanosecondPcap(path)).linkType)
  return [...byLinkType].map(([linkType, paths]) => {
    const merged = join(folder, `type${linkType}.pcap`)
    execFileSync('mergecap', ['-a', '-F', 'nsecpcap', '-w', merged, ...paths])
    return merged
  })
}

function toNanosecondPcap(path: string): Buffer {
  return execFileSync('editcap', ['-F', 'nsecpcap', path, '-'], { maxBuffer: 1 << 28 })
}

/** tcpdump may ask a name server, and may loop over headers; our programs do neither. */
const REFUSED_BY_US = new Set(['host localhost', 'ip protochain 6'])

describe('FilterBPF selects what tcpdump selects', () => {
  let appliance: TempAppliance
  /** One file for each link type, with the packets of all captures of that type. */
  let files: string[] = []
  before(async () => {
    appliance = await startTempAppliance()
    files = mergeByLinkType(appliance.folder)
    for (const path of files) await appliance.importFiles(basename(path), path)
  })
  after(() => appliance[Symbol.asyncDispose]())

  /** Ethernet, and the other link types in turn; at night all. */
  const filesFor = (index: number): readonly string[] => {
    if (IS_LONG) return files
    const isEthernet = (path: string): boolean => basename(path) === `type${ETHERNET}.pcap`
    const others = files.filter((path) => !isEthernet(path))
    return [...files.filter(isEthernet), ...others.slice(index % others.length).slice(0, 1)]
  }

  assert.ok(EXPRESSIONS.length >= 60)
  for (const [index, expression] of EXPRESSIONS.entries()) {
    test(expression, async () => {
      for (const path of filesFor(index)) {
        const expected = spawnSync(
          'tcpdump',
          ['-r', path, '--time-stamp-precision=nano', '-w', '-', expression],
          { maxBuffer: 1 << 28 },
        )
        const answer = await appliance.get(
          `/api/v1/pcap/single?StreamName=${basename(path)}&FilterBPF=${encodeURIComponent(expression)}`,
        )
        if (REFUSED_BY_US.has(expression)) {
          assert.equal(answer.status, 400)
        } else if (expected.status !== 0) {
          assert.equal(answer.status, 400, `${basename(path)}: tcpdump says ${expected.stderr.toString()}`)
          assert.deepEqual([answer.json().code, answer.json().param], ['bad-bpf', 'FilterBPF'])
        } else {
          assert.equal(answer.status, 200, `${basename(path)}: ${answer.body.toString('utf8', 0, 400)}`)
          const delivered = recordLines(readPcap(answer.body).records).toSorted()
          assert.deepEqual(
            delivered,
            recordLines(readPcap(expected.stdout).records).toSorted(),
            basename(path),
          )
        }
      }
    })
  }
})

test('says what libpcap says', async () => {
  const compiler = new FilterCompiler(new CompileQueue())
  await assert.rejects(
    compiler.compile({ expression: 'tcp prot 80', linkType: ETHERNET }, request),
    (error) => {
      assert.ok(error instanceof CapfleetError)
      assert.equal(error.code, 'bad-bpf')
      assert.match(error.message, /^FilterBPF "tcp prot 80" does not compile: .*syntax error$/)
      return true
    },
  )
})

test('repeats the beginning of a long filter, and no character that controls a terminal', async () => {
  const compiler = new FilterCompiler(new CompileQueue())
  const expression = `tcp prot \u001b]0;x\u0007\n\u202e${'9'.repeat(5_000)}`
  await assert.rejects(compiler.compile({ expression, linkType: ETHERNET }, request), (error) => {
    assert.ok(error instanceof CapfleetError)
    assert.match(
      error.message,
      /^FilterBPF "tcp prot \\u001b\]0;x\\u0007\\n\\u202e9+\.\.\." does not compile: /,
    )
    assert.ok(error.message.length < 300, error.message)
    return true
  })
})

test('says how a display filter of Wireshark is written', async () => {
  const compiler = new FilterCompiler(new CompileQueue())
  await assert.rejects(
    compiler.compile({ expression: 'tcp.port == 443', linkType: ETHERNET }, request),
    /FilterBPF "tcp\.port == 443" does not compile: .*; it is a display filter of Wireshark; in the syntax of tcpdump: tcp port 443$/,
  )
})

test('a long filter for which the device is too busy is told of lists of addresses', async () => {
  const busy = new CapfleetError('compiler-busy', 'too busy', { retryAfterS: 5 })
  const queue = { compile: () => Promise.reject(busy) } as unknown as CompileQueue
  const compile = (expression: string) =>
    new FilterCompiler(queue).compile({ expression, linkType: ETHERNET }, request)
  await assert.rejects(compile('tcp'), busy)
  await assert.rejects(compile(BOMB), {
    code: 'compiler-busy',
    message: 'too busy; FilterAddresses takes lists of addresses without compiling them',
    details: { retryAfterS: 5 },
  })
})

test('a filter that explodes is given up after two seconds of processor time, and the answer is remembered', async (t) => {
  const queue = new CompileQueue(PATIENT)
  const compiler = new FilterCompiler(queue)
  const compile = () => compiler.compile({ expression: BOMB, linkType: ETHERNET }, request)
  let turns = 0
  const watch = setInterval(() => turns++, 10)
  t.after(() => clearInterval(watch))
  await assert.rejects(compile(), { code: 'bad-bpf', message: /too complex/ })
  assert.ok(turns > 20, `the event loop had ${turns} turns meanwhile`)
  await assert.rejects(compile(), { code: 'bad-bpf' })
  assert.equal(queue.counts.refused, 1)
})

test('a client that leaves ends its compiler at once, running or waiting', async () => {
  const compiler = new FilterCompiler(new CompileQueue())
  const client = new AbortController()
  const jobs = Array.from({ length: 6 }, (_, index) =>
    compiler.compile(
      { expression: `${BOMB} or host 9.9.9.${index}`, linkType: ETHERNET },
      { ...request, signal: client.signal },
    ),
  )
  // As slow as those would be: whether they were killed shows in the order in which requests end.
  const other = new FilterCompiler(new CompileQueue(PATIENT))
  const isGivenUp = assert.rejects(other.compile({ expression: BOMB, linkType: ETHERNET }, request))
  const whole = isGivenUp.then(() => undefined)
  client.abort(new Error('client gone'))
  const results = await Promise.race([Promise.allSettled(jobs), whole])
  assert.ok(results !== undefined, 'a filter that nobody leaves is given up before they end')
  await whole
  for (const result of results) {
    assert.equal(result.status, 'rejected')
    assert.match(String(result.reason), /client gone/)
  }
  await compiler.compile({ expression: 'tcp', linkType: ETHERNET }, request)
})

test("downloads run on, and another user's filters compile, while bombs are tried", async () => {
  await using appliance = await startTempAppliance()
  const path = CAPTURE_FILES.find((name) => name.endsWith('.pcap'))
  if (path === undefined) return
  await appliance.importFiles('a', path)
  const ask = (filter: string, role: 'user' | 'full' = 'full') =>
    appliance.get(`/api/v1/pcap/single?StreamName=a&FilterBPF=${encodeURIComponent(filter)}`, {
      user: appliance.credentials(role),
    })
  let isAnswered = false
  const bomb = ask(BOMB, 'user').finally(() => {
    isAnswered = true
  })
  let quick = 0
  while (!isAnswered) {
    assert.equal((await appliance.get('/api/v1/pcap/single?StreamName=a')).status, 200)
    assert.equal((await ask(`tcp port ${quick + 1}`)).status, 200)
    quick++
  }
  const answer = await bomb
  // On a busy machine its limit in real time is reached first.
  assert.match(`${answer.status} ${answer.json().detail}`, /^(400 .*too complex|503 .*too busy)/)
  assert.ok(quick >= 3, `${quick} others were answered before the bomb was`)
})
