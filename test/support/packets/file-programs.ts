/** Programs that read capture files, such as tshark and scapy, run on bytes. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Stands for the file in the parameters of a program: Wireshark's programs read no socket, which Node's pipes are. */
export const FILE = 'FILE'

export interface ProgramEnd {
  readonly status: number | null
  readonly stdout: Buffer
  /** Without what the program says of every file. */
  readonly stderr: string
}

/** Said by every run of the superuser, and by tcpdump of every file. */
const QUIET = /^Running as user "root".*\n|^reading from file .*\n/gm

/** Runs a program on the bytes, which are written into the folder. */
export function tryOn(
  folder: string,
  bytes: Uint8Array,
  [command, ...words]: readonly [string, ...string[]],
): ProgramEnd {
  const path = join(folder, 'read-by-programs')
  writeFileSync(path, bytes)
  const given = words.map((word) => (word === FILE ? path : word))
  const { status, stdout, stderr } = spawnSync(command, given, { maxBuffer: 1 << 28 })
  return { status, stdout, stderr: stderr.toString().replace(QUIET, '') }
}

/** The same; fails the test if the program reports anything. Returns its standard output. */
export function runOn(folder: string, bytes: Uint8Array, words: readonly [string, ...string[]]): Buffer {
  const { status, stdout, stderr } = tryOn(folder, bytes, words)
  assert.deepEqual([status, stderr], [0, ''], words.join(' '))
  return stdout
}
