/** Two connected virtual network interfaces. */
import { execFileSync } from 'node:child_process'
import { whyNot } from './network-namespace.ts'

export interface VethPair extends Disposable {
  readonly left: string
  readonly right: string
}

const PROBE = `cfp${process.pid}`
const MAKE_A_PAIR = `ip link add ${PROBE}l type veth peer name ${PROBE}r && ip link del ${PROBE}l`

/** Skip reason for tests, or false. */
export const WITHOUT_VETH: string | false = whyNot('sh', '-c', MAKE_A_PAIR)

let made = 0

/** Both are up; dispose removes them. */
export function makeVethPair(): VethPair {
  made += 1
  const [left, right] = [`cft${process.pid}l${made}`, `cft${process.pid}r${made}`]
  ip('link', 'add', left, 'type', 'veth', 'peer', 'name', right)
  for (const name of [left, right]) ip('link', 'set', name, 'up')
  return { left, right, [Symbol.dispose]: () => ip('link', 'del', left) }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: 'ignore' })
}
