/** What the devices are capturing: status, start, stop. */

import type { Command } from 'commander'
import type { z } from 'zod'
import { bytesText } from '../../shared/base/amounts.ts'
import { failuresText } from '../../shared/base/list-text.ts'
import { STOP_PARAMETERS } from '../../shared/contract/device-parameters.ts'
import type { FLEET_REPLIES } from '../../shared/contract/gateway-answers.ts'
import { FLEET_PARAMETERS } from '../../shared/query/download/gateway-options.ts'
import type { ParameterRows } from '../../shared/query/query-parameters.ts'
import { ClientFailure, failureKindOf } from '../client-failure.ts'
import { type ConnectOptions, connect, contextOption } from './access/connect.ts'
import { type Column, type FormatOptions, formatOption, printListing, shownNs } from './common/list-output.ts'
import { type GivenOptions, QueryFlags } from './common/query-flags.ts'
import { runClient } from './common/run-client.ts'

type ReplyOptions = ConnectOptions & FormatOptions & GivenOptions
type Replies = z.infer<typeof FLEET_REPLIES>
type Reply = Replies['Devices'][number]

/** The parts of devices' answers that are shown; an older device may lack some. */
interface Told {
  readonly State?: string
  readonly StreamName?: string
  readonly StartTS?: string
  readonly CapturePacket?: number
  readonly CaptureByte?: number
  readonly CaptureDrop?: number
  readonly Message?: string
  readonly Str?: string
  readonly Warning?: string
}

const STATUS_COLUMNS: readonly Column<Reply>[] = [
  { title: 'device', value: ({ Device }) => Device },
  { title: 'state', value: (reply) => told(reply).State },
  { title: 'capture', value: (reply) => told(reply).StreamName },
  { title: 'since', value: (reply) => told(reply).StartTS, shown: (reply) => shownNs(told(reply).StartTS) },
  { title: 'packets', value: (reply) => told(reply).CapturePacket },
  {
    title: 'bytes',
    value: (reply) => told(reply).CaptureByte,
    shown: (reply) => capturedText(told(reply).CaptureByte),
  },
  { title: 'dropped', value: (reply) => told(reply).CaptureDrop },
  { title: 'message', value: messageOf },
]

const CHANGE_COLUMNS: readonly Column<Reply>[] = [
  { title: 'device', value: ({ Device }) => Device },
  { title: 'capture', value: (reply) => told(reply).StreamName },
  { title: 'state', value: (reply) => told(reply).State },
  { title: 'message', value: messageOf },
]

interface FleetCall {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly rows: readonly ParameterRows[]
  readonly columns: readonly Column<Reply>[]
}

export function defineStatus(command: Command): void {
  defineCall(command, {
    method: 'GET',
    path: '/sysmaster/capture_status',
    rows: [],
    columns: STATUS_COLUMNS,
  })
}

export function defineStart(command: Command): void {
  command.argument('[name]', 'name of the capture; default: the default name of the device')
  defineCall(command, { method: 'POST', path: '/sysmaster/capture_start', rows: [], columns: CHANGE_COLUMNS })
}

export function defineStop(command: Command): void {
  defineCall(command, {
    method: 'POST',
    path: '/sysmaster/capture_stop',
    rows: [STOP_PARAMETERS],
    columns: CHANGE_COLUMNS,
  })
}

function defineCall(command: Command, { method, path, rows, columns }: FleetCall): void {
  const flags = new QueryFlags([FLEET_PARAMETERS, ...rows])
  flags.addTo(command).addOption(formatOption()).addOption(contextOption())
  command.action(() => {
    const options = command.opts<ReplyOptions>()
    const [name] = command.args
    return runClient(async (signal) => {
      const client = await connect(options)
      const query = [...(name === undefined ? [] : [['StreamName', name] as const]), ...flags.query(options)]
      const { text, value } = await client.json<Replies>(path, { method, query, signal })
      await printListing({ text, entries: value.Devices, columns }, options)
      refuseFailures(value)
    }, flags.flagOf)
  })
}

/** The list shows the failures; the exit status must reflect them too. */
function refuseFailures({ Devices }: Replies): void {
  const failed = Devices.flatMap((reply) => ('error' in reply ? [reply] : []))
  const [first] = failed
  if (first === undefined) return
  throw new ClientFailure(
    failureKindOf(first.Status, first.error.code),
    failuresText(failed.map(({ Device: device, error }) => ({ device, message: error.detail }))),
    { code: first.error.code },
  )
}

function told(reply: Reply): Told {
  return 'error' in reply ? {} : ((reply.Body ?? {}) as Told)
}

function messageOf(reply: Reply): string | undefined {
  if ('error' in reply) return reply.error.detail
  const { Message = '', Warning = '', Str = '' } = told(reply)
  return [Str, Message, Warning].filter((text) => text !== '').join('; ') || undefined
}

function capturedText(bytes: number | undefined): string {
  return bytes === undefined ? '-' : bytesText(bytes)
}
