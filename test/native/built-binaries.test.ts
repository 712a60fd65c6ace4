// Hardening options of compiler and linker, as visible in the installed binaries.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

const ADDONS = ['capfleet.node', 'capfleet-gateway.node']
const PROGRAMS = ['capfleet-bpf-compile', 'capfleet-regex-compile']

/** readelf is in the package of the linker that made the binary. */
function readelf(binary: string, ...args: readonly string[]): string {
  const path = join(REPOSITORY_ROOT, 'native/build', binary)
  const { status, stdout, stderr } = spawnSync('readelf', ['--wide', ...args, path], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout
}

for (const binary of [...ADDONS, ...PROGRAMS]) {
  test(`${binary} ends when its stack is overwritten`, () => {
    assert.match(readelf(binary, '--dyn-syms'), /UND __stack_chk_fail@/)
  })

  test(`${binary} has the addresses of foreign functions in read-only memory`, () => {
    assert.match(readelf(binary, '--dynamic'), /FLAGS_1.*\bNOW\b/)
    assert.match(readelf(binary, '--program-headers'), /GNU_RELRO/)
  })

  test(`${binary} has no stack that can be executed`, () => {
    assert.match(readelf(binary, '--program-headers'), /GNU_STACK\s.*\sRW\s/)
  })
}

// The gateway's addon has no buffer whose size the compiler could know.
for (const binary of ['capfleet.node', ...PROGRAMS]) {
  test(`${binary} calls the functions of the C library that check their buffers`, () => {
    assert.match(readelf(binary, '--dyn-syms'), /UND __(memcpy|snprintf|fprintf|memmove|read)_chk@/)
  })
}

for (const program of PROGRAMS) {
  test(`${program} runs at an unpredictable address`, () => {
    assert.match(readelf(program, '--dynamic'), /FLAGS_1.*\bPIE\b/)
  })
}

test('the gateway loads an engine without Hyperscan, libpcap, the code that needs them, and the store', () => {
  const libraries = readelf('capfleet-gateway.node', '--dynamic').matchAll(/NEEDED.*\[lib([a-z_]+)/g)
  const needed = [...libraries].map((match) => match[1] ?? '').sort()
  assert.deepEqual(needed, ['c', 'deflate', 'gcc_s', 'isal', 'stdc', 'xxhash', 'zstd'])
  assert.doesNotMatch(
    readelf('capfleet-gateway.node', '--syms'),
    /LiveCapture|Importer|RegexMatcher|BpfEvaluator|verifySegment|SegmentFiles|SegmentIndex/,
  )
})
