import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { CapfleetError } from '../../../shared/base/error.ts'

/** Reads a new password from the terminal (asked twice, hidden) or, if stdin is a pipe, its first line. */
export async function readNewPassword(user: string): Promise<string> {
  const first = await readPassword(user)
  if (!process.stdin.isTTY) return refuseShort(first)
  const second = await askHidden('Again: ')
  if (first !== second)
    throw new CapfleetError('bad-parameter', 'the two passwords differ; nothing was changed')
  return refuseShort(first)
}

/** Reads a password from the terminal (hidden) or, if stdin is a pipe, its first line. */
export async function readPassword(user: string): Promise<string> {
  return await readHidden(`Password for ${user}: `)
}

/** Reads a line from the terminal (hidden) or, if stdin is a pipe, its first one. */
export async function readHidden(question: string): Promise<string> {
  if (process.stdin.isTTY) return await askHidden(question)
  return (await text(process.stdin)).split(/\r?\n/)[0] ?? ''
}

/** A program slows guesses down; with a stolen users file they are only limited by the attacker's machines. */
const CHARACTERS_MIN = 12

function refuseShort(password: string): string {
  if ([...password].length >= CHARACTERS_MIN) return password
  throw new CapfleetError(
    'bad-parameter',
    `the password has fewer than ${CHARACTERS_MIN} characters; nothing was changed`,
  )
}

async function askHidden(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return await lines.question('')
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}
