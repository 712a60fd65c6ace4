/** Where an attack happens: the programs that are attacked, and how to reach them. Crosses process borders as JSON. */
import { USER_PASSWORD } from '../support/suite-secrets.ts'

export type Target = 'gateway' | 'appliance'

/**
 * What is special about the attacked program: nothing; it speaks TLS; it has few file descriptors; its
 * store has no room to spare, and is made anew for each attack.
 */
export type StandKind = 'plain' | 'tls' | 'few-descriptors' | 'full-store'

export interface Stand {
  readonly target: Target
  /** Without a final slash. */
  readonly url: string
  /** The program whose memory is watched; with its children, its processor time counts. */
  readonly attackedPid: number
  /** Programs that work for it; with their children, their processor time counts. */
  readonly behindPids: readonly number[]
  /** What stands before the path of a call to a device: "/devices/d0" or nothing. */
  readonly devicePath: string
  /** Values of the header Authorization: of the one who attacks, and of somebody else. */
  readonly attacker: string
  readonly honest: string
  /** All that is stored, and two seconds of it, as parameters of a download. */
  readonly wholeRange: string
  readonly shortRange: string
  /** Of the device that is attacked or stands behind the gateway. */
  readonly storePath: string
}

/** Answers at once and without much work: the price of a byte is that of its bytes. */
export function controlPath(stand: Stand): string {
  return `${stand.devicePath}/api/v1/system/version`
}

export const HONEST_NAME = 'honest'
export const ATTACKER_NAME = 'attacker'
export const PASSWORD = USER_PASSWORD

/** The value of the header Authorization. */
export function basic(name: string, password: string): string {
  return `Basic ${btoa(`${name}:${password}`)}`
}
