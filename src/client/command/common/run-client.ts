/** Runs a command against a gateway, and exits with a status that tells a script the outcome. */
import { CapfleetError } from '../../../shared/base/error.ts'
import { describeError, runProgram } from '../../../shared/base/program.ts'
import { ClientFailure, type FailureKind, failureKindOf } from '../../client-failure.ts'
import { FULL_CODES } from '../output/output-file.ts'

/** 0 means complete, 1 an internal error. */
export const EXIT_STATUSES = {
  usage: 2,
  access: 3,
  'not-found': 4,
  busy: 5,
  device: 6,
  incomplete: 7,
  'disk-full': 8,
} as const satisfies Record<FailureKind, number>

/** The status a shell reports for an interrupted command. */
const STATUS_INTERRUPTED = 130

/** `flagOf` returns the flag of a parameter named in the gateway's error. */
export async function runClient(
  main: (signal: AbortSignal) => Promise<void>,
  flagOf: (parameter: string) => string | undefined = () => undefined,
): Promise<void> {
  await runProgram(main, {
    describe: (error) => describeFailure(error, flagOf),
    statusOf,
  })
}

function statusOf(error: unknown): number {
  if (error instanceof ClientFailure) return EXIT_STATUSES[error.kind]
  if (error instanceof CapfleetError) return EXIT_STATUSES[localKindOf(error)]
  if (isSystemError(error)) return systemStatusOf(error)
  return isAbort(error) ? STATUS_INTERRUPTED : 1
}

function systemStatusOf({ code = '' }: NodeJS.ErrnoException): number {
  if (code === 'EPIPE') return EXIT_STATUSES.incomplete
  return FULL_CODES.has(code) ? EXIT_STATUSES['disk-full'] : 1
}

/** Errors of code shared with the programs: a setting that cannot be used is the user's mistake. */
function localKindOf({ code, kind }: CapfleetError): FailureKind {
  return code === 'bad-config' ? 'usage' : failureKindOf(kind.status, code)
}

/** "--end must be ..., got "x" [bad-parameter]": with flags instead of the names of parameters. */
function describeFailure(
  error: unknown,
  flagOf: (parameter: string) => string | undefined,
): string | undefined {
  if (isAbort(error)) return undefined
  // A file that cannot be read or written; the message names it.
  if (isSystemError(error)) return FULL_CODES.has(error.code ?? '') ? fullText(error) : error.message
  if (!(error instanceof ClientFailure)) return describeError(error)
  const { code, param } = error.facts
  if (code === 'usage') return error.message
  const message = withCommands(error.message).replaceAll(/\b([A-Z]\w+)\b(=\*?)?/g, (text, name, given) => {
    const flag = flagOf(name)
    if (flag === undefined) return text
    if (given === undefined) return flag
    // A shell would replace a bare * by the files of the folder.
    return given === '=*' ? `${flag} '*'` : `${flag} `
  })
  const flag = param === undefined ? undefined : flagOf(param)
  const isNamed = flag === undefined || message.includes(flag)
  return `${message.trimEnd()} [${isNamed ? code : `${code}, ${flag}`}]`
}

/** Requests of the API in messages, and the commands that make them. */
const COMMANDS: Readonly<Record<string, string>> = {
  'GET /v1/devices lists': 'capfleet devices lists',
  '/stream/list lists': 'capfleet captures lists',
  'GET /v1/exports lists': 'capfleet export list shows',
  'GET /v1/schedules lists': 'capfleet export schedule list shows',
  'GET /v1/tokens lists': 'capfleet token list shows',
}

function withCommands(message: string): string {
  return Object.entries(COMMANDS).reduce(
    (text, [request, command]) => text.replace(request, command),
    message,
  )
}

/** The system names the file only in some of these errors. */
function fullText({ message }: Error): string {
  return `the disk is full, or your quota on it (${message}); free some space, or name a file elsewhere [disk-full]`
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}
