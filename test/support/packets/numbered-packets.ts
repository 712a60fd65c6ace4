/** Numbered packets: what was stored of them can be compared with what was sent. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readPcap } from './pcap-records.ts'

export const TICK_MS = 5
const SIZES = 1_300
const HEADERS = 14 + 20 + 8

/** The number, then bytes and a length derived from it. */
export function numberedPayload(number: number): Buffer {
  const payload = Buffer.alloc(8 + ((number * 131) % SIZES), number % 251)
  payload.writeBigUInt64LE(BigInt(number))
  return payload
}

/** Numbers of the packets in a segment, in stored order; fails if one differs from what was sent. */
export function numbersIn(pcap: Buffer): number[] {
  return readPcap(pcap).records.map(({ captured, originalLength }) => {
    const payload = captured.subarray(HEADERS)
    const number = Number(payload.readBigUInt64LE())
    assert.ok(payload.equals(numberedPayload(number)), `packet ${number} is not what was sent`)
    assert.equal(originalLength, captured.length)
    return number
  })
}

export async function numbersInFile(folder: string, name: string): Promise<number[]> {
  return numbersIn(await readFile(join(folder, name)))
}
