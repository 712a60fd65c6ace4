/**
 * A virtual wire: a veth pair between two network namespaces. Packets sent at one end arrive at the other and nowhere
 * else. Needs root.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { whyNot } from './network-namespace.ts'

const run = promisify(execFile)

const PROBE = `capfleet-probe-${process.pid}`
const MAKE_A_WIRE = `ip netns add ${PROBE} && { ip -n ${PROBE} link add probe0 type veth peer name probe1; made=$?; ip netns delete ${PROBE}; exit $made; }`

/** Skip reason for tests, or false. */
export const WITHOUT_WIRE: string | false = whyNot('sh', '-c', MAKE_A_WIRE)

export interface CaptureWire extends AsyncDisposable {
  /** Interface at the receiving end, in the namespace `receiver`. */
  readonly interfaceName: string
  readonly sender: string
  readonly receiver: string
  /** Address of the receiving end, for UDP from the other end. */
  readonly address: string
}

const IPV6_SWITCHES = '/proc/sys/net/ipv6/conf/all/disable_ipv6 /proc/sys/net/ipv6/conf/default/disable_ipv6'

/** Ethernet's, plus room for VLAN tags. */
const MTU = '2000'

let made = 0

export async function captureWire(): Promise<CaptureWire> {
  const id = `${process.pid}-${made++}`
  const [sender, receiver] = [`capfleet-tx-${id}`, `capfleet-rx-${id}`]
  const ip = (...args: readonly string[]) => run('ip', [...args])
  const inside = (name: string, ...args: readonly string[]) => ip('netns', 'exec', name, ...args)
  await using parts = new AsyncDisposableStack()
  for (const name of [sender, receiver]) {
    await ip('netns', 'add', name)
    parts.defer(async () => void (await ip('netns', 'delete', name)))
    // The kernel's own packets would be captured; without IPv6 it sends none.
    await inside(name, 'sh', '-c', `echo 1 | tee ${IPV6_SWITCHES} > /dev/null || true`)
  }
  await ip('link', 'add', 'tx0', 'netns', sender, 'type', 'veth', 'peer', 'name', 'rx0', 'netns', receiver)
  const up = ['mtu', MTU, 'arp', 'off', 'up']
  await inside(sender, 'ip', 'link', 'set', 'tx0', 'address', '02:00:00:00:00:01', ...up)
  await inside(receiver, 'ip', 'link', 'set', 'rx0', 'address', '02:00:00:00:00:02', ...up)
  await inside(sender, 'ip', 'address', 'add', '192.0.2.1/24', 'dev', 'tx0')
  const owner = parts.move()
  return {
    interfaceName: 'rx0',
    sender,
    receiver,
    address: '192.0.2.2',
    [Symbol.asyncDispose]: () => owner.disposeAsync(),
  }
}

/** Program and arguments that run a command in a namespace, in the same process. */
export function inNamespace(name: string, command: readonly string[]): [string, string[]] {
  return ['ip', ['netns', 'exec', name, ...command]]
}
