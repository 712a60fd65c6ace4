// `capfleet get --alert`: the packets that tshark finds for the conversation and the time of each alert.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import {
  ethernet,
  gre,
  icmpEcho,
  ipv4,
  ipv6,
  PROTOCOL,
  TYPE,
  tagged,
  tcp,
  udp,
  vxlan,
} from '../../../../support/packets/packet-layers.ts'
import { makePcap } from '../../../../support/packets/packet-maker.ts'
import { readPcap, recordLines } from '../../../../support/packets/pcap-records.ts'
import {
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../../support/processes/client-process.ts'
import { type SmallFleet, startSmallFleet } from '../../../../support/processes/small-fleet.ts'
import { USER_PASSWORD } from '../../../../support/suite-secrets.ts'

/** 2026-11-02T09:00:00Z */
const NINE_NS = 1_793_610_000_000_000_000n
const SECOND_NS = 1_000_000_000n

/** What is in each second of the captures: conversations, their replies, and packets that differ from them in one fact. */
function packetsOfSecond(): readonly Buffer[] {
  const talk = tcp(51_234, 443, Buffer.from('request'))
  const reply = tcp(443, 51_234, Buffer.from('reply'))
  const packets: readonly (readonly [type: number, packet: Buffer])[] = [
    [TYPE.ipv4, ipv4(PROTOCOL.tcp, talk, { from: 1, to: 2 })],
    [TYPE.ipv4, ipv4(PROTOCOL.tcp, reply, { from: 1, to: 2 })],
    [TYPE.ipv4, ipv4(PROTOCOL.tcp, talk, { from: 1, to: 3 })],
    [TYPE.ipv4, ipv4(PROTOCOL.tcp, talk, { from: 3, to: 2 })],
    [TYPE.ipv4, ipv4(PROTOCOL.tcp, tcp(51_235, 443, Buffer.from('x')))],
    [TYPE.ipv4, ipv4(PROTOCOL.udp, udp(51_234, 443, Buffer.from('quic')))],
    [TYPE.ipv4, ipv4(PROTOCOL.icmp, icmpEcho(false, 1, Buffer.from('ping')))],
    [TYPE.ipv4, ipv4(PROTOCOL.gre, gre(TYPE.ipv4, ipv4(PROTOCOL.tcp, talk, { from: 8, to: 9 })))],
    [TYPE.ipv6, ipv6(PROTOCOL.tcp, talk)],
    [TYPE.ipv6, ipv6(PROTOCOL.tcp, tcp(51_234, 80, Buffer.from('x')))],
    [TYPE.ipv6, ipv6(PROTOCOL.icmp6, Buffer.from('8000000000010001', 'hex'))],
  ]
  const plain = packets.map(([type, packet]) => ethernet(type, packet))
  const once = packets.map(([type, packet]) => ethernet(TYPE.vlan, tagged(7, type, packet)))
  const twice = packets.map(([type, packet]) =>
    ethernet(TYPE.serviceVlan, tagged(8, TYPE.vlan, tagged(7, type, packet))),
  )
  const tunnelled = packets.map(([type, packet]) =>
    ethernet(
      TYPE.ipv4,
      ipv4(PROTOCOL.udp, udp(4_000, 4_789, vxlan(5, ethernet(type, packet))), { from: 20, to: 21 }),
    ),
  )
  return [...plain, ...once, ...twice, ...tunnelled]
}

function capture(seconds: number): Buffer {
  const records = Array.from({ length: seconds }, (_, second) =>
    packetsOfSecond().map((captured, index) => ({
      ns: NINE_NS + BigInt(second) * SECOND_NS + BigInt(index) * 1_000_000n,
      originalLength: captured.length,
      captured,
    })),
  )
  return makePcap(records.flat())
}

/** The reply of the made packets goes from the other side's addresses. */
const SECONDS = 20
const FILES: Readonly<Record<string, Buffer>> = {
  'east-first': capture(SECONDS),
  'west-second': cookedCapture(),
  'west-first': makePcap([
    // The other direction, as another device sees it.
    ...[0, 1, 2, 5, 10].map((second) => {
      const captured = ethernet(TYPE.ipv4, reversed(tcp(443, 51_234, Buffer.from('answer'))))
      return {
        ns: NINE_NS + BigInt(second) * SECOND_NS + 500_000_000n,
        originalLength: captured.length,
        captured,
      }
    }),
  ]),
}

/** A day later, as Linux captures on all interfaces: without Ethernet headers. */
function cookedCapture(): Buffer {
  const packets = [
    ipv4(PROTOCOL.tcp, tcp(51_234, 443, Buffer.from('pod'))),
    ipv4(PROTOCOL.icmp, icmpEcho(false, 1, Buffer.from('x'))),
  ]
  const records = packets.map((packet, index) => {
    const captured = Buffer.concat([Buffer.from('00000001000602000000000100000800', 'hex'), packet])
    return { ns: NINE_NS + BigInt(86_400 + index) * SECOND_NS, originalLength: captured.length, captured }
  })
  return makePcap(records, { linkType: 113 })
}

/** From 10.0.1.2 to 10.0.0.1. */
function reversed(payload: Buffer): Buffer {
  const packet = ipv4(PROTOCOL.tcp, payload)
  const [from, to] = [Buffer.from(packet.subarray(12, 16)), Buffer.from(packet.subarray(16, 20))]
  packet.set(to, 12)
  packet.set(from, 16)
  return packet
}

const SURICATA = {
  timestamp: '2026-11-02T09:00:05.000000+0000',
  event_type: 'alert',
  src_ip: '10.0.1.2',
  src_port: 443,
  dest_ip: '10.0.0.1',
  dest_port: 51_234,
  proto: 'TCP',
  alert: { signature: 'ET TEST one', severity: 1 },
}
/** In both directions, and outside of tunnels: in a tunnel, tshark sees its inner packet, too. */
const WITHIN_TUNNELS =
  '(ip.src==10.0.0.1 && tcp.srcport==51234 && ip.dst==10.0.1.2 && tcp.dstport==443 && !gre) || ' +
  '(ip.src==10.0.1.2 && tcp.srcport==443 && ip.dst==10.0.0.1 && tcp.dstport==51234)'
const CONVERSATION = `(${WITHIN_TUNNELS}) && !udp`

describe('capfleet get --alert', () => {
  const parts = new AsyncDisposableStack()
  let fleet: SmallFleet
  let client: TempClient
  let merged: string

  before(async () => {
    fleet = parts.use(await startSmallFleet([], (name) => FILES[name]))
    client = parts.use(await hostedClient())
    merged = join(client.folder, 'merged.pcap')
    const all = await run(['--begin', String(NINE_NS), '--end', '+1h', '-o', merged])
    assert.equal(all.status, 0, all.stderr)
  })
  after(() => parts.disposeAsync())

  const run = (args: readonly string[], input = '') =>
    client.run(['get', ...args], {
      environment: gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD),
      input,
    })
  /** The packets of both devices that tshark finds by a display filter, from one second to another. */
  const expected = async (filter: string, from: number, to: number): Promise<readonly string[]> => {
    const path = join(client.folder, 'expected.pcap')
    const begin = Number(NINE_NS / SECOND_NS) + from
    const end = Number(NINE_NS / SECOND_NS) + to
    const within = `frame.time_epoch >= ${begin} && frame.time_epoch < ${end}`
    await promisify(execFile)('tshark', [
      ...['-r', merged, '-F', 'nsecpcap', '-w', path],
      ...['-Y', `(${filter}) && ${within}`],
    ])
    return recordLines(readPcap(await readFile(path)).records)
  }
  const given = async (path: string) => recordLines(readPcap(await readFile(path)).records)
  const alert = (fields: object) => `${JSON.stringify({ ...SURICATA, ...fields })}\n`

  test('an alert of Suricata: both directions on all devices, untagged and with one or two VLAN tags', async () => {
    const output = join(client.folder, 'one.pcap')
    const { status, stderr } = await run(
      ['--alert', '-', '--before', '3s', '--after', '6s', '-o', output],
      alert({}),
    )
    assert.equal(status, 0, stderr)
    assert.match(stderr, /^standard input: 1 alert in 1 line: 1 download$/m)
    const found = await given(output)
    assert.deepEqual(found, await expected(CONVERSATION, 2, 11))
    // Three of the made ones in each second, and two of the other direction.
    assert.equal(found.length, 9 * 3 + 3)
  })

  test('takes a stream only of the devices that saw the conversation, and of those that do not answer', async () => {
    // In these three seconds "west" has no packet of it.
    const late = alert({ timestamp: '2026-11-02T09:00:15.000000+0000' })
    const cwd = join(client.folder, 'narrowed')
    await mkdir(cwd)
    const { status, stderr } = await client.run(['get', '--alert', '-', '--before', '1s', '--after', '2s'], {
      environment: gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD),
      input: late,
      cwd,
    })
    assert.equal(status, 0, stderr)
    const [name = ''] = await readdir(cwd)
    assert.equal(name, 'east_20261102T090014Z-20261102T090017Z.pcap')
    assert.deepEqual(await given(join(cwd, name)), await expected(CONVERSATION, 14, 17))
  })

  test('goes down a pipe', async () => {
    const output = join(client.folder, 'piped.pcap')
    const args = ['--alert', '-', '--before', '3s', '--after', '6s', '-o', '-']
    const { status, stdout, stderr } = await run(args, alert({}))
    assert.equal(status, 0, stderr)
    await writeFile(output, stdout)
    assert.deepEqual(await given(output), await expected(CONVERSATION, 2, 11))
  })

  test('finds the packets in cooked captures, where a filter for VLAN tags is refused', async () => {
    const output = join(client.folder, 'cooked.pcap')
    const tomorrow = alert({ timestamp: '2026-11-03T09:00:00.500000+0000' })
    const { status, stderr } = await run(['--alert', '-', '-o', output], tomorrow)
    assert.equal(status, 0, stderr)
    const { linkType, records } = readPcap(await readFile(output))
    assert.equal(linkType, 113)
    assert.match(stderr, /cooked or raw captures have no VLAN tags.*packets in tunnels are included/)
    assert.deepEqual(
      records.map(({ captured }) => captured.toString().slice(-3)),
      ['pod'],
    )
  })

  test('refuses a conversation that may be a tunnel there, instead of finding nothing', async () => {
    const output = join(client.folder, 'tunnel.pcap')
    const vxlan = { proto: 'UDP', src_port: 4000, dest_port: 4789 }
    const tomorrow = alert({ ...vxlan, timestamp: '2026-11-03T09:00:00.500000+0000' })
    const { status, stderr } = await run(['--alert', '-', '-o', output], tomorrow)
    assert.equal(status, 7, stderr)
    assert.match(stderr, /may be a tunnel.*--device and --bpf "udp and .*dst port 4789/)
  })

  test('30 s before and 5 min after, if not told otherwise', async () => {
    const output = join(client.folder, 'margins.pcap')
    const late = alert({ timestamp: '2026-11-02T09:00:35.000000+0000' })
    assert.equal((await run(['--alert', '-', '-o', output], late)).status, 0)
    assert.deepEqual(await given(output), await expected(CONVERSATION, 5, SECONDS))
    const early = alert({ timestamp: '2026-11-02T08:55:10.000000+0000' })
    assert.equal((await run(['--alert', '-', '-o', output, '--force'], early)).status, 0)
    assert.deepEqual(await given(output), await expected(CONVERSATION, 0, 10))
  })

  for (const [what, fields, filter] of [
    [
      'UDP',
      { src_ip: '10.0.0.1', src_port: 51_234, dest_ip: '10.0.1.2', dest_port: 443, proto: 'UDP' },
      'udp.port==51234 && ip.addr==10.0.0.1 && !vxlan',
    ],
    [
      'ICMP',
      { proto: 'ICMP', icmp_type: 8, src_port: undefined, dest_port: undefined },
      'icmp && ip.addr==10.0.0.1 && !udp',
    ],
    ['a protocol by its number', { proto: '47', src_port: undefined, dest_port: undefined }, 'gre && !udp'],
    ['a protocol by its name', { proto: 'GRE', src_port: undefined, dest_port: undefined }, 'gre && !udp'],
    [
      'TCP in IPv6',
      { src_ip: '2001:db8:1::2', src_port: 443, dest_ip: '2001:0db8::1' },
      'ipv6.addr==2001:db8::1 && tcp.port==443 && !udp',
    ],
    [
      'ICMP in IPv6',
      { proto: 'IPv6-ICMP', src_ip: '2001:db8::1', dest_ip: '2001:db8:1::2' },
      'icmpv6 && !udp',
    ],
    [
      'a tunnel',
      { tunnel: { src_ip: '10.0.0.20', dest_ip: '10.0.1.21', proto: 'UDP', depth: 1 } },
      WITHIN_TUNNELS,
    ],
  ] as const)
    test(`finds the packets of ${what}`, async () => {
      const output = join(client.folder, 'kind.pcap')
      const { status, stderr } = await run(
        ['--alert', '-', '--before', '3s', '--after', '6s', '-o', output, '--force'],
        alert(fields),
      )
      assert.equal(status, 0, stderr)
      const found = await given(output)
      assert.ok(found.length > 0)
      assert.deepEqual(found, await expected(filter, 2, 11))
    })

  test('Zeek: a connection from its start to its end, and notices with and without one', async () => {
    const connection = {
      ts: 1_793_610_003.5,
      uid: 'C1',
      'id.orig_h': '10.0.0.1',
      'id.orig_p': 51_234,
      'id.resp_h': '10.0.1.2',
      'id.resp_p': 443,
      proto: 'tcp',
      duration: 4.25,
      tunnel_parents: [],
    }
    const output = join(client.folder, 'zeek.pcap')
    const get = (line: object) =>
      run(
        ['--alert', '-', '--before', '1s', '--after', '2s', '-o', output, '--force'],
        `${JSON.stringify(line)}\n`,
      )
    assert.equal((await get(connection)).status, 0)
    assert.deepEqual(await given(output), await expected(CONVERSATION, 2.5, 9.75))
    const notice = { ts: 1_793_610_005.25, note: 'Scan::Port_Scan', msg: '10.0.0.3 scanned', src: '10.0.0.3' }
    assert.equal((await get(notice)).status, 0)
    assert.deepEqual(await given(output), await expected('ip.src==10.0.0.3 && !udp', 4.25, 7.25))
    assert.equal((await get({ ...notice, src: '10.0.0.1', dst: '10.0.1.2', p: 443, proto: 'tcp' })).status, 0)
    assert.deepEqual(
      await given(output),
      await expected(
        '!udp && !gre && tcp && ((ip.src==10.0.0.1 && ip.dst==10.0.1.2 && tcp.dstport==443) || (ip.src==10.0.1.2 && ip.dst==10.0.0.1 && tcp.srcport==443))',
        4.25,
        7.25,
      ),
    )
  })

  test('several alerts: a file for each conversation and time in a folder, where a second run downloads nothing', async () => {
    const file = join(client.folder, 'eve.json')
    await writeFile(
      file,
      [
        alert({}),
        // Two of the same conversation, one of them from its other side: both overlap with the first.
        alert({ timestamp: '2026-11-02T09:00:07.000000+0000' }),
        alert({ src_ip: '10.0.0.1', src_port: 51_234, dest_ip: '10.0.1.2', dest_port: 443 }),
        // Later, so it does not.
        alert({ timestamp: '2026-11-02T09:00:17.000000+0000' }),
        alert({ proto: 'ICMP', src_port: undefined, dest_port: undefined }),
        `${JSON.stringify({ timestamp: SURICATA.timestamp, event_type: 'stats', stats: {} })}\n`,
        '\n',
      ].join(''),
    )
    const flags = ['--alert', file, '--before', '1s', '--after', '2s', '--device', 'east']
    const refused = await run(flags)
    assert.equal(refused.status, 2)
    assert.match(refused.stderr, /3 alerts become 3 files; give a folder for them, such as -o alerts\//)
    const folder = join(client.folder, 'alerts')
    const first = await run([...flags, '-o', `${folder}/`])
    assert.equal(first.status, 0, first.stderr)
    assert.match(first.stderr, /without an address: 1 line, the first is line 6 \(event_type "stats"\)/)
    assert.match(first.stderr, /5 alerts in 7 lines: 3 downloads/)
    assert.match(first.stderr, /: "ET TEST one" and 2 more$/m)
    const names = [
      '20261102T090004Z-20261102T090007Z_icmp_10.0.1.2_10.0.0.1.pcap',
      '20261102T090004Z-20261102T090009Z_tcp_10.0.1.2_443_10.0.0.1_51234.pcap',
      '20261102T090016Z-20261102T090019Z_tcp_10.0.1.2_443_10.0.0.1_51234.pcap',
    ]
    assert.deepEqual((await readdir(folder)).sort(), names)
    const [icmp = '', early = '', late = ''] = names.map((name) => join(folder, name))
    assert.deepEqual(await given(icmp), await expected('icmp && ip.addr==10.0.0.1 && !udp', 4, 7))
    assert.deepEqual(await given(early), await expected(`(${CONVERSATION}) && frame.len != 60`, 4, 9))
    assert.deepEqual(await given(late), await expected(CONVERSATION, 16, 19))
    const again = await run([...flags, '-o', folder])
    assert.equal(again.status, 0, again.stderr)
    assert.equal(again.stderr.match(/already exists; --force downloads it again/g)?.length, 3)
  })

  test('lines that cannot be read are named by number, and make the status 7 after the others are complete', async () => {
    const folder = join(client.folder, 'mistakes')
    await mkdir(folder)
    const lines = [
      'alert!',
      '[1]',
      '{"a":1}',
      alert({ src_ip: '10.0.0.256' }).trim(),
      alert({ timestamp: undefined }).trim(),
      alert({ timestamp: '2026-11-02T09:00:05' }).trim(),
      alert({ proto: 'XYZ' }).trim(),
      alert({}).trim(),
    ]
    const { status, stderr } = await run(['--alert', '-', '-o', folder], lines.join('\n'))
    assert.equal(status, 7, stderr)
    for (const said of [
      /line 1: "alert!" is not understood; a line is JSON/,
      /line 2: "\[1\]" is not understood/,
      /line 3: it is neither an event of Suricata/,
      /line 4: src_ip "10\.0\.0\.256" is no IPv4 or IPv6 address/,
      /line 5: timestamp is missing/,
      /line 6: timestamp "2026-11-02T09:00:05" has no time zone; give it with --zone/,
      /line 7: proto "XYZ" is not a known protocol/,
      /7 lines of standard input could not be read; the packets of the others are complete \[bad-alerts\]/,
    ])
      assert.match(stderr, said)
    assert.equal((await readdir(folder)).length, 1)
    const zoned = await run(['--alert', '-', '--zone', 'Berlin', '-o', folder], lines[5])
    assert.equal(zoned.status, 0, zoned.stderr)
    assert.ok((await readdir(folder)).some((name) => name.startsWith('20261102T0759')))
  })

  test('what fails for one alert stops no other, and its status is that of the command', async () => {
    const folder = join(client.folder, 'failing')
    const nothing = alert({ timestamp: '2026-11-02T07:00:05.000000+0000' })
    const flags = ['--max-packets', '2', '-o', `${folder}/`]
    const { status, stderr } = await run(['--alert', '-', ...flags], alert({}) + nothing)
    assert.equal(status, 7, stderr)
    assert.match(stderr, /^capfleet: 20261102T\S+: a limit ended the download.* \[truncated\]$/m)
    assert.match(stderr, /^20261102T\S+: complete, 24 bytes \(0 packets: nothing matched\)/m)
    assert.match(stderr, /^capfleet: 1 of 2 downloads failed \[truncated\]$/m)
    assert.equal((await readdir(folder)).length, 2)
  })

  test('refuses what cannot be meant before it downloads anything', async () => {
    const many = Array.from({ length: 101 }, (_, index) => alert({ src_port: index + 1 })).join('')
    for (const [args, said, input = ''] of [
      [['--alert', '-'], /more than 100 downloads \(from line 101 on\).*--alerts-max/, many],
      [['--alert', '-'], /standard input has no alert with an address and a time/],
      [['--alert', 'missing.json'], /--alert: the file missing\.json does not exist/],
      [['--alert', '.'], /--alert: \. is a folder/],
      [['--alert', '-', '--bpf', 'tcp'], /leave out --bpf/],
      [['--alert', '-', '--last', '1h'], /leave out --begin and --last/],
      [['--alert', '-', 'east-first'], /leave out the name of the capture/],
      [['--alert', '-', '--after', '5min'], /after must be a number with a unit/, alert({})],
      [['--alert', '-', '--alerts-max', 'x'], /--alerts-max must be a number/],
      [['--last', '1h', '--after', '5m'], /--after belongs to --alert/],
    ] as const) {
      const { status, stderr } = await run(args, input)
      assert.equal(status, 2, stderr)
      assert.match(stderr, said)
    }
    assert.deepEqual(
      (await readdir(client.folder)).filter((name) => name.endsWith('.part')),
      [],
    )
  })
})
