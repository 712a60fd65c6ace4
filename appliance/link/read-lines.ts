import type { Socket } from 'node:net'
import { CapfleetError } from '../../src/shared/base/error.ts'

/** More than any message; limits what an unknown client of the socket can make us buffer. */
const LINE_MAX = 1 << 20

/**
 * The lines that arrive, until the connection ends, is broken or is destroyed here. (node:readline never finishes on a
 * destroyed socket.) Leaving the loop keeps the connection. Fails with bad-parameter for an overlong line.
 */
export async function* readLines(socket: Socket): AsyncGenerator<string, void> {
  let rest = ''
  const decoder = new TextDecoder()
  try {
    for await (const bytes of socket.iterator({ destroyOnReturn: false })) {
      const lines = (rest + decoder.decode(bytes as Buffer, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > LINE_MAX) throw new CapfleetError('bad-parameter', 'the message is too long')
      yield* lines
    }
  } catch (error) {
    if (error instanceof CapfleetError) throw error
  }
}
