// What the compiler and the linker were told about defects, as the binaries that are run show it.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

const ADDON = 'capfleet.node'
const PROGRAMS = ['capfleet-bpf-compile', 'capfleet-regex-compile']

/** readelf comes with the linker that made the binary. */
function readelf(binary: string, ...args: readonly string[]): string {
  const path = join(REPOSITORY_ROOT, 'native/build', binary)
  const { status, stdout, stderr } = spawnSync('readelf', ['--wide', ...args, path], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout
}

for (const binary of [ADDON, ...PROGRAMS]) {
  test(`${binary} ends when its stack is overwritten`, () => {
    assert.match(readelf(binary, '--dyn-syms'), /UND __stack_chk_fail@/)
  })

  test(`${binary} calls the functions of the C library that check their buffers`, () => {
    assert.match(readelf(binary, '--dyn-syms'), /UND __(memcpy|snprintf|fprintf|memmove|read)_chk@/)
  })

  test(`${binary} has the addresses of foreign functions in memory that nobody can write`, () => {
    assert.match(readelf(binary, '--dynamic'), /FLAGS_1.*\bNOW\b/)
    assert.match(readelf(binary, '--program-headers'), /GNU_RELRO/)
  })

  test(`${binary} has no stack that can be executed`, () => {
    assert.match(readelf(binary, '--program-headers'), /GNU_STACK\s.*\sRW\s/)
  })
}

for (const program of PROGRAMS) {
  test(`${program} runs at an address that nobody knows before`, () => {
    assert.match(readelf(program, '--dynamic'), /FLAGS_1.*\bPIE\b/)
  })
}
