// Mistakes at the command line, with a real gateway over two appliances: each message names what is wrong and what to write.
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../../support/processes/client-process.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../../../support/processes/small-fleet.ts'
import { USER_PASSWORD } from '../../../../support/suite-secrets.ts'

const RANGE = [
  '--begin',
  String(SMALL_FLEET_START_NS),
  '--end',
  String(SMALL_FLEET_START_NS + 1_000_000_000n),
]
const get = (...args: readonly string[]) => ['get', ...RANGE, '-o', 'a.pcap', ...args]

interface Mistake {
  readonly typed: readonly string[]
  readonly status: number
  readonly says: RegExp
}

const MISTAKES: Readonly<Record<string, Mistake>> = {
  'a display filter of Wireshark': {
    typed: get('--bpf', 'ip.addr==1.2.3.4'),
    status: 2,
    says: /--bpf "ip\.addr==1\.2\.3\.4" does not compile: .*; it is a display filter of Wireshark; in the syntax of tcpdump: host 1\.2\.3\.4 \[bad-bpf\]$/m,
  },
  'words of a display filter': {
    typed: get('--bpf', 'tcp.port eq 443'),
    status: 2,
    says: /in the syntax of tcpdump: tcp port 443 \[bad-bpf\]$/m,
  },
  'quotation marks in the value': {
    typed: get('--bpf', '"tcp port 443"'),
    status: 2,
    says: /did you mean: tcp port 443 \[bad-bpf\]$/m,
  },
  'a list with a comma': {
    typed: get('--bpf', 'port 80,443'),
    status: 2,
    says: /did you mean: \(port 80 or port 443\) \[bad-bpf\]$/m,
  },
  'no quotation marks': {
    typed: get('--bpf', 'tcp', 'port', '443'),
    status: 2,
    says: /^\(a value with spaces needs quotation marks: --bpf 'tcp port 443'\)$/m,
  },
  'one word too many': {
    typed: get('--bpf', 'host', '10.0.0.1'),
    status: 2,
    says: /"10\.0\.0\.1" is read as the name of a capture, .* a value with spaces needs quotation marks/,
  },
  'the start after the end': {
    typed: ['get', '--begin', 'now', '--end', '-1h'],
    status: 2,
    says: /^capfleet: --begin \([\d-]+T[\d:.]+Z\) is later than --end \([\d-]+T[\d:.]+Z\); swap them/m,
  },
  'the part of no capture': {
    typed: ['get', '--start', '-1h', '--stop', 'now'],
    status: 2,
    says: /--start and --stop select a part of a capture: .* use --begin and --end$/m,
  },
  'a length of time without a unit': {
    typed: ['get', '--last', '5'],
    status: 2,
    says: /^capfleet: --last must be a number with a unit .*; got "5"; did you mean 5m\?$/m,
  },
  'a length of time in words': {
    typed: ['get', '--last', '2 Hours'],
    status: 2,
    says: /got "2 Hours"; did you mean 2h\?$/m,
  },
  'an unknown device': {
    typed: get('-d', 'paris'),
    status: 4,
    says: /^capfleet: no device matches "paris"; capfleet devices lists them/m,
  },
  'an option of another program': {
    typed: get('--filter', 'tcp'),
    status: 2,
    says: /^error: unknown option '--filter'\n\(Did you mean --bpf\?\)$/m,
  },
  'a misspelt option': {
    typed: get('--devices', 'east'),
    status: 2,
    says: /^error: unknown option '--devices'\n\(Did you mean --device\?\)$/m,
  },
  'an option of which a letter is missing': {
    typed: ['get', '--begn', 'now'],
    status: 2,
    says: /^error: unknown option '--begn'\n\(Did you mean --begin\?\)$/m,
  },
  'no end': {
    typed: ['get', '--begin', '-1h'],
    status: 2,
    says: /^capfleet: --end is missing; add --end, such as --end now \[bad-parameter\]$/m,
  },
  'two hosts separated by a comma': {
    typed: get('--bpf', 'host 10.0.0.1, host 10.0.0.2'),
    status: 2,
    says: /did you mean: host 10\.0\.0\.1 or host 10\.0\.0\.2 \[bad-bpf\]$/m,
  },
  'an address with a port': {
    typed: get('--bpf', 'src 10.0.0.1:80'),
    status: 2,
    says: /did you mean: \(src host 10\.0\.0\.1 and src port 80\) \[bad-bpf\]$/m,
  },
  'a host that is no address': {
    typed: ['seen', '10.0.0.256', '--last', '1h'],
    status: 2,
    says: /^capfleet: the address "10\.0\.0\.256" is no IPv4 or IPv6 address or network, such as /m,
  },
  'a file that does not exist': {
    typed: ['upload', 'missing.pcap', '-d', 'east'],
    status: 2,
    says: /^capfleet: the file missing\.pcap does not exist$/m,
  },
  'an unknown capture': {
    typed: ['get', 'nothing'],
    status: 4,
    says: /^capfleet: no device has a capture nothing; capfleet captures lists all captures/m,
  },
  'a scheme of another protocol': {
    typed: ['login', 'ftp://127.0.0.1'],
    status: 2,
    says: /"ftp:\/\/127\.0\.0\.1" is not the address of a gateway; it should look like https:/,
  },
  'a scheme without slashes': {
    typed: ['login', 'https:/capfleet.example.org'],
    status: 2,
    says: /"https:\/capfleet\.example\.org" is not the address of a gateway/,
  },
  'a file that exists': {
    typed: ['get', ...RANGE, '-o', 'there.pcap'],
    status: 2,
    says: /there\.pcap already exists; --force replaces it$/m,
  },
  'a list of addresses that does not exist': {
    typed: get('--addresses', 'hosts.txt'),
    status: 2,
    says: /^capfleet: --addresses: the file hosts\.txt does not exist$/m,
  },
  'an address instead of a list': {
    typed: get('--addresses', '10.0.0.1'),
    status: 2,
    says: /--addresses takes a file, .* --bpf 'host \.\.\.', or pipe them: echo 10\.0\.0\.1 \| /,
  },
  'a folder instead of a list': {
    typed: get('--addresses', 'folder'),
    status: 2,
    says: /^capfleet: --addresses: folder is a folder; name a file in it$/m,
  },
  'a folder that does not exist': {
    typed: ['get', ...RANGE, '-o', 'missing/a.pcap'],
    status: 2,
    says: /^capfleet: the folder \S+\/missing does not exist; create it, or name another$/m,
  },
  'parts in a folder that does not exist': {
    typed: ['get', ...RANGE, '-o', 'missing/a.pcap', '--split', '1MiB'],
    status: 2,
    says: /^capfleet: the folder \S+\/missing does not exist; create it, or name another$/m,
  },
  'an option before its command': {
    typed: ['--context', 'lab', 'export', 'list'],
    status: 2,
    says: /^error: --context is an option of capfleet export list, and must come after it$/m,
  },
  'a change that names no devices': {
    typed: ['start'],
    status: 2,
    says: /^capfleet: --device is missing; name the devices to change, or --device '\*' for all of them/m,
  },
  'a list with a bad address': {
    typed: get('--addresses', 'bad.txt'),
    status: 2,
    says: /^capfleet: --addresses: bad\.txt line 2: "10\.0\.0\.256" is no IPv4 or IPv6 address/m,
  },
  'a length of time with an unknown unit': {
    typed: get('--dedup', '5x'),
    status: 2,
    says: /^capfleet: --dedup must be a number of nanoseconds, or have a unit, such as 10ms; got "5x"$/m,
  },
  'a wait that is no number': {
    typed: get('--wait', '1h'),
    status: 2,
    says: /^capfleet: --wait must be a number of seconds, such as 60; got "1h"$/m,
  },
  'a filter that is too long': {
    typed: get(
      '--bpf',
      Array.from({ length: 1_000 }, (_, n) => `host 10.20.${n >> 8}.${n & 255}`).join(' or '),
    ),
    status: 2,
    says: /^capfleet: --bpf is longer than 16384 characters; shorten it; --addresses takes lists of addresses/m,
  },
  'a word that is no clock': {
    typed: get('--ts-mode', 'hardware'),
    status: 2,
    says: /--ts-mode must be one of nic, .* \(or, as in old scripts, a unit of the range: nanos, .*\), got "hardware"/,
  },
}

describe('a mistake at the command line:', () => {
  const parts = new AsyncDisposableStack()
  let fleet: SmallFleet
  let client: TempClient

  before(async () => {
    fleet = parts.use(await startSmallFleet())
    client = parts.use(await hostedClient())
    await writeFile(join(client.folder, 'there.pcap'), '')
    await mkdir(join(client.folder, 'folder'))
    await writeFile(join(client.folder, 'bad.txt'), '10.0.0.1 # a host\n10.0.0.256\n')
  })
  after(() => parts.disposeAsync())

  for (const [name, { typed, status, says }] of Object.entries(MISTAKES))
    test(name, async () => {
      const environment = gatewayEnvironment(fleet.gateway.url, 'full', USER_PASSWORD)
      const ended = await client.run(typed, { environment })
      assert.match(ended.stderr, says)
      assert.equal(ended.status, status)
    })

  test('a token that is not valid, from the environment', async () => {
    const environment = { CAPFLEET_URL: fleet.gateway.url, CAPFLEET_TOKEN: 'e30.e30.e30' }
    const { status, stderr } = await client.run(['devices'], { environment })
    assert.equal(status, 3)
    assert.match(stderr, /get another one; the credentials are from the environment: CAPFLEET_TOKEN, or /)
  })

  test('no login, and a password that has been changed since', async () => {
    const none = await client.run(['devices'])
    assert.equal(none.status, 2)
    assert.match(none.stderr, /not logged in to any gateway; log in first: capfleet login URL$/m)
    const login = ['login', fleet.gateway.url, '--user', 'user', '--name', 'lab']
    assert.equal((await client.run(login, { input: `${USER_PASSWORD}\n` })).status, 0)
    const path = join(client.home, 'capfleet', 'config.yaml')
    const { stdout } = await client.run(['health'])
    assert.equal(stdout.toString(), '')
    await writeFile(
      path,
      `current: lab\ncontexts: {lab: {url: "${fleet.gateway.url}/", user: user, password: changed}}\n`,
    )
    const refused = await client.run(['devices'])
    assert.equal(refused.status, 3)
    assert.match(refused.stderr, /; log in again: capfleet login http:\S+ \[unauthenticated\]$/m)
  })
})
