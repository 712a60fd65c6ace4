/** Two virtual network interfaces whose packets arrive at each other. */
import { execFileSync } from 'node:child_process'

export interface VethPair extends Disposable {
  readonly left: string
  readonly right: string
}

/** For a test's `skip`. */
export const WITHOUT_VETH: string | false =
  process.getuid?.() === 0 ? false : 'only root may make network interfaces'

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
