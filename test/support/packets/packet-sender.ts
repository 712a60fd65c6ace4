/** Sends packets on an interface unchanged, as fast as the machine can. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inNamespace } from '../network/capture-wire.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'

const PROGRAM = join(REPOSITORY_ROOT, 'native/build-test/capfleet-packet-sender')

export interface SendOptions {
  /** Number of times the whole file is sent; default 1. */
  readonly rounds?: number
  /** Default 0: as fast as it can. */
  readonly packetsPerSecond?: number
  /** Interface at the other end. */
  readonly receiver?: string
  /** Network namespace of the interface; default: the current one. */
  readonly namespace?: string
}

/** Resolves with the number of packets sent or, if `receiver` is set, received there. */
export async function sendPackets(
  interfaceName: string,
  pcapFile: string,
  { rounds = 1, packetsPerSecond = 0, receiver = '', namespace }: SendOptions = {},
): Promise<bigint> {
  const before = receiver === '' ? 0n : await receivedPackets(receiver)
  const args = [interfaceName, pcapFile, String(rounds), String(packetsPerSecond)]
  const command =
    namespace === undefined ? ([PROGRAM, args] as const) : inNamespace(namespace, [PROGRAM, ...args])
  const { stdout } = await promisify(execFile)(...command)
  return receiver === '' ? BigInt(stdout.trim()) : (await receivedPackets(receiver)) - before
}

async function receivedPackets(interfaceName: string): Promise<bigint> {
  return BigInt((await readFile(`/sys/class/net/${interfaceName}/statistics/rx_packets`, 'utf8')).trim())
}
