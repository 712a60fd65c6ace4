// `capfleet check`, on files as a device writes them: whole, cut, damaged, and of another kind.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makePacket, makePcap } from '../../../support/packets/packet-maker.ts'
import { pcapngBlocks } from '../../../support/packets/pcapng-reader.ts'
import { hostedClient, type TempClient } from '../../../support/processes/client-process.ts'
import { startTempAppliance } from '../../../support/processes/temp-appliance.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const TEXT = 'capfleet end: 9 packets, complete'

describe('capfleet check', () => {
  const parts = new AsyncDisposableStack()
  let client: TempClient
  let folder: string
  let body: Buffer

  before(async () => {
    client = parts.use(await hostedClient())
    folder = parts.use(await tempFolder()).path
    const appliance = parts.use(await startTempAppliance())
    const path = join(folder, 'a.pcap')
    await writeFile(path, makePcap([makePacket(1_790_000_000_000_000_000n, TEXT), makePacket(1n, 'first')]))
    await appliance.importFiles('a', path)
    body = (await appliance.get('/api/v1/pcap/single?StreamName=a&Format=pcapng')).body
  })
  after(() => parts.disposeAsync())

  const save = async (name: string, bytes: Uint8Array) => {
    const path = join(folder, name)
    await writeFile(path, bytes)
    return path
  }

  test('prints what the end of a whole file says', async () => {
    const path = await save('whole.pcapng', body)
    const { status, stdout, stderr } = await client.run(['check', path])
    assert.deepEqual([status, stdout.toString(), stderr], [0, `${path}: whole; 2 packets, complete\n`, ''])
  })

  test('fails for a file that is cut, also between blocks and after a packet with such a text', async () => {
    const ends = pcapngBlocks(body).map(({ end }) => end)
    const cuts = [1, 40, ends.at(-3) ?? 0, ends.at(-2) ?? 0, body.length - 1]
    assert.ok(body.subarray(0, ends.at(-2)).includes(TEXT))
    const paths = await Promise.all(cuts.map((bytes) => save(`cut-${bytes}.pcapng`, body.subarray(0, bytes))))
    const whole = await save('other.pcapng', body)
    const { status, stdout, stderr } = await client.run(['check', ...paths, whole])
    assert.equal(status, 7)
    assert.equal(stdout.toString(), `${whole}: whole; 2 packets, complete\n`)
    for (const path of paths) assert.ok(stderr.includes(path), stderr)
    assert.match(stderr, /: cut: the last block of .* is missing; download it again/)
  })

  test('names the place where a file is damaged, and what is no pcapng', async () => {
    const bad = Buffer.from(body)
    bad.writeUInt32LE(7, 4)
    const damaged = await client.run(['check', await save('bad.pcapng', bad)])
    assert.deepEqual([damaged.status, damaged.stdout.toString()], [7, ''])
    assert.match(damaged.stderr, /bad\.pcapng has a block of 7 bytes, at byte 0/)
    const pcap = await client.run(['check', join(folder, 'a.pcap')])
    assert.equal(pcap.status, 7)
    assert.match(pcap.stderr, /a\.pcap is not a pcapng file/)
    const missing = await client.run(['check', join(folder, 'missing.pcapng')])
    assert.equal(missing.status, 2)
    assert.match(missing.stderr, /the file .*missing\.pcapng does not exist/)
  })

  test('names every file that is not whole, and still checks the others', async () => {
    const whole = await save('third.pcapng', body)
    const { status, stdout, stderr } = await client.run([
      'check',
      await save('empty.pcapng', Buffer.alloc(0)),
      join(folder, 'a.pcap'),
      whole,
    ])
    assert.equal(status, 7)
    assert.equal(stdout.toString(), `${whole}: whole; 2 packets, complete\n`)
    assert.match(stderr, /a\.pcap is not a pcapng file.*; .*empty\.pcapng: cut: .*\[file-damaged\]/)
  })

  test('shows what a terminal would execute', async () => {
    const bytes = Buffer.from(body)
    bytes.write('\u001b[3', bytes.lastIndexOf('capfleet end: ') + 'capfleet end: '.length)
    const { stdout } = await client.run(['check', await save('escape.pcapng', bytes)])
    assert.match(stdout.toString(), /whole; \\u001b\[3/)
  })
})
