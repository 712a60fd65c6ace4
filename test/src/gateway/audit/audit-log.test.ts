import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFile,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { AuditChain } from '../../../../src/gateway/audit/audit-chain.ts'
import { AuditLog } from '../../../../src/gateway/audit/audit-log.ts'
import { verifyAudit } from '../../../../src/gateway/audit/verify-audit.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { CLOCK_DISTRUSTS } from '../../../../src/shared/base/shared-time.ts'
import { downloadBy, TEMP_AUDIT_SETTINGS, tempAudit } from '../../../support/access/temp-audit.ts'
import { mountSmallDisk } from '../../../support/disks/small-disk.ts'
import { eventually } from '../../../support/eventually.ts'
import { TRUSTED_TIME } from '../../../support/trusted-time.ts'

const FIRST = 'nyc1.gateway.00000001.jsonl'
const MODULE = fileURLToPath(new URL('../../../support/access/temp-audit.ts', import.meta.url))
const jsonl = async (folder: string) =>
  (await readdir(folder)).filter((name) => name.endsWith('.jsonl')).sort()

test('a line says who did what, and is chained to the one before it', async () => {
  await using audit = await tempAudit()
  await using log = await audit.open()
  await log.record(downloadBy('ann', { query: 'FilterBPF=tcp', devices: ['nyc1'] }))
  const entries = await audit.entries()
  assert.deepEqual(
    entries.map(({ event }) => event),
    ['audit.opened', 'download.begin'],
  )
  const [opened, begun] = entries
  assert.equal(begun?.prev, opened?.hash)
  assert.equal(begun?.seq, 2)
  assert.equal(begun?.user, 'ann')
  assert.deepEqual(begun?.devices, ['nyc1'])
  assert.match(String(begun?.at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  const file = await stat(join(audit.path, FIRST))
  assert.equal(file.mode & 0o777, 0o600)
  assert.equal((await stat(audit.path)).mode & 0o777, 0o700)
})

test('sha256sum confirms a line', async () => {
  await using audit = await tempAudit()
  await using log = await audit.open()
  await log.record(downloadBy('żółć "quoted"', { query: 'a\nb\u2028\u0000' }))
  const line = (await readFile(join(audit.path, FIRST), 'utf8')).split('\n')[1] ?? ''
  const script = `sed 's/,"hash":"[0-9a-f]*"}$//' | tr -d '\\n' | sha256sum`
  const { stdout } = spawnSync('sh', ['-c', script], { input: line, encoding: 'utf8' })
  assert.equal(stdout.split(' ')[0], JSON.parse(line).hash)
})

test('thousands of callers at once get their lines in few writes', async () => {
  await using audit = await tempAudit()
  await using log = await audit.open()
  await Promise.all(Array.from({ length: 5_000 }, (_, i) => log.record(downloadBy(`user ${i}`))))
  const entries = await audit.entries()
  assert.deepEqual(
    entries.slice(1).map(({ user }) => user),
    Array.from({ length: 5_000 }, (_, i) => `user ${i}`),
  )
  const { chains, isWhole } = await verifyAudit(audit.path)
  assert.ok(isWhole)
  assert.equal(chains[0]?.lines, 5_001)
})

test('texts and lists that are too long are cut', async () => {
  await using audit = await tempAudit()
  await using log = await audit.open()
  const devices = Array.from({ length: 100_000 }, (_, i) => `device-${i}`)
  await log.record(downloadBy('ann', { note: 'q'.repeat(65_536), devices }))
  const { note, devices: shown } = (await audit.entries()).at(-1) as unknown as {
    readonly note: string
    readonly devices: readonly string[]
  }
  assert.equal(note, `${'q'.repeat(4_096)}... (65536 characters)`)
  assert.equal(shown.length, 1_001)
  assert.equal(shown.at(-1), '... (100000 entries)')
})

test('the queue is bounded: requests above its limit are refused', async () => {
  await using audit = await tempAudit()
  await using log = await audit.open()
  const all = await Promise.allSettled(Array.from({ length: 12_000 }, () => log.record(downloadBy('ann'))))
  const refused = all.filter(({ status }) => status === 'rejected')
  assert.ok(refused.length > 1_000 && refused.length < 3_000, `${refused.length}`)
  assert.equal((refused[0] as PromiseRejectedResult).reason.code, 'audit-unavailable')
  await log.record(downloadBy('bob'))
  const lost = (await audit.entries()).find(({ event }) => event === 'audit.lost')
  assert.equal(lost?.events, refused.length)
})

test('the chain continues in the next file, and in the next process', async () => {
  await using audit = await tempAudit()
  for (let run = 0; run < 3; run += 1) {
    await using log = await audit.open({ fileBytes: 2_000 })
    for (let i = 0; i < 20; i += 1) await log.record(downloadBy('ann', { i }))
  }
  const { chains, isWhole } = await verifyAudit(audit.path)
  assert.ok(isWhole)
  assert.equal(chains.length, 1)
  assert.equal(chains[0]?.lines, 66)
  assert.ok((chains[0]?.files ?? 0) > 5)
  const entries = await audit.entries()
  assert.deepEqual(
    entries.map(({ seq }) => seq),
    entries.map((_, index) => index + 1),
  )
})

test('each day has a file, and old ones go; the rest verifies', async () => {
  await using audit = await tempAudit()
  let now = new Date('2026-11-01T12:00:00Z')
  await using log = await audit.open({ keepDays: 4 }, () => now)
  for (let day = 1; day <= 8; day += 1) {
    now = new Date(Date.UTC(2026, 10, day, 12))
    await log.record(downloadBy('ann', { day }))
    for (const name of await jsonl(audit.path)) {
      const written = new Date(Date.UTC(2026, 10, Number(/\d{8}/.exec(name)?.[0]), 12))
      await utimes(join(audit.path, name), written, written)
    }
    await log.expireBy({ nowMs: () => now.getTime(), distrust: undefined })
  }
  assert.deepEqual(
    await jsonl(audit.path),
    [5, 6, 7, 8].map((number) => `nyc1.gateway.0000000${number}.jsonl`),
  )
  const { chains, isWhole } = await verifyAudit(audit.path)
  assert.ok(isWhole)
  assert.equal(chains[0]?.firstFile, 5)
  assert.equal(chains[0]?.lines, 4)
})

test('the files and the lock of a process that does not return are removed when they are old', async () => {
  await using audit = await tempAudit()
  const age = async (pod: string) => {
    const long = new Date(Date.now() - 5 * 86_400_000)
    for (const name of await readdir(audit.path))
      if (name.startsWith(pod)) await utimes(join(audit.path, name), long, long)
  }
  for (const name of ['pod-gone', 'pod-lately']) {
    await using log = await audit.open({ name, fileBytes: 1 })
    await log.record(downloadBy('ann'))
  }
  await using living = await audit.open({ name: 'pod-living' })
  for (const pod of ['pod-gone', 'pod-living']) await age(pod)
  const before = await readdir(audit.path)
  await using next = await audit.open({ name: 'pod-next', keepDays: 4 })
  await next.expireBy(TRUSTED_TIME)
  const after = new Set(await readdir(audit.path))
  assert.deepEqual(before.filter((name) => !after.has(name)).sort(), [
    'pod-gone.gateway.00000001.jsonl',
    'pod-gone.gateway.00000002.jsonl',
    'pod-gone.gateway.00000003.jsonl',
    'pod-gone.gateway.lock',
  ])
  await living.record(downloadBy('bob'))
  assert.ok((await verifyAudit(audit.path)).isWhole)
})

describe('a clock that is wrong removes no file', () => {
  const day = 86_400_000
  const nowMs = Date.UTC(2026, 10, 20, 12)
  /** An audit of the last days, one file per day according to the lines. */
  async function ofDays(log: AuditLog, setNow: (now: Date) => void): Promise<void> {
    for (let back = 3; back >= 0; back -= 1) {
      setNow(new Date(nowMs - back * day))
      await log.record(downloadBy('ann', { back }))
    }
  }

  test('while the host does not agree with Redis', async () => {
    await using audit = await tempAudit()
    let now = new Date(nowMs)
    await using log = await audit.open({ keepDays: 1 }, () => now)
    await ofDays(log, (at) => {
      now = at
    })
    const files = await jsonl(audit.path)
    for (const name of files) await utimes(join(audit.path, name), 0, 0)
    for (const distrust of CLOCK_DISTRUSTS) await log.expireBy({ nowMs: () => nowMs, distrust })
    assert.deepEqual(await jsonl(audit.path), files)
    await log.expireBy({ nowMs: () => nowMs, distrust: undefined })
    assert.equal((await jsonl(audit.path)).length, 2)
  })

  test('that was written while it was late', async () => {
    await using audit = await tempAudit()
    let now = new Date(nowMs)
    await using log = await audit.open({ keepDays: 30 }, () => now)
    for (const ms of [nowMs, nowMs - 3_650 * day, nowMs + 1_000]) {
      now = new Date(ms)
      await log.record(downloadBy('ann'))
      // The file date that a host with that clock sets.
      const [newest = ''] = (await jsonl(audit.path)).slice(-1)
      await utimes(join(audit.path, newest), now, now)
    }
    now = new Date(nowMs + day)
    await log.record(downloadBy('ann'))
    const files = await jsonl(audit.path)
    assert.equal(files.length, 4)
    // Once the first file is gone, that of the late clock is the oldest.
    await rm(join(audit.path, FIRST))
    await log.expireBy({ nowMs: () => nowMs + 2 * day, distrust: undefined })
    assert.deepEqual(await jsonl(audit.path), files.slice(1))
  })

  test('of a process that has died while it was late', async () => {
    await using audit = await tempAudit()
    {
      await using log = await audit.open({ name: 'pod' })
      await log.record(downloadBy('ann'))
    }
    const files = await readdir(audit.path)
    for (const name of await jsonl(audit.path)) await utimes(join(audit.path, name), 0, 0)
    await using log = await audit.open({ name: 'other', keepDays: 4 })
    await log.expireBy(TRUSTED_TIME)
    const left = new Set(await readdir(audit.path))
    assert.deepEqual(
      files.filter((name) => !left.has(name)),
      [],
    )
  })
})

test('two processes of one name write two chains; a chain whose process was killed is gone on with', async () => {
  await using audit = await tempAudit()
  const script = `
    const { tempAudit, downloadBy } = await import(${JSON.stringify(MODULE)})
    const log = await (await tempAudit(${JSON.stringify(audit.path)})).open()
    await log.record(downloadBy('child'))
    console.log('written')
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      assert.equal(line, 'written')
      break
    }
    await using log = await audit.open()
    await log.record(downloadBy('ann'))
    assert.deepEqual(await jsonl(audit.path), ['nyc1.gateway-2.00000001.jsonl', FIRST])
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  await using again = await audit.open()
  await again.record(downloadBy('ben'))
  const { chains, isWhole } = await verifyAudit(audit.path)
  assert.ok(isWhole)
  assert.deepEqual(
    chains.map(({ chain, lines }) => [chain, lines]),
    [
      ['nyc1.gateway', 4],
      ['nyc1.gateway-2', 3],
    ],
  )
})

test('a torn last line is cut off, whatever is left of it, and that is reported', async () => {
  await using audit = await tempAudit()
  {
    await using log = await audit.open()
    await log.record(downloadBy('ann'))
  }
  const path = join(audit.path, FIRST)
  const whole = await readFile(path)
  const lastBytes = whole.length - (whole.lastIndexOf('\n', whole.length - 2) + 1)
  for (let cut = 1; cut < lastBytes; cut += 1) {
    await writeFile(path, whole.subarray(0, whole.length - cut))
    const { isWhole, chains } = await verifyAudit(audit.path)
    assert.ok(isWhole, `${cut}`)
    assert.equal(chains[0]?.tornBytes, lastBytes - cut)
    if (cut % 50 !== 1) continue
    {
      await using log = await audit.open()
      await log.record(downloadBy('ben'))
    }
    const entries = await audit.entries()
    assert.deepEqual(
      entries.slice(2, 5).map(({ event }) => event),
      ['audit.opened', 'audit.recovered', 'download.begin'],
    )
    assert.equal(entries[3]?.cutBytes, lastBytes - cut)
    assert.equal(entries[3]?.file, FIRST)
    const after = await verifyAudit(audit.path)
    assert.ok(after.isWhole)
    assert.equal(after.chains[0]?.tornBytes, 0)
  }
})

test('a process that was killed before the first line of a new file continues after the previous file', async () => {
  await using audit = await tempAudit()
  {
    await using _log = await audit.open()
  }
  await writeFile(join(audit.path, 'nyc1.gateway.00000002.jsonl'), '{"seq":3,"at":"20')
  {
    await using log = await audit.open()
    await log.record(downloadBy('ann'))
  }
  assert.ok((await verifyAudit(audit.path)).isWhole)
  assert.deepEqual(
    (await audit.entries()).map(({ seq, event }) => `${seq} ${event}`),
    [
      '1 audit.opened',
      '2 audit.closed',
      '3 audit.opened',
      '4 audit.recovered',
      '5 download.begin',
      '6 audit.closed',
    ],
  )
})

test('a chain whose end is damaged is left as it is', async () => {
  await using audit = await tempAudit()
  {
    await using _log = await audit.open()
  }
  const path = join(audit.path, FIRST)
  const damaged = (await readFile(path, 'utf8')).replace('audit.closed', 'audit.clothed')
  await writeFile(path, damaged)
  {
    await using log = await audit.open()
    await log.record(downloadBy('ann'))
  }
  assert.equal(await readFile(path, 'utf8'), damaged)
  const { chains } = await verifyAudit(audit.path)
  assert.deepEqual(
    chains.map(({ chain, problemCount }) => [chain, problemCount]),
    [
      ['nyc1.gateway', 1],
      ['nyc1.gateway-2', 0],
    ],
  )
})

test('a full disk refuses, and the chain continues when it has room', async (t) => {
  const mounted = await mountSmallDisk(256 * 1_024)
  if (typeof mounted === 'string') {
    t.skip(mounted)
    return
  }
  await using disk = mounted
  await using audit = await tempAudit(join(disk.path, 'audit'))
  await using log = await audit.open()
  const filler = join(disk.path, 'filler')
  const acknowledged: number[] = []
  let next = 0
  const recordSome = async () => {
    const numbers = Array.from({ length: 20 }, () => next++)
    const ends = await Promise.allSettled(
      numbers.map((number) => log.record(downloadBy('ann', { number, query: 'x'.repeat(200) }))),
    )
    acknowledged.push(...numbers.filter((_, index) => ends[index]?.status === 'fulfilled'))
    return ends.find((end) => end.status === 'rejected')?.reason
  }
  for (let round = 0; round < 3; round += 1) {
    await appendFile(filler, Buffer.alloc(1 << 20)).catch((error) => assert.equal(error.code, 'ENOSPC'))
    let refusal: { code: string } | undefined
    while (refusal === undefined) refusal = await recordSome()
    assert.equal(refusal.code, 'audit-unavailable')
    assert.equal((await recordSome())?.code, 'audit-unavailable')
    // A reader finds only whole lines, and perhaps the beginning of one.
    assert.ok((await verifyAudit(audit.path)).isWhole)
    await truncate(filler, 0)
    assert.equal(await recordSome(), undefined)
  }
  const entries = await audit.entries()
  const written = entries.filter(({ event }) => event === 'download.begin').map(({ number }) => number)
  assert.deepEqual(written, acknowledged)
  assert.equal(entries.filter(({ event }) => event === 'audit.lost').length, 3)
  assert.ok((await verifyAudit(audit.path)).isWhole)
})

test('an audit that is not required admits requests whose events it loses, and counts the loss', async (t) => {
  const mounted = await mountSmallDisk(64 * 1_024)
  if (typeof mounted === 'string') {
    t.skip(mounted)
    return
  }
  await using disk = mounted
  await using audit = await tempAudit(join(disk.path, 'audit'))
  await using log = await audit.open({ required: false })
  const filler = join(disk.path, 'filler')
  await writeFile(filler, Buffer.alloc(1 << 20)).catch((error) => assert.equal(error.code, 'ENOSPC'))
  for (let i = 0; i < 100; i += 1) await log.record(downloadBy('ann', { query: 'x'.repeat(1_000) }))
  await rm(filler)
  await log.record(downloadBy('ben'))
  const entries = await audit.entries()
  const lost = entries.find(({ event }) => event === 'audit.lost')
  const written = entries.filter(({ event, user }) => event === 'download.begin' && user === 'ann')
  assert.equal(Number(lost?.events) + written.length, 100)
})

test('a folder that is gone refuses within seconds, and is used again when it is back', async () => {
  await using audit = await tempAudit()
  await using log = await audit.open()
  await rename(audit.path, `${audit.path}.away`)
  await rm(join(`${audit.path}.away`, FIRST))
  const isRefused = () =>
    log.record(downloadBy('ann')).then(
      () => false,
      (error) => error.code === 'audit-unavailable',
    )
  await eventually(isRefused, { message: 'a refusal' })
  await rename(`${audit.path}.away`, audit.path)
  await log.record(downloadBy('ben'))
  const { chains, isWhole } = await verifyAudit(audit.path)
  // The file that was removed stays missing.
  assert.equal(isWhole, true)
  assert.equal(chains[0]?.firstFile, 2)
})

test('a disk that does not answer delays no one for long', async (t) => {
  const stuck = Promise.withResolvers<void>()
  const writes: (readonly string[])[] = []
  const chain = {
    cutBytes: 0,
    fileName: '',
    write: (events: readonly string[]) => writes.push(events) === 1 && stuck.promise,
    sync: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const log = new AuditLog(
    { ...TEMP_AUDIT_SETTINGS, folder: '' },
    { kind: 'gateway', log: createLog('test', 'silent'), metrics: new Metrics(), now: () => new Date() },
    chain as unknown as AuditChain,
  )
  const waiting = log.record(downloadBy('ann'))
  const late = log.record(downloadBy('ben'))
  await new Promise(setImmediate)
  t.mock.timers.tick(5_000)
  await assert.rejects(waiting, { code: 'audit-unavailable' })
  await assert.rejects(late, { code: 'audit-unavailable' })
  await assert.rejects(log.record(downloadBy('cat')), { code: 'audit-unavailable' })
  stuck.resolve()
  await new Promise(setImmediate)
  await log.record(downloadBy('dan'))
  assert.match(writes.flat().join(), /audit\.lost.*download\.begin","user":"dan"/)
  await log[Symbol.asyncDispose]()
})

test('with sync: each a line survives a power cut before it is acknowledged', async () => {
  await using audit = await tempAudit()
  await using log = await audit.open({ sync: 'each' })
  await Promise.all([log.record(downloadBy('ann')), log.record(downloadBy('ben'))])
  assert.equal((await audit.entries()).length, 3)
})

test('a folder that cannot be used is reported at startup', async () => {
  await using audit = await tempAudit()
  await writeFile(audit.path, 'a file')
  await assert.rejects(audit.open(), { code: 'bad-config', message: /audit\.folder cannot be used/ })
})

test('the oldest files go when all have more than keepBytes, and the two newest of each chain stay', async () => {
  await using audit = await tempAudit()
  const settings = { fileBytes: 65_536, keepBytes: 300_000 }
  await using log = await audit.open(settings)
  for (let turn = 0; turn < 400; turn += 1) await log.record(downloadBy('ann', { note: 'n'.repeat(4_000) }))
  const names = await jsonl(audit.path)
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(audit.path, name))).size))
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  // The file that is being written may have grown since files were removed.
  assert.ok(bytes <= 300_000 + 2 * 65_536 && names.length > 2, `${bytes} in ${names.length} files`)
  assert.ok(!names.includes(FIRST))
  assert.ok((await verifyAudit(audit.path)).isWhole)
})
