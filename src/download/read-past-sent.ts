import { CapfleetError } from '../base/error.ts'
import type { BodyRead } from '../device/device-stream.ts'
import { BodyTail } from './body-tail.ts'
import type { Checkpoint } from './receipt.ts'
import type { Source } from './source.ts'

/**
 * Reads a body that is made again up to where the client has it, and compares the end of that part.
 * Returns what its last read holds beyond, to be released. Fails with aged-out when the bytes are
 * other ones, or as the body does.
 */
export async function readPastSent(
  { device, body }: Pick<Source, 'device' | 'body'>,
  sent: Checkpoint,
): Promise<Pick<BodyRead, 'data' | 'release'>> {
  const tail = new BodyTail()
  let missing = Number(sent.bytes)
  for (;;) {
    const read = await body.next()
    if (read === undefined) throw bodyChanged(device)
    const beyond: Buffer[] = []
    for (const piece of read.data) {
      const known = piece.subarray(0, missing)
      tail.add(known)
      missing -= known.length
      if (known.length < piece.length) beyond.push(piece.subarray(known.length))
    }
    if (missing === 0 && tail.crc32(sent.overBytes) === sent.crc32) return { ...read, data: beyond }
    read.release()
    if (missing === 0) throw bodyChanged(device)
  }
}

/** The device gives other bytes now than it gave before. */
export function bodyChanged(device: string): CapfleetError {
  return new CapfleetError(
    'aged-out',
    `device ${device} does not hold the same packets any more: some were overwritten while the client was slow`,
    { members: { devices: [device] } },
  )
}
