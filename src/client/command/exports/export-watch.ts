/** Shows the progress of an export on stderr until it has ended. */

import { bytesText } from '../../../shared/base/amounts.ts'
import { listText } from '../../../shared/base/list-text.ts'
import { ClientFailure } from '../../client-failure.ts'
import { type Export, hasEnded, watchExport } from '../../followed-export.ts'
import type { GatewayClient } from '../../gateway-client.ts'
import { shownNs } from '../common/list-output.ts'
import { createProgressBar, type ProgressBar } from '../common/progress-bar.ts'
import { Retries } from '../common/retries.ts'

/** Enough for a gateway to be replaced. */
const RETRIES_MAX = 20

/** Fails with a ClientFailure if the export did not end successfully. */
export async function watchToEnd(client: GatewayClient, id: string, signal: AbortSignal): Promise<void> {
  const bar = createProgressBar(`export ${id}`)
  const retries = new Retries({
    max: RETRIES_MAX,
    signal,
    say: (text) => {
      bar.clear()
      process.stderr.write(`capfleet: ${text}\n`)
    },
  })
  let last: Export | undefined
  for await (const state of watchExport(client, id, { signal, pause: (failure) => retries.pause(failure) })) {
    retries.progressed()
    if (!hasEnded(state)) show(bar, state)
    last = state
  }
  if (last !== undefined) end(bar, last)
}

function show(bar: ProgressBar, { state, progress }: Export): void {
  if (progress.stage === 'fetching') {
    const total = progress.estimatedBytes === null ? undefined : Number(progress.estimatedBytes)
    bar.update(Number(progress.fetchedBytes), total)
    return
  }
  bar.tell(state === 'running' ? progress.stage : state)
}

function end(bar: ProgressBar, exported: Export): void {
  const { state, files, progress } = exported
  const isEmpty = files.length > 0 && files.every(({ packets }) => packets === '0')
  bar.finish(
    `${state}, ${files.length === 1 ? '1 file' : `${files.length} files`}, ${bytesText(progress.writtenBytes)}` +
      (isEmpty ? ' (0 packets: nothing matched)' : ''),
  )
  if (state !== 'complete') throw endFailure(exported)
}

function endFailure({ id, state, error, devices }: Export): ClientFailure {
  if (state === 'failed')
    return new ClientFailure('device', error?.detail ?? 'the export failed', { code: error?.code ?? state })
  if (state === 'cancelled')
    return new ClientFailure('incomplete', `export ${id} was cancelled`, { code: state })
  const holes = devices.flatMap(({ device, missing }) =>
    missing.map(({ fromNs, toNs }) => `${device} from ${shownNs(fromNs)} to ${shownNs(toNs)}`),
  )
  return new ClientFailure(
    'incomplete',
    `packets are missing: ${listText(holes, '; ')}; capfleet export fill ${id} fetches what becomes available again`,
    { code: state },
  )
}
