/**
 * Live capture on veth pairs in a network namespace: the same packets at the same rate into ours and into tcpdump,
 * dumpcap and netsniff-ng, one after another; how many packets each has in its files. Also from three ports, and with
 * busy processes on the capturer's core. The sender has the other core. Then our recorder and appliance as separate
 * programs, alone and beside downloads.
 *
 *   CAPTURE_ROUNDS=<n>   how often the 64 MiB of packets are sent; default 8
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { printCaptureBesideDownloads } from './capture-beside-downloads.ts'

const ROUNDS = 8

/** Prints the table and leaves nothing behind. */
export async function printCaptureFigures(): Promise<void> {
  const contest = fileURLToPath(new URL('capture-contest.ts', import.meta.url))
  const script = 'mount -t sysfs sysfs /sys && exec "$0" "$@"'
  const rounds = process.env.CAPTURE_ROUNDS ?? String(ROUNDS)
  const args = ['--net', '--mount', 'sh', '-c', script, process.execPath, contest, rounds]
  const { status } = spawnSync('unshare', args, { stdio: 'inherit' })
  if (status !== 0) throw new Error('the capture bench failed; it needs root for a network namespace')
  await printCaptureBesideDownloads(Number(rounds))
}
