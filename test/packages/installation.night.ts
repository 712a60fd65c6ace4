// The Debian packages in a Debian 12 with nothing else in it: from the installation to the first capture, an upgrade
// while packets come in, removal, and purge. The units' programs are started as systemd would: under the unit's user,
// with its capabilities.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { RecorderClient } from '../../appliance/link/recorder-client.ts'
import { eventually } from '../support/eventually.ts'
import { type CaptureWire, captureWire, inNamespace, WITHOUT_WIRE } from '../support/network/capture-wire.ts'
import { BareRoot, existsIn, WITHOUT_BARE_ROOT } from '../support/packages/bare-root.ts'
import { asVersion, buildPackages, PACKAGE_NAMES } from '../support/packages/built-packages.ts'
import { flushedBefore } from '../support/packets/flushed-packets.ts'
import { numbersIn } from '../support/packets/numbered-packets.ts'
import { NumberedSender } from '../support/packets/numbered-sender.ts'
import { storedNumbers } from '../support/packets/stored-numbers.ts'
import { APPLIANCE_PASSWORD, USER_PASSWORD } from '../support/suite-secrets.ts'
import { tempFolder } from '../support/temp-folder.ts'

const PACKETS_PER_TICK = 10
const SOME_PACKETS = 2_000
const FIRST_VERSION = '0.0.1'
const NEXT_VERSION = '99.0.0'
/** What packages of Debian leave behind, and logs: not ours. */
const OF_DEBIAN =
  /^\/(var\/(cache|log|lib\/(apt|dpkg|systemd))|etc\/(passwd|group|shadow|gshadow|subuid|subgid)-)/
/** Depended on by our packages, as Debian 12 names them. */
const NEEDED = [
  ...['libbz2-1.0', 'libdeflate0', 'libisal2', 'liblz4-1', 'liblzma5', 'libpcap0.8', 'libstdc++6'],
  ...['libxxhash0', 'libzstd1', 'netbase'],
  ...[process.arch === 'x64' ? 'libhyperscan5' : 'libvectorscan5', 'redis-server'],
  ...['systemd-standalone-sysusers', 'systemd-standalone-tmpfiles'],
]

describe('the packages in a bare Debian', { skip: WITHOUT_BARE_ROOT || WITHOUT_WIRE }, () => {
  const parts = new AsyncDisposableStack()
  let wire: CaptureWire
  let root: BareRoot
  let sender: NumberedSender
  let bare: readonly string[] = []
  let gatewayUrl = ''
  /** The capture that runs during the upgrade. */
  let name = ''

  before(async () => {
    wire = parts.use(await captureWire())
    root = parts.use(await BareRoot.make(wire.receiver, NEEDED))
    // Gateway and appliance meet there.
    await promisify(execFile)(...inNamespace(wire.receiver, ['ip', 'link', 'set', 'lo', 'up']))
    await using built = await tempFolder()
    await buildPackages(built.path)
    for (const [name, version] of [
      ['first', FIRST_VERSION],
      ['next', NEXT_VERSION],
    ] as const) {
      const folder = join(root.path, 'tmp', name)
      await mkdir(folder)
      await asVersion(version, built.path, folder)
    }
    bare = await root.listing()
  })
  after(() => parts.disposeAsync())

  const store = (): string => join(root.path, 'var/lib/capfleet/store')
  const install = (folder: string): Promise<string> =>
    root.succeed(`apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends /tmp/${folder}/*.deb`)
  const capfleet = (args: string, input = ''): Promise<string> => root.succeed(`capfleet ${args}`, input)
  const recorder = (): RecorderClient => new RecorderClient(store())
  const captures = async (): Promise<string> => {
    const report = await recorder().captureReport()
    return report.state === 'running' ? report.name : ''
  }

  test('are installed, and start nothing', async () => {
    await install('first')
    assert.equal(await capfleet('--version'), `capfleet ${FIRST_VERSION}\n`)
    const owners = await root.succeed(
      "stat -c '%U:%G %a' /var/lib/capfleet/store /var/lib/capfleet/gateway /etc/capfleet",
    )
    const expected = [
      'capfleet-recorder:capfleet 2750',
      'capfleet-gateway:capfleet-gateway 700',
      'root:root 755',
    ]
    assert.deepEqual(owners.trim().split('\n'), expected)
    assert.deepEqual(
      root.calls.filter((call) => !call.includes('daemon-reload')),
      [],
    )
    const foreign = await root.succeed('find /opt/capfleet ! -user root -o -perm /022 ! -type l')
    assert.equal(foreign, '')
  })

  test('record, and serve what they recorded to the client, with the documented commands', async () => {
    await root.succeed(
      `printf 'capture:\\n  segmentBytes: 1048576\\n  ports:\\n    - { port: 0, interface: ${wire.interfaceName} }\\nretention: { minFreeBytes: 0 }\\n' >> /etc/capfleet/appliance.yaml`,
    )
    await capfleet(
      'user add gateway --role full --file /etc/capfleet/appliance-users.yaml',
      APPLIANCE_PASSWORD,
    )
    await root.succeed(
      'chgrp capfleet /etc/capfleet/appliance-users.yaml && chmod 640 /etc/capfleet/appliance-users.yaml',
    )
    await root.succeed('install -m 640 -g capfleet-gateway /dev/null /etc/capfleet/here-password')
    await root.succeed('cat > /etc/capfleet/here-password', APPLIANCE_PASSWORD)
    await capfleet('user add ann --role admin --file /etc/capfleet/gateway-users.yaml', USER_PASSWORD)
    await root.succeed(
      'chgrp capfleet-gateway /etc/capfleet/gateway-users.yaml && chmod 640 /etc/capfleet/gateway-users.yaml',
    )
    await root.succeed(
      'runuser -u capfleet -- capfleet appliance --config /etc/capfleet/appliance.yaml --check',
    )
    await root.succeed(
      'runuser -u capfleet-gateway -- capfleet gateway --config /etc/capfleet/gateway.yaml --check',
    )
    for (const unit of ['capfleet-recorder', 'capfleet-appliance', 'capfleet-gateway', 'capfleet-worker']) {
      const address = await root.start(unit)
      if (unit === 'capfleet-gateway') gatewayUrl = address
    }
    await capfleet(`login ${gatewayUrl} --user ann`, USER_PASSWORD)
    assert.match(await capfleet('devices'), /^here /m)
    await capfleet('start first --device here')
    sender = parts.use(await NumberedSender.start(wire, PACKETS_PER_TICK))
    await eventually(() => sender.sent > SOME_PACKETS, { message: 'packets are sent' })
    await capfleet('stop --device here')
    await capfleet('get first -o /tmp/first.pcap')
    const got = numbersIn(await readFile(join(root.path, 'tmp/first.pcap')))
    assert.ok(got.length > SOME_PACKETS / 2)
    assert.deepEqual(
      got,
      got.map((_, index) => (got[0] ?? 0) + index),
    )
  })

  test('are upgraded under a capture: packets are lost only while the recorder restarts', async (t) => {
    await capfleet('start second --device here')
    name = await captures()
    const mark = sender.sent
    await eventually(() => sender.sent > mark + SOME_PACKETS, { message: 'packets are sent' })
    root.calls.length = 0
    await root.succeed('echo "# mine" >> /etc/capfleet/gateway.yaml')
    const before = sender.sent
    await install('next')
    await eventually(async () => (await captures()) === name, { message: 'the same capture runs again' })
    const back = sender.sent
    await eventually(() => sender.sent > back + SOME_PACKETS, { message: 'packets are sent' })
    await capfleet('stop --device here')
    assert.equal(await capfleet('--version'), `capfleet ${NEXT_VERSION}\n`)
    assert.match(await readFile(join(root.path, 'etc/capfleet/gateway.yaml'), 'utf8'), /^# mine$/m)
    assert.match(await readFile(join(root.path, 'etc/capfleet/appliance.yaml'), 'utf8'), /interface: rx0/)
    const verbs = root.calls.filter((call) => !call.includes('daemon-reload'))
    // dpkg chooses which package comes first.
    const of = (...units: readonly string[]) =>
      verbs.filter((call) => units.some((unit) => call.endsWith(` ${unit}.service`)))
    assert.equal(verbs.length, 4)
    for (const units of [
      ['capfleet-appliance', 'capfleet-recorder'],
      ['capfleet-gateway', 'capfleet-worker'],
    ])
      assert.deepEqual(
        of(...units),
        units.map((unit) => `try-restart ${unit}.service`),
      )

    const stored = await storedNumbers(join(store(), 'captures', name))
    const [first = 0, last = 0] = [stored[0], stored.at(-1)]
    assert.ok(
      first < before && last > back,
      `${first} to ${last}; ${before} were sent before, ${back} when it was back`,
    )
    const gaps = stored.flatMap((number, index) => {
      const next = stored[index + 1] ?? number + 1
      return next === number + 1 ? [] : [{ from: number + 1, to: next }]
    })
    const lost = gaps.reduce((sum, { from, to }) => sum + to - from, 0)
    const { atNs = 0n, tookMs } = root.restarts.get('capfleet-recorder') ?? {}
    t.diagnostic(
      `${sender.sent - mark} sent, ${lost} lost in ${gaps.length} gap; the restart took ${tookMs} ms`,
    )
    assert.ok(gaps.length <= 1, JSON.stringify(gaps))
    const stopped = flushedBefore(sender, atNs)
    assert.ok(stopped > before, 'most of the upgrade passes before the recorder is restarted')
    for (const { from, to } of gaps) assert.ok(from >= stopped && to <= last, `${from} to ${to}, ${stopped}`)
    await capfleet(`get ${name} -o /tmp/second.pcap`)
    assert.deepEqual(numbersIn(await readFile(join(root.path, 'tmp/second.pcap'))), stored)
    await capfleet('store verify --store /var/lib/capfleet/store')
  })

  test('are removed with configuration and store left, and what they started ended', async () => {
    await sender[Symbol.asyncDispose]()
    await root.succeed(`apt-get -qq -o Dpkg::Use-Pty=0 remove -y ${PACKAGE_NAMES.join(' ')}`)
    for (const unit of ['recorder', 'appliance', 'gateway', 'worker'])
      assert.ok(!root.isActive(`capfleet-${unit}`), unit)
    assert.ok(!existsIn(root, 'opt/capfleet'))
    for (const path of [
      'etc/capfleet/appliance.yaml',
      'etc/capfleet/gateway-users.yaml',
      'var/lib/capfleet/store/captures',
    ])
      assert.ok(existsIn(root, path), path)
  })

  test('are purged with nothing left but the store', async () => {
    const said = await root.succeed(`apt-get -qq -o Dpkg::Use-Pty=0 purge -y ${PACKAGE_NAMES.join(' ')}`)
    assert.match(said, /^capfleet-appliance: the store \/var\/lib\/capfleet\/store is kept,/m)
    const known = new Set(bare)
    const left = (await root.listing()).filter((path) => !known.has(path) && !OF_DEBIAN.test(path))
    assert.deepEqual(
      left.filter((path) => path !== '/var/lib/capfleet' && !/^\/var\/lib\/capfleet\/store(\/|$)/.test(path)),
      [],
    )
    assert.ok(left.some((path) => path.endsWith('.pcap')))
    // dpkg removes an empty /opt, which no package of Debian owns.
    const gone = bare.filter((path) => !existsIn(root, path) && !/^\/var\/|^\/opt$/.test(path))
    assert.deepEqual(gone, [])
    const users = await readFile(join(root.path, 'etc/passwd'), 'utf8')
    assert.ok(!users.includes('capfleet-gateway'))
    const { uid } = await stat(store())
    assert.match(users, new RegExp(`^capfleet-recorder:x:${uid}:`, 'm'))
  })

  test('find the store again when they are installed again', async () => {
    await install('next')
    await root.start('capfleet-recorder')
    await root.stop('capfleet-recorder')
    const owner = await root.succeed("stat -c '%U:%G %a' /var/lib/capfleet/store")
    assert.equal(owner, 'capfleet-recorder:capfleet 2750\n')
    assert.ok((await storedNumbers(join(store(), 'captures', name))).length > SOME_PACKETS)
  })
})
