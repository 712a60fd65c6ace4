import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Command } from 'commander'
import { QueryFlags } from '../../../../src/client/command/common/query-flags.ts'
import { DOWNLOAD_TABLES } from '../../../../src/shared/query/download/parse-download-query.ts'

// The page derives the gateway's address from its own.
Object.assign(globalThis, { location: new URL('https://gw.example/tools/?x=1#/timeline') })
const { capfleetLine, curlLine, downloadUrl, quoted, wiresharkLine } = await import(
  '../../../../src/console/download/command-lines.ts'
)

const PAIRS = [
  ['Device', 'nyc1,lon1'],
  ['TSBegin', '1793610060000000000'],
  ['TSEnd', '1793610120000000000'],
  ['TSUnit', 'nanos'],
  ['FilterBPF', "host 192.0.2.1 and not 'x'"],
  ['FilterBPFDecap', 'true'],
  ['MaxPackets', '10'],
  ['OnError', 'partial'],
  ['TSMode', 'nic'],
  ['Compression', 'zstd'],
  ['Align', '1'],
] as const

describe('a download as a line for a shell', () => {
  test('capfleet get takes every flag of it, and asks for the same', () => {
    const flags = new QueryFlags(DOWNLOAD_TABLES.fleet)
    const command = flags.addTo(new Command().exitOverride().option('-o, --output <file>'))
    const words = [...capfleetLine(PAIRS).matchAll(/'((?:[^']|'\\'')*)'|(\S+)/g)].map(
      ([, text, word]) => text?.replaceAll("'\\''", "'") ?? word ?? '',
    )
    assert.deepEqual(words.slice(0, 3), ['CAPFLEET_URL=https://gw.example/tools/', 'capfleet', 'get'])
    command.parse(words.slice(3), { from: 'user' })
    const query = new Map(flags.query(command.opts()))
    assert.deepEqual(
      [...query].sort(),
      PAIRS.map(([name, value]) => [name, name === 'Align' ? '1' : value]).sort(),
    )
  })

  test('curl has the address below the prefix, and no password', () => {
    assert.ok(
      downloadUrl(PAIRS).startsWith('https://gw.example/tools/api/v1/pcap/timerange?Device=nyc1%2Clon1&'),
    )
    const ann = { user: 'ann', origin: 'password' } as const
    assert.ok(curlLine(PAIRS, ann).startsWith("curl -fsS -u ann -OJ 'https://gw.example/tools/api/"))
    assert.ok(!wiresharkLine(PAIRS, ann).includes('Compression'), 'Wireshark reads no compressed pipe')
  })

  test('a user signed in by a token has no password to type', () => {
    const bob = { user: 'corp:bob', origin: 'token' } as const
    for (const line of [curlLine(PAIRS, bob), wiresharkLine(PAIRS, bob)])
      assert.ok(line.startsWith('curl -fsS -H "Authorization: Bearer $CAPFLEET_TOKEN" '), line)
  })

  test('a text with a quote stays one word', () => {
    assert.equal(quoted("it's"), "'it'\\''s'")
    assert.equal(quoted('$(reboot)'), "'$(reboot)'")
    assert.equal(quoted('nyc1'), 'nyc1')
  })
})
