/** The target of an attack: the attacked programs, and how to reach them. Passed between processes as JSON. */
import { USER_PASSWORD } from '../support/suite-secrets.ts'

export type Target = 'gateway' | 'appliance'

/**
 * What is special about the attacked program: nothing; it uses TLS; it has few file descriptors; or its store has no
 * space to spare and is recreated for each attack.
 */
export type StandKind = 'plain' | 'tls' | 'few-descriptors' | 'full-store'

export interface Stand {
  readonly target: Target
  /** Without a final slash. */
  readonly url: string
  /** The program whose memory is measured. Its processor time counts, including its children's. */
  readonly attackedPid: number
  /** Programs that work for it. Their processor time counts, including their children's. */
  readonly behindPids: readonly number[]
  /** The prefix of paths of device calls: "/devices/d0" or nothing. */
  readonly devicePath: string
  /** Authorization headers of the attacker and of another user. */
  readonly attacker: string
  readonly honest: string
  /** Everything that is stored, and two seconds of it, as parameters of a download. */
  readonly wholeRange: string
  readonly shortRange: string
  /** Captures of the device that is attacked or is behind the gateway. */
  readonly storePath: string
}

/** Answers at once and with little work: the price of a byte is the cost of transferring it. */
export function controlPath(stand: Stand): string {
  return `${stand.devicePath}/api/v1/system/version`
}

export const HONEST_NAME = 'honest'
export const ATTACKER_NAME = 'attacker'
export const PASSWORD = USER_PASSWORD

/** The value of the Authorization header. */
export function basic(name: string, password: string): string {
  return `Basic ${btoa(`${name}:${password}`)}`
}
