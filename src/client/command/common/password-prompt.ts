import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { CapfleetError } from '../../../shared/base/error.ts'

/** A new password from the terminal (asked twice, not shown) or, when stdin is a pipe, its first line. */
export async function readNewPassword(user: string): Promise<string> {
  const first = await readPassword(user)
  if (!process.stdin.isTTY) return refuseShort(first)
  const second = await askHidden('Again: ')
  if (first !== second)
    throw new CapfleetError('bad-parameter', 'the two passwords differ; nothing was changed')
  return refuseShort(first)
}

/** A password from the terminal (not shown) or, when stdin is a pipe, its first line. */
export async function readPassword(user: string): Promise<string> {
  return await readHidden(`Password for ${user}: `)
}

/** A line from the terminal (not shown) or, when stdin is a pipe, its first one. */
export async function readHidden(question: string): Promise<string> {
  if (process.stdin.isTTY) return await askHidden(question)
  return (await text(process.stdin)).split(/\r?\n/)[0] ?? ''
}

/** A program slows guesses down; whoever has stolen a users file guesses as fast as their machines can. */
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
