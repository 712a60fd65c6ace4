import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'

const LOG = JSON.stringify(new URL('../../../../src/shared/base/log.ts', import.meta.url).href)
const LINES = 500

/** What a program writes to stderr that logs LINES lines and immediately does `end`. */
async function logged(end: string): Promise<string[]> {
  const script = `
    const { createLog } = await import(${LOG})
    const log = createLog('test', 'info')
    for (let number = 0; number < ${LINES}; number++) log.info('test.line', { number })
    ${end}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  return (await text(child.stderr)).trimEnd().split('\n')
}

for (const [what, end, count = LINES] of [
  ['has nothing more to do', ''],
  ['exits', 'process.exit(0)'],
  ['exits while a write is on its way', 'setImmediate(() => process.exit(0))'],
  [
    'exits while others want to use the thread pool',
    `const { scrypt } = await import('node:crypto')
    for (let count = 0; count < 8; count++) scrypt('a', 'b', 64, () => undefined)
    for (let number = ${LINES}; number < ${2 * LINES}; number++) log.info('test.line', { number })
    setImmediate(() => process.exit(0))`,
    2 * LINES,
  ],
  ['dies of an error', 'throw new Error("planned")'],
] as readonly (readonly [string, string, number?])[]) {
  test(`a program that ${what} has logged every line, in order`, async () => {
    const lines = await logged(end)
    const numbers = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line).number)
    assert.deepEqual(
      numbers,
      Array.from({ length: count }, (_, number) => number),
    )
  })
}

test('lines of what is done for a request have its id and its trace, others have none', async () => {
  const context = JSON.stringify(
    new URL('../../../../src/shared/base/request-context.ts', import.meta.url).href,
  )
  const lines = await logged(`
    const { withinRequest, outsideOfRequests } = await import(${context})
    const request = { requestId: 'r-1', trace: { traceId: 't-1' } }
    await withinRequest(request, async () => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      log.warn('test.within')
      log.warn('test.own', { requestId: 'r-2' })
      outsideOfRequests(() => log.warn('test.outside'))
    })`)
  const found = lines.map((line) => JSON.parse(line)).slice(LINES)
  assert.deepEqual(
    found.map(({ event, requestId, traceId }) => [event, requestId, traceId]),
    [
      ['test.within', 'r-1', 't-1'],
      ['test.own', 'r-2', 't-1'],
      ['test.outside', undefined, undefined],
    ],
  )
})

test('a line of a program that keeps running does not wait for others', async (t) => {
  const script = `
    const { createLog } = await import(${LOG})
    createLog('test', 'info').info('test.line', { number: 1 })
    process.stdin.resume()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  t.after(() => child.kill())
  const [line] = (await once(child.stderr, 'data')) as [Buffer]
  assert.equal(JSON.parse(line.toString()).number, 1)
})

test('long texts are cut, those of errors too, and short ones stay', async () => {
  const script = `
    const { createLog } = await import(${LOG})
    const long = 'x'.repeat(60_000)
    createLog('test', 'info').info('test.line', { path: long, user: 'ann', err: new Error(long) })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const line = await text(child.stderr)
  assert.ok(line.length < 10_000, `${line.length} characters`)
  const { path, user, err } = JSON.parse(line)
  assert.equal(path, `${'x'.repeat(2_048)}... (60000 characters)`)
  assert.equal(user, 'ann')
  assert.match(err.message, /^x{2048}\.\.\. \(60000 characters\)$/)
})

test('secrets are removed, and so are additions of client libraries to their errors', async () => {
  const script = `
    const { createLog } = await import(${LOG})
    const err = Object.assign(new Error('WRONGPASS Bearer c4n4ry-1-value'), {
      code: 'ERR',
      command: { name: 'auth', args: ['c4n4ry-2-value'] },
    })
    createLog('test', 'info').info('test.line', { path: '/x?Ticket=c4n4ry-3-value', err })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const line = await text(child.stderr)
  assert.ok(!line.includes('c4n4ry'), line)
  const { path, err } = JSON.parse(line)
  assert.deepEqual(
    [path, err.message, err.code],
    ['/x?Ticket=[redacted]', 'WRONGPASS Bearer [redacted]', 'ERR'],
  )
})
