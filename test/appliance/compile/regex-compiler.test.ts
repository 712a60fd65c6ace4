import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { COMPILE_DEFAULTS, CompileQueue } from '../../../appliance/compile/compile-queue.ts'
import { RegexCompiler } from '../../../appliance/compile/regex-compiler.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { CAPTURE_FILES } from '../../support/packets/capture-files.ts'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { startTempAppliance } from '../../support/processes/temp-appliance.ts'

const request = { caller: { user: 'ann', id: 'ann' }, signal: new AbortController().signal }
/** On a busy machine, using up a pattern's processor time takes far longer in real time. */
const PATIENT = { ...COMPILE_DEFAULTS, limitMs: 1_200_000 }
/** Compiling it takes longer than the limit. */
const BOMB = `(?i)((${Array.from({ length: 200 }, (_, i) => (i * 7919).toString(16))
  .join('|')
  .slice(0, 900)}){2,90}x)+`

test("says what Hyperscan says, and where, counted in the caller's characters", async () => {
  await assert.rejects(new RegexCompiler(new CompileQueue()).compile('größe[', request), (error) => {
    assert.ok(error instanceof CapfleetError)
    assert.equal(error.code, 'bad-regex')
    assert.match(error.message, /^FilterRE "größe\[" does not compile: Unterminated character class/)
    assert.equal(error.details.param, 'FilterRE')
    assert.equal(error.details.position, 5)
    return true
  })
  await assert.rejects(new RegexCompiler(new CompileQueue()).compile('(a)\\1', request), {
    code: 'bad-regex',
    message: /Back-references are unsupported/,
  })
})

for (const [filter, pattern] of [
  ['/http/i', '(?i)http'],
  ['/a.b/sm', '(?sm)a.b'],
  ['/http/', 'http'],
  ['/etc/passwd', '/etc/passwd'],
  ['/a/ii', '/a/ii'],
  ['/a/ismi', '/a/ismi'],
  ['/a/x', '/a/x'],
  ['/a/b/i', '(?i)a/b'],
  ['/é\n/', 'é\n'],
  ['//', '//'],
  ['a/i', 'a/i'],
] as const) {
  test(`${filter} searches for ${pattern}`, async () => {
    const compiler = new RegexCompiler(new CompileQueue())
    assert.deepEqual(await compiler.compile(filter, request), await compiler.compile(pattern, request))
  })
}

test('a mistake between slashes is reported at its place as typed', async () => {
  for (const filter of ['/größe[/', '/größe[/i', '/größe[/ism'])
    await assert.rejects(new RegexCompiler(new CompileQueue()).compile(filter, request), (error) => {
      assert.ok(error instanceof CapfleetError)
      assert.equal(error.details.position, filter.indexOf('['))
      assert.match(error.message, / at character 6\b/)
      return true
    })
})

test('compiles a pattern once', async () => {
  const compiler = new RegexCompiler(new CompileQueue())
  assert.equal(await compiler.compile('abc', request), await compiler.compile('abc', request))
  assert.notDeepEqual(await compiler.compile('abd', request), await compiler.compile('abc', request))
})

test('a pattern that explodes is given up, and the answer is remembered', async () => {
  const queue = new CompileQueue(PATIENT)
  const compiler = new RegexCompiler(queue)
  await assert.rejects(compiler.compile(BOMB, request), {
    code: 'bad-regex',
    message: /too (complex|large)/i,
  })
  await assert.rejects(compiler.compile(BOMB, request), { code: 'bad-regex' })
  assert.equal(queue.counts.refused, 1)
})

test('a client that leaves ends its compiler at once, running or waiting', async () => {
  const compiler = new RegexCompiler(new CompileQueue())
  const client = new AbortController()
  const jobs = Array.from({ length: 6 }, (_, index) =>
    compiler.compile(`${BOMB}${index}`, { ...request, signal: client.signal }),
  )
  // As slow as those would be: whether they were killed shows in the order in which requests end.
  const other = new RegexCompiler(new CompileQueue(PATIENT))
  const whole = assert.rejects(other.compile(BOMB, request)).then(() => undefined)
  client.abort(new Error('client gone'))
  const results = await Promise.race([Promise.allSettled(jobs), whole])
  assert.ok(results !== undefined, 'a pattern that nobody leaves is given up before they end')
  await whole
  for (const result of results) {
    assert.equal(result.status, 'rejected')
    assert.match(String(result.reason), /client gone/)
  }
  await compiler.compile('abc', request)
})

describe('FilterRE selects what a search in the bytes selects', () => {
  const patterns = [
    'GET|HTTP',
    '(?i)ssh',
    '\\x08\\x00E.{8}\\x01',
    '[0-9]{5,}',
    'a*',
    '\\xff{6}',
    'nowhere-at-all',
  ]
  test('in every capture', async () => {
    await using appliance = await startTempAppliance()
    const paths = CAPTURE_FILES.filter((path) =>
      /plain|gre|geneve|jumbo|vxlan-encapsulated|raw_packets/.test(path),
    )
    for (const [index, path] of paths.entries()) await appliance.importFiles(`capture${index}`, path)
    let found = 0
    for (const index of paths.keys()) {
      const all = readPcap(
        (await appliance.get(`/api/v1/pcap/single?StreamName=capture${index}`)).body,
      ).records
      for (const pattern of patterns) {
        const answer = await appliance.get(
          `/api/v1/pcap/single?StreamName=capture${index}&FilterRE=${encodeURIComponent(pattern)}`,
        )
        assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400))
        const isCaseless = pattern.startsWith('(?i)')
        const search = new RegExp(pattern.replace('(?i)', ''), isCaseless ? 'is' : 's')
        const expected = all.filter(({ captured }) => search.test(captured.toString('latin1')))
        assert.deepEqual(recordLines(readPcap(answer.body).records), recordLines(expected), pattern)
        found += expected.length
      }
    }
    assert.ok(found > 50)
  })
})

test('a wrong pattern is answered before any packet', async () => {
  await using appliance = await startTempAppliance()
  const answer = await appliance.get(`/api/v1/pcap/timerange?TSBegin=1&TSEnd=2&TSUnit=sec&FilterRE=a(%3F=b)`)
  assert.equal(answer.status, 400)
  assert.deepEqual([answer.json().code, answer.json().param], ['bad-regex', 'FilterRE'])
})
