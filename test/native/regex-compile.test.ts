// The compiler of regular expressions as a process: native/engine/filter/regex_compile_main.cc.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { regexCompilerPath } from '../../native/addon.ts'
import { LIMIT_SIGNALS, measureProcessorTime } from '../support/processes/processor-time.ts'
import { WAIT_LIMIT_MS } from '../support/test-limits.ts'

/** 480 bytes of look-back for every letter: 24 MB/s where others reach 3,000. */
const SLOW_PATTERN = '([a-z].{60}){8}0'

function compilePattern(pattern: string | Buffer) {
  const { status, stdout, stderr } = spawnSync(regexCompilerPath, {
    input: pattern,
    timeout: WAIT_LIMIT_MS,
    maxBuffer: 1 << 26,
  })
  return { status, database: stdout, message: stderr.toString().trim() }
}

describe('compiles what Hyperscan knows', () => {
  const patterns = [
    'GET /',
    '(?i)password\\s*=',
    '\\bHost: .*\\r\\n',
    '^\\x16\\x03[\\x00-\\x03]',
    'a*',
    'grün|blau',
  ]
  for (const pattern of patterns) {
    test(pattern, () => {
      const { status, database, message } = compilePattern(pattern)
      assert.equal(status, 0, message)
      assert.ok(database.byteLength > 100 && database.byteLength < 8 * 2 ** 20)
    })
  }
})

test("answers what it cannot do with Hyperscan's message in one line", () => {
  const expected: readonly (readonly [string, RegExp])[] = [
    ['(\\w+)\\1', /Back-references are unsupported/],
    ['a(?=b)', /Zero-width assertions are not supported/],
    ['(?<!a)b', /Zero-width assertions are not supported/],
    ['a++', /Possessive quantifiers/],
    ['abc[', /Unterminated character class starting at index 3/],
    ['(', /Missing close parenthesis for group started at index 0/],
    ['a{3,2}', /Invalid repeat at index 1/],
    ['.{40000}', /Bounded repeat is too large/],
  ]
  for (const [pattern, rule] of expected) {
    const { status, database, message } = compilePattern(pattern)
    assert.equal(status, 1, pattern)
    assert.equal(database.byteLength, 0)
    assert.match(message, /^[^\n]+$/)
    assert.match(message, rule)
  }
})

test('refuses no pattern, one above 1 KiB, and a zero byte', () => {
  assert.match(compilePattern('').message, /pattern is empty/)
  assert.equal(compilePattern('ab12'.repeat(256)).status, 0)
  assert.match(compilePattern('a'.repeat(1025)).message, /longer than 1024 bytes/)
  assert.match(compilePattern('a\0b').message, /zero byte; write \\x00/)
})

test('a pattern that explodes ends within its limits', () => {
  const words = Array.from({ length: 200 }, (_, i) => (i * 7919).toString(16)).join('|')
  const bomb = `(?i)((${words.slice(0, 900)}){2,90}x)+`
  const { status, signal, cpuMs } = measureProcessorTime(regexCompilerPath, bomb)
  // Stopped by its processor time, or, on a busy machine, by real time.
  assert.ok(status === 1 || LIMIT_SIGNALS.includes(String(signal)), `${status} ${signal}`)
  assert.ok(cpuMs < 1_500, `${cpuMs} ms`)
})

describe('patterns that make a backtracking engine hang compile at once', () => {
  const patterns = [
    '(a+)+$',
    '^(a|a)*$',
    '([a-zA-Z]+)*\\d',
    '(.*a){20}z',
    '(x+x+)+y',
    '^(([a-z])+.)+[A-Z]([a-z])+$',
  ]
  for (const pattern of patterns) {
    test(pattern, () => {
      const { status, cpuMs } = measureProcessorTime(regexCompilerPath, pattern)
      assert.equal(status, 0, compilePattern(pattern).message)
      assert.ok(cpuMs < 800, `${cpuMs} ms`)
    })
  }
})

test('refuses a pattern that would search slowly, and says so', () => {
  const { status, message } = compilePattern(SLOW_PATTERN)
  assert.equal(status, 1)
  assert.match(message, /too slow: it would search only \d+ MB\/s/)
})
