/**
 * The form of the table: what the API promises, sentence by sentence, and how each promise is checked. Each row is a
 * claim in our own words; its checks run on every route that they do not exclude.
 */
import type { ReferenceQuery } from '../support/reference/reference-download.ts'
import type { CaptureName, DeviceName } from './contract-captures.ts'
import type { Place, Seen } from './place.ts'

/** The device itself; /devices/{device} of the gateway; the fleet's paths at the gateway's root. */
export const ROUTES = ['device', 'below', 'fleet'] as const
export type RouteName = (typeof ROUTES)[number]

/** Routes that a check excludes, each with the reason. */
export type LeftOut = Readonly<Partial<Record<RouteName, string>>>

export type Caller = 'viewer' | 'user' | 'full' | 'nobody'

/** A member must have this type. */
export const STRING = Symbol('a string')
export const INTEGER = Symbol('an integer')
export const NUMBER = Symbol('a number')
export const BOOLEAN = Symbol('a boolean')
export const LIST = Symbol('a list')
export const OBJECT = Symbol('an object')
export const ABSENT = Symbol('absent')

/** "a.0.b" -> its type, a pattern of its text, or its value. */
export type Members = Readonly<Record<string, unknown>>

/** Packets of these captures, as the reference implementation delivers them. */
export interface StoredPackets {
  readonly of: readonly CaptureName[]
  readonly query: Partial<ReferenceQuery>
}

/** One request, and the expectations for its answer. */
export interface AnswerCheck {
  /** Path and query as a device has them; at the root `Device=` is added where it is needed. */
  readonly get: string | ((at: Place) => string | Promise<string>)
  /** Default: east. */
  readonly device?: DeviceName
  readonly out?: LeftOut
  /** Default: full. */
  readonly as?: Caller
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Default: 200, or the status of the problem's code. */
  readonly status?: number
  /** A problem body with this code and, if given, this parameter. */
  readonly problem?: readonly [code: string, param?: string]
  /** undefined means that the header must be absent. */
  readonly head?: Readonly<Record<string, string | RegExp | undefined>>
  readonly text?: RegExp
  readonly members?: Members
  /** The body is exactly this PCAP, and tcpdump counts the same number of packets in it. */
  readonly pcap?: StoredPackets
  /** The compression of the PCAP. */
  readonly packed?: 'gzip' | 'zstd'
  readonly see?: (seen: Seen, at: Place) => unknown
}

/** A check that takes several requests. */
export interface ActionCheck {
  readonly act: (at: Place) => Promise<unknown>
  readonly device?: DeviceName
  readonly out?: LeftOut
}

export type Check = AnswerCheck | ActionCheck

export interface Claim {
  /** Section and number: "4.4.3-2" of the reference, "D1-5" of the decisions. */
  readonly id: string
  readonly claim: string
  readonly checks: readonly Check[]
  /** The test outside this folder that checks it. */
  readonly elsewhere?: { readonly file: string; readonly title: string }
  /** Why nothing checks it. */
  readonly notChecked?: string
}

export function row(id: string, claim: string, ...checks: readonly Check[]): Claim {
  return { id, claim, checks }
}

/** A claim that a test elsewhere checks, on every route that it has. */
export function heldBy(file: string, title: string, id: string, claim: string): Claim {
  return { id, claim, checks: [], elsewhere: { file, title } }
}

export function unchecked(reason: string, id: string, claim: string): Claim {
  return { id, claim, checks: [], notChecked: reason }
}

export function packets(
  of: CaptureName | readonly CaptureName[],
  query: StoredPackets['query'] = {},
): StoredPackets {
  return { of: typeof of === 'string' ? [of] : of, query }
}

// Why a check excludes a route.
export const FLEET_ONLY: LeftOut = {
  device: 'the gateway alone has it',
  below: 'below /devices/{device} everything is the device’s',
}
export const DEVICE_ONLY: LeftOut = {
  below: 'it is about the appliance itself',
  fleet: 'it is about the appliance itself',
}
export const NOT_FLEET: LeftOut = {
  fleet: 'at the root the answers of devices are collected in one of the gateway',
}
export const THROUGH_GATEWAY: LeftOut = { device: 'it is about the gateway' }
