/**
 * The passwords of the suite's own users and devices. They are made up, so that every occurrence of one is a leak:
 * when anything started by the suite ends, its files, log, metrics, Redis and command line are searched for them.
 */
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Log } from '../../src/shared/base/log.ts'
import { redacted } from '../../src/shared/base/redact.ts'
import { Canaries, type FoundFile } from './canaries.ts'

const SECRETS = new Canaries()

/** Password of gateway users such as "user" and "full". */
export const USER_PASSWORD = SECRETS.add('auth.users of the gateway', 'c4n4ry suite user 5f1d')
/** Password of users of our appliances. */
export const APPLIANCE_PASSWORD = SECRETS.add('auth.users of the appliance', 'c4n4ry suite appliance 9a37')
/** Password with which gateways log in to devices simulated by tests. */
export const DEVICE_PASSWORD = SECRETS.add('devices[].password', 'c4n4ry-suite-device-c2e8')

/** Packet files cannot contain them, and would take long to search. */
const PACKETS = /\.(pcap|pcapng|zst|gz)$/
const LARGE_BYTES = 16_777_216
/** Files in which clients keep their credentials. */
const OF_CLIENTS: ReadonlySet<string> = new Set(['netrc', 'config.yaml'])

/** Fails if a secret is in a file below `folder` that is not meant to contain one. */
export async function refuseSecretsBelow(folder: string): Promise<number> {
  return await SECRETS.refuseBelow(folder, isSearched)
}

/** Fails if a secret is in the metrics of a program at `url`, if these are public. */
export async function refuseSecretsInMetrics(url: string): Promise<void> {
  const answer = await fetch(`${url}/metrics`).catch(() => undefined)
  SECRETS.refuseIn(`the metrics of ${url}`, (await answer?.text().catch(() => '')) ?? '')
}

/** Fails if a secret is on the command line of a running process. */
export async function refuseSecretsOnCommandLine(pid: number): Promise<void> {
  const commandLine = await readFile(`/proc/${pid}/cmdline`).catch(() => '')
  SECRETS.refuseIn(`the command line of process ${pid}`, commandLine)
}

/** Fails if a secret is in `text`. */
export function refuseSecretsIn(what: string, text: string): void {
  SECRETS.refuseIn(what, text)
}

export interface LoggedLine {
  readonly event: string
  readonly fields: Readonly<Record<string, unknown>>
}

export interface SearchedLog extends Log {
  /** Logged lines so far, oldest first. */
  readonly lines: readonly LoggedLine[]
  /** Fails if a secret is in a line as it would have been written. */
  refuseSecrets(): void
}

/** Keeps log lines instead of writing them. */
export function searchedLog(): SearchedLog {
  const lines: LoggedLine[] = []
  const keep = (event: string, fields: LoggedLine['fields'] = {}) => {
    lines.push({ event, fields })
  }
  return {
    debug: keep,
    info: keep,
    warn: keep,
    error: keep,
    lines,
    refuseSecrets: () => {
      for (const line of lines) SECRETS.refuseIn(`the log: ${line.event}`, redacted(written(line)))
    },
  }
}

function written(line: LoggedLine): string {
  return JSON.stringify(line, (_name, value: unknown) => {
    if (typeof value === 'bigint') return String(value)
    return value instanceof Error ? { message: value.message, stack: value.stack } : value
  })
}

function isSearched({ path, content }: FoundFile): boolean {
  if (PACKETS.test(path) || content.length > LARGE_BYTES || OF_CLIENTS.has(basename(path))) return false
  return !SECRETS.isOne(content.toString('latin1').trim())
}
