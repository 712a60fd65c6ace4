import type { FlowPacket, FlowPath } from '../flow-packet.ts'
import { udpPacket } from '../packet-bytes.ts'
import type { Random } from '../random.ts'

const PROGRAMS = ['sshd', 'kernel', 'nginx', 'orders', 'cron']
const MESSAGES = [
  'accepted connection from gateway',
  'session closed for user batch',
  'link cap0 is up at 10000 Mbit/s',
  'queue depth is below the limit again',
  'job finished without errors',
  'slow answer from the database',
]
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** One to five messages of one host to its collector (RFC 3164). */
export function syslogFlow(path: FlowPath, random: Random, host: string, startNs: bigint): FlowPacket[] {
  const { client, server, vlan } = path
  const program = random.pick(PROGRAMS)
  const processId = random.between(300, 30_000)
  let identification = random.below(0x10000)
  let offsetNs = 0n
  return Array.from({ length: random.between(1, 5) }, () => {
    const level = random.between(3, 6)
    const time = timeText(startNs + offsetNs)
    const text = `<${16 * 8 + level}>${time} ${host} ${program}[${processId}]: ${random.pick(MESSAGES)}`
    const bytes = udpPacket(
      { from: client, to: server, vlan, identification: identification++ },
      Buffer.from(text),
    )
    const packet: FlowPacket = { offsetNs, fromClient: true, bytes }
    offsetNs += BigInt(random.between(50_000, 400_000_000))
    return packet
  })
}

/** "Nov  4 09:05:00", the day padded by a space. */
function timeText(ns: bigint): string {
  const time = new Date(Number(ns / 1_000_000n))
  const clock = time.toISOString().slice(11, 19)
  return `${MONTHS[time.getUTCMonth()]} ${String(time.getUTCDate()).padStart(2)} ${clock}`
}
