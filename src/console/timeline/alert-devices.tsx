/** Finds the devices that saw the conversation of an alert, and selects them, so that no stream of the others is taken. */
import { useEffect, useState } from 'preact/hooks'
import { DevicesThatSaw } from '../../shared/contract/devices-that-saw.ts'
import { changed, currentState, type PageState, showState, usePageState } from '../base/page-url.ts'
import { SAW } from '../download/pivot-link.ts'
import { useSurroundings } from '../parts/context.ts'
import { TEXTS } from '../texts.ts'
import { readSelection } from './selection.ts'
import { askSeenLines } from './sightings.ts'

export function AlertDevices() {
  const { values } = usePageState()
  const { session } = useSurroundings()
  const { alert: texts } = TEXTS.timeline
  /** What was said refers to the selection of the alert. */
  const [outcome, setOutcome] = useState({ text: '', selection: '' })
  const { [SAW]: hosts = '', TSBegin = '', TSEnd = '', TSZone = 'UTC', Device = '', FilterBPF = '' } = values
  // The user may have changed the filter since. Callers with a filter of their own may only count, which takes streams.
  const isOfAlert = Device === '' && hosts.split(',').every((host) => FilterBPF.includes(host))
  const isSearched = hosts !== '' && isOfAlert && session.bounds.filters.length === 0
  const selection = selectionOf(values)
  useEffect(() => {
    if (hosts === '') return
    const leaving = new AbortController()
    const settle = (names: readonly string[], text: string): void => {
      if (leaving.signal.aborted) return
      const devices = names.length === 0 ? {} : { Device: names.join(',') }
      setOutcome({ text, selection: selectionOf({ ...values, ...devices }) })
      showState(changed(currentState(), { ...devices, [SAW]: undefined }))
    }
    if (!isSearched) {
      settle([], isOfAlert ? texts.unknown : '')
      return
    }
    devicesThatSaw(hosts.split(','), { TSBegin, TSEnd, TSZone }, leaving.signal).then(
      (names) => settle(names, names.length === 0 ? texts.nowhere : texts.chosen(names.length)),
      () => settle([], texts.unknown),
    )
    return () => leaving.abort()
  }, [hosts, TSBegin, TSEnd, TSZone, isSearched])
  const text = hosts === '' ? (outcome.selection === selection ? outcome.text : '') : texts.asking
  return text === '' ? null : (
    <p class="quiet alert-devices" role="status">
      {text}
    </p>
  )
}

function selectionOf({ TSBegin, TSEnd, Device, FilterBPF }: PageState['values']): string {
  return JSON.stringify([TSBegin, TSEnd, Device, FilterBPF])
}

async function devicesThatSaw(
  hosts: readonly string[],
  range: { readonly TSBegin: string; readonly TSEnd: string; readonly TSZone: string },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const selection = readSelection(range)
  if (selection === undefined) throw new RangeError('the range is not valid')
  const saw = new DevicesThatSaw(hosts)
  for await (const line of askSeenLines(
    { addresses: hosts.join(','), ...selection, isFiltered: false },
    signal,
  ))
    saw.take(line)
  return saw.names
}
