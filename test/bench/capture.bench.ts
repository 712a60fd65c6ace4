/**
 * Live capture on a veth pair in a network namespace: the same packets at the same rate into ours and
 * into tcpdump, dumpcap and netsniff-ng, one after the other; what each has in its file. Also with busy
 * processes on the core of the capturer. The sender has the other core.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Prints the table; nothing is left behind. */
export function printCaptureFigures(): void {
  const contest = fileURLToPath(new URL('capture-contest.ts', import.meta.url))
  const script = 'mount -t sysfs sysfs /sys && exec "$0" "$1"'
  const args = ['--net', '--mount', 'sh', '-c', script, process.execPath, contest]
  const { status } = spawnSync('unshare', args, { stdio: 'inherit' })
  if (status !== 0) throw new Error('the capture bench failed; it needs root for a network namespace')
}
