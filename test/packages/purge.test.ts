// What the packages' scripts leave when they are purged, with all paths below a temporary folder. installation.night.ts
// purges real installations.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'

const run = promisify(execFile)

class InstalledFiles implements AsyncDisposable {
  readonly path: string
  readonly #folder: AsyncDisposable

  private constructor(folder: Awaited<ReturnType<typeof tempFolder>>) {
    this.path = folder.path
    this.#folder = folder
  }

  /** With the appliance's configuration, whose line of the store is given, and the default folders of an installation. */
  static async create(storeLine: string): Promise<InstalledFiles> {
    const installed = new InstalledFiles(await tempFolder())
    const moved = storeLine.replace('/var/', `${installed.path}/var/`)
    await installed.write('etc/capfleet/appliance.yaml', `deviceName: here\n${moved}\n`)
    await installed.write('etc/capfleet/appliance-users.yaml', 'users: []\n')
    await mkdir(join(installed.path, 'var/lib/capfleet/store'), { recursive: true })
    await installed.write('bin/getent', '#!/bin/sh\nexit 0\n', 0o755)
    await installed.write('bin/userdel', `#!/bin/sh\necho "$1" >>${installed.path}/deleted-users\n`, 0o755)
    return installed
  }

  async write(path: string, text: string, mode = 0o644): Promise<void> {
    await mkdir(dirname(join(this.path, path)), { recursive: true })
    await writeFile(join(this.path, path), text, { mode })
  }

  async writeStore(path: string): Promise<void> {
    await this.write(`${path}/store.json`, '{"format":2}')
    await this.write(`${path}/captures/a/cap0/0.pcap`, 'packets')
  }

  has(path: string): boolean {
    return existsSync(join(this.path, path))
  }

  async deletedUsers(): Promise<readonly string[]> {
    if (!this.has('deleted-users')) return []
    return (await readFile(join(this.path, 'deleted-users'), 'utf8')).trim().split('\n')
  }

  /** As dpkg purges an installed package: it removes it first, and deletes its configuration in between. */
  async purge(name: 'appliance' | 'gateway'): Promise<string> {
    await this.#script(name, 'remove')
    for (const path of await readdir(join(this.path, 'etc/capfleet')).catch(() => []))
      if (path === `${name}.yaml`) await run('rm', [join(this.path, 'etc/capfleet', path)])
    return await this.#script(name, 'purge')
  }

  async #script(name: string, argument: string): Promise<string> {
    const text = await readFile(join(REPOSITORY_ROOT, `config/debian/capfleet-${name}.postrm`), 'utf8')
    const moved = text.replaceAll(/\/(?=etc\/|var\/lib\/|run\/)/g, `${this.path}/`)
    const env = { ...process.env, PATH: `${join(this.path, 'bin')}:${process.env.PATH}` }
    return (await run('sh', ['-c', moved, 'postrm', argument], { env })).stdout.replaceAll(this.path, '')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#folder[Symbol.asyncDispose]()
  }
}

for (const { line, folder } of [
  { line: 'store: /var/lib/capfleet/store', folder: 'var/lib/capfleet/store' },
  { line: "store: '/var/lib/packets'   # a disk of its own", folder: 'var/lib/packets' },
  { line: 'store: ./packets', folder: 'etc/capfleet/packets' },
])
  test(`a purge keeps the store of "${line}" and its users, and says where it is`, async () => {
    await using installed = await InstalledFiles.create(line)
    await installed.writeStore(folder)
    const said = await installed.purge('appliance')
    assert.match(said, new RegExp(`^capfleet-appliance: the store /${folder} is kept,`, 'm'))
    assert.ok(installed.has(`${folder}/captures/a/cap0/0.pcap`))
    assert.deepEqual(await installed.deletedUsers(), [])
    assert.ok(!installed.has('etc/capfleet/appliance-users.yaml'))
    assert.ok(!installed.has('var/lib/capfleet/appliance-store'), 'the note of the folder')
    // The other package may be purged later.
    await installed.write('var/lib/capfleet/gateway/audit/a', 'x')
    await installed.purge('gateway')
    assert.ok(installed.has(`${folder}/captures/a/cap0/0.pcap`))
    assert.ok(!installed.has('var/lib/capfleet/gateway'))
  })

test('without packets, a purge leaves nothing, not even the users', async () => {
  await using installed = await InstalledFiles.create('store: /var/lib/capfleet/store')
  assert.equal(await installed.purge('appliance'), '')
  assert.ok(!installed.has('etc/capfleet') && !installed.has('var/lib/capfleet'))
  assert.deepEqual(await installed.deletedUsers(), ['capfleet-recorder', 'capfleet'])
})

test('a store inside the home of the gateway is kept with it', async () => {
  await using installed = await InstalledFiles.create('store: /var/lib/capfleet/gateway/store')
  await installed.writeStore('var/lib/capfleet/gateway/store')
  const said = await installed.purge('gateway')
  assert.match(said, /^capfleet-gateway: \/var\/lib\/capfleet\/gateway is kept/m)
  assert.ok(installed.has('var/lib/capfleet/gateway/store/captures/a/cap0/0.pcap'))
})
