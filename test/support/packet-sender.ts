/** Sends packets on an interface as they are, as fast as the machine can. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { REPOSITORY_ROOT } from './repository-files.ts'

const PROGRAM = join(REPOSITORY_ROOT, 'native/build-test/capfleet-packet-sender')

/** Resolves with the number of packets that the interface at the other end has received. */
export async function sendPackets(
  interfaceName: string,
  pcapFile: string,
  { rounds = 1, packetsPerSecond = 0, receiver = '' } = {},
): Promise<bigint> {
  const before = receiver === '' ? 0n : await receivedPackets(receiver)
  const { stdout } = await promisify(execFile)(PROGRAM, [
    interfaceName,
    pcapFile,
    String(rounds),
    String(packetsPerSecond),
  ])
  return receiver === '' ? BigInt(stdout.trim()) : (await receivedPackets(receiver)) - before
}

async function receivedPackets(interfaceName: string): Promise<bigint> {
  return BigInt((await readFile(`/sys/class/net/${interfaceName}/statistics/rx_packets`, 'utf8')).trim())
}
